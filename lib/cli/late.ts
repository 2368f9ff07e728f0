/** {@link importLate} with the types of the modules that it may be asked for. */
import { importLate } from "../base/late.ts";
import type { IMPLEMENTATIONS } from "./implementations.ts";

type Path = keyof typeof IMPLEMENTATIONS;
type Module<P extends Path> = Awaited<ReturnType<(typeof IMPLEMENTATIONS)[P]>>;

export function late<P extends Path>(path: P): Promise<Module<P>> {
  return importLate<Module<P>>(path);
}
