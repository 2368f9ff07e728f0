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
  "zod/mini": `${ROOT}scripts/bundled/zod_mini.ts`,
  "@xterm/headless": `${ROOT}scripts/bundled/xterm_headless.ts`,
  "node:buffer": `${ROOT}scripts/bundled/buffer.ts`,
  "node:crypto": `${ROOT}scripts/bundled/crypto.ts`,
  "node:sqlite": `${ROOT}scripts/bundled/sqlite.ts`,
};

/** In the one-file form only. */
const LEFT_OUT = Object.fromEntries(
  ["fleet_ca", "fleet_operator", "fleet_service"].map((verb) => [
    `file://${ROOT}lib/cli/verbs/${verb}.ts`,
    `${ROOT}scripts/bundled/no_fleet.ts`,
  ]),
);

/** What a bundle must not hold: imports that are resolved outside of it, and early. */
const LEFT_OVER =
  /\b(?:from\s*|import\s*\(?)"((?:npm|jsr|https?|file):[^"]*|@[^"]*)"|from\s*"(node:\w+)"/;

/** The program's root in its forms that know all modules beforehand. */
export const SINGLE_ROOT = `${ROOT}main_single.ts`;

/** Bundles `root` into `file`. Throws when the bundler fails or leaves something out. */
export async function bundle(file: string, root = SINGLE_ROOT): Promise<void> {
  await Deno.mkdir(file.replace(/[^/]*$/, "") || ".", { recursive: true });
  await runBundler([`--output=${file}`, root], {
    ...manifest.imports,
    ...STAND_INS,
    ...LEFT_OUT,
  });
  await finish(file);
}

/**
 * The same in parts, one for what is loaded together, in the new folder `dir`; returns the part to
 * begin with.
 */
export async function bundleParts(dir: string, root = SINGLE_ROOT): Promise<string> {
  await runBundler(["--code-splitting", `--outdir=${dir}`, root], {
    ...manifest.imports,
    ...STAND_INS,
  });
  for (const entry of Deno.readDirSync(dir)) await finish(`${dir}/${entry.name}`);
  return `${dir}/${root.replace(/^.*\//, "").replace(/\.ts$/, ".js")}`;
}

async function runBundler(
  args: readonly string[],
  imports: Readonly<Record<string, string>>,
): Promise<void> {
  const map = await Deno.makeTempFile({ prefix: "tamq-", suffix: ".json" });
  try {
    await Deno.writeTextFile(map, JSON.stringify({ imports }));
    const always = ["--quiet", "--frozen", `--import-map=${map}`, "--platform=deno", "--minify"];
    await runDeno(["bundle", ...always, ...args]);
  } finally {
    await Deno.remove(map);
  }
}

async function finish(file: string): Promise<void> {
  const before = await Deno.readTextFile(file);
  const text = inAscii(lateBuiltIns(before));
  if (text !== before) await Deno.writeTextFile(file, text);
  const outside = LEFT_OVER.exec(text);
  if (outside === null) return;
  throw new Error(
    `${file} still imports ${outside[1] ?? outside[2]}: it needs a stand-in in scripts/bundled`,
  );
}

/** What the bundlers put in place of `require` where a package calls it. */
const REQUIRE = /Dynamic require of|createRequire/;

/**
 * Packages import modules of the runtime by their default export, or require them; an import map
 * does not reach into packages. In the bundle they get theirs on first use.
 */
function lateBuiltIns(text: string): string {
  const late = text
    .replace(/\bimport ([\w$]+) from\s*"(node:\w+)";/g, 'const $1=lateModule("$2");')
    .replace(
      /\bimport\s*\{createRequire as ([\w$]+)\}\s*from\s*"node:module";/g,
      "const $1=()=>require;",
    );
  if (late === text && !REQUIRE.test(text)) return text;
  return `const require=(id)=>process.getBuiltinModule(id),` +
    `lateModule=(id)=>new Proxy({},{get:(_,key)=>require(id)[key]});\n${late}`;
}

/**
 * Everything beyond ASCII as an escape, which means the same in strings, templates, regular
 * expressions and names. With one such character in it the engine holds the whole text in two bytes a
 * character.
 */
function inAscii(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/[^\u0000-\u007f]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
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
