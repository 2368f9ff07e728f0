/**
 * `deno task bundle [FILE]`: the whole program as one JavaScript file (dist/tamq.js) that needs
 * nothing but the runtime (V-03).
 *
 * The bundler hoists imports of `node:` modules to the top of the file, where each costs every
 * command 20 ms. An import map puts modules of ours in their place that fetch them when the first
 * user of one is loaded.
 */
import manifest from "../deno.json" with { type: "json" };

const ROOT = new URL("../", import.meta.url).pathname;

const STAND_INS: Readonly<Record<string, string>> = {
  "@xterm/headless": `${ROOT}scripts/bundled/xterm_headless.ts`,
  "node:crypto": `${ROOT}scripts/bundled/crypto.ts`,
  "node:sqlite": `${ROOT}scripts/bundled/sqlite.ts`,
};

/** What a bundle must not hold: imports that are resolved outside of it, and early. */
const LEFT_OVER = /\b(?:from|import\(?)\s*"((?:node|npm|jsr|https?|file):[^"]*|@[^"]*)"/;

/** Bundles `root` into `file`. Throws when the bundler fails or leaves something out. */
export async function bundle(file: string, root = `${ROOT}main_single.ts`): Promise<void> {
  await Deno.mkdir(file.replace(/[^/]*$/, "") || ".", { recursive: true });
  const map = await Deno.makeTempFile({ prefix: "tamq-", suffix: ".json" });
  try {
    await Deno.writeTextFile(
      map,
      JSON.stringify({ imports: { ...manifest.imports, ...STAND_INS } }),
    );
    await runDeno([
      "bundle",
      "--quiet",
      "--frozen",
      `--import-map=${map}`,
      "--platform=deno",
      "--minify",
      `--output=${file}`,
      root,
    ]);
  } finally {
    await Deno.remove(map);
  }
  const outside = LEFT_OVER.exec(await Deno.readTextFile(file));
  if (outside !== null) {
    throw new Error(`${file} still imports ${outside[1]}: it needs a stand-in in scripts/bundled`);
  }
}

/** Runs this very runtime in the checkout; throws with what it said unless it succeeds. */
export async function runDeno(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    stdin: "null",
    stdout: "inherit",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(`deno ${args[0]} failed:\n${new TextDecoder().decode(stderr)}`);
}

/** Runs `work` on `file` for the command line: its size, or the reason of the failure. */
export async function report(file: string, work: () => Promise<void>): Promise<never> {
  try {
    await work();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(1);
  }
  console.log(`${file}: ${Math.round((await Deno.stat(file)).size / 1024)} KB`);
  Deno.exit(0);
}

if (import.meta.main) {
  const file = Deno.args[0] ?? `${ROOT}dist/tamq.js`;
  await report(file, () => bundle(file));
}
