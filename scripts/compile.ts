/**
 * `deno task compile [FILE [TARGET [ROOT]]]`: one self-contained executable (dist/tamq) around the
 * bundle (V-03). The runtime inside is the one of DENORT_BIN, which must be of this deno's own
 * version; without that variable deno fetches it.
 */
import { bundleParts, report, runDeno } from "./bundle.ts";

const ROOT = new URL("../", import.meta.url).pathname;

/**
 * Compiles `root`, by default the program, to `file`; for this machine, or for `target` as
 * `deno compile --help` lists them.
 */
export async function compile(file: string, target?: string, root?: string): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "tamq-" });
  try {
    // Parts, since an executable reads its program anew each time: with the bundle in one piece
    // `tamq --version` takes twice the time of an empty executable, with parts 1.04 times.
    const first = await bundleParts(`${dir}/tamq`, root);
    await runDeno([
      "compile",
      "--quiet",
      "--allow-all",
      "--no-config",
      "--no-check",
      // An executable keeps its code cache in a file of a guessable name below /tmp, and runs what
      // it finds there: whoever made that file first, on a machine with several users.
      "--no-code-cache",
      // What DENO_V8_FLAGS does for a service (SERVICE_V8_FLAGS): an executable does not read that.
      "--v8-flags=--optimize-for-size",
      ...(target === undefined ? [] : [`--target=${target}`]),
      `--include=${dir}/tamq`,
      `--output=${file}`,
      first,
    ]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

if (import.meta.main) {
  const [file = `${ROOT}dist/tamq`, target, root] = Deno.args;
  await report(file, () => compile(file, target || undefined, root));
}
