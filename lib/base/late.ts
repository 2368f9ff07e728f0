/**
 * Imports that the runtime cannot foresee. Before `deno run` runs a file, it reads everything that
 * any `import()` in it names literally, also on branches that never run: the whole program, 10 ms.
 * A module imported here is read when it is needed. Forms of the program that consist of one file
 * must know all modules beforehand: their root hands them over by {@link provide}.
 */
let provided: Readonly<Record<string, () => Promise<unknown>>> | undefined;

/** For the roots of single-file forms: every late module by its path below `lib/`. */
export function provide(modules: Readonly<Record<string, () => Promise<unknown>>>): void {
  provided = modules;
}

/** The module at `path` below `lib/`, without its ending. The caller names its type. */
export function importLate<M>(path: string): Promise<M> {
  const load = provided?.[path] ?? (() => import(new URL(`../${path}.ts`, import.meta.url).href));
  return load() as Promise<M>;
}
