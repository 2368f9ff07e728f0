/**
 * `deno task proto`: generates lib/fleet/gen/ from lib/fleet/proto/ after a lint.
 * `--check`: lint, freshness of the generated files, and no change that breaks what was released.
 * `--release`: makes the present contract the one that later ones must not break.
 *
 * The generator and its plugin come from npm, at exact versions, into the user's cache: they are
 * tools of whoever changes the contract, no part of the program.
 */
const ROOT = new URL("../", import.meta.url).pathname;
const PROTO = `${ROOT}lib/fleet/proto`;
const GENERATED = `${ROOT}lib/fleet/gen`;
const RELEASED = `${PROTO}/released.binpb`;
const BUF = "1.75.0";
const PLUGIN = "2.17.0";

export interface Ran {
  readonly code: number;
  readonly output: string;
}

async function run(command: string, args: readonly string[], cwd: string, path = ""): Promise<Ran> {
  const env: Record<string, string> = path === "" ? {} : {
    PATH: `${path}:${Deno.env.get("PATH") ?? ""}`,
  };
  const { code, stdout, stderr } = await new Deno.Command(command, { args: [...args], cwd, env })
    .output();
  const text = new TextDecoder();
  return { code, output: text.decode(stdout) + text.decode(stderr) };
}

/** Where the tools' commands lie; installs them when they are not there. */
async function tools(): Promise<string> {
  const cache = Deno.env.get("TAMQ_CI_CACHE") ?? Deno.env.get("XDG_CACHE_HOME") ??
    `${Deno.env.get("HOME")}/.cache`;
  const dir = `${cache}/tamq-proto-${BUF}-${PLUGIN}`;
  const bin = `${dir}/node_modules/.bin`;
  try {
    await Deno.stat(`${bin}/protoc-gen-es`);
    await Deno.stat(`${bin}/buf`);
  } catch {
    await Deno.mkdir(dir, { recursive: true });
    const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"];
    const packages = [`@bufbuild/buf@${BUF}`, `@bufbuild/protoc-gen-es@${PLUGIN}`];
    const done = await run("npm", ["install", "--prefix", dir, ...quiet, ...packages], dir);
    if (done.code !== 0) throw new Error(`cannot install ${packages.join(", ")}: ${done.output}`);
  }
  return bin;
}

/** Runs buf on the contract in `dir`. */
export async function buf(args: readonly string[], dir = PROTO): Promise<Ran> {
  const bin = await tools();
  return await run(`${bin}/buf`, args, dir, bin);
}

/** The generated files by name, made anew. */
export async function generate(): Promise<Record<string, string>> {
  const dir = await Deno.makeTempDir({ prefix: "tamq-proto-" });
  try {
    const template = {
      version: "v2",
      plugins: [{ local: "protoc-gen-es", out: dir, opt: ["target=ts", "import_extension=ts"] }],
    };
    const made = await buf(["generate", "--template", JSON.stringify(template)]);
    if (made.code !== 0) throw new Error(`buf generate: ${made.output}`);
    const files: Record<string, string> = {};
    for await (const { name } of Deno.readDir(dir)) {
      files[name] = await Deno.readTextFile(`${dir}/${name}`);
    }
    return files;
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** What is wrong with the contract or its generated files; empty when nothing is. */
export async function complaints(): Promise<string[]> {
  const found: string[] = [];
  const lint = await buf(["lint"]);
  if (lint.code !== 0) found.push(lint.output);
  const breaking = await buf(["breaking", "--against", RELEASED]);
  if (breaking.code !== 0) found.push(breaking.output);
  const fresh = await generate();
  const present = [...Deno.readDirSync(GENERATED)].map(({ name }) => name);
  for (const name of new Set([...present, ...Object.keys(fresh)])) {
    const text = present.includes(name) ? await Deno.readTextFile(`${GENERATED}/${name}`) : "";
    if (text !== fresh[name]) found.push(`lib/fleet/gen/${name} is not fresh: deno task proto`);
  }
  return found;
}

if (import.meta.main) {
  if (Deno.args[0] === "--check") {
    const found = await complaints();
    for (const complaint of found) console.error(complaint.trimEnd());
    Deno.exit(found.length === 0 ? 0 : 1);
  }
  if (Deno.args[0] === "--release") {
    const built = await buf(["build", "-o", RELEASED]);
    if (built.code !== 0) throw new Error(built.output);
    Deno.exit(0);
  }
  const lint = await buf(["lint"]);
  if (lint.code !== 0) {
    console.error(lint.output.trimEnd());
    Deno.exit(1);
  }
  for (const [name, text] of Object.entries(await generate())) {
    await Deno.writeTextFile(`${GENERATED}/${name}`, text);
  }
}
