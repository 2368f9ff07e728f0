/** Executables to try, compiled from this checkout wherever a runtime for them can be had (V-03). */
import { runProcess } from "./world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** How to come by an executable; or why there is none. */
export type Supply =
  | { readonly kind: "compile"; readonly deno: string; readonly env: Record<string, string> }
  | { readonly kind: "given"; readonly path: string }
  | { readonly kind: "none"; readonly why: string };

/**
 * In this order: `TAMQ_TEST_EXECUTABLE`, a finished one; the runtime of `DENORT_BIN`; the one whose
 * path the program of `TAMQ_DENORT_HELPER` prints; the one that deno fetched earlier.
 * `TAMQ_COMPILE_DENO` is the deno of that runtime's version, when it is not the one that runs this.
 * Throws when `TAMQ_REQUIRE_EXECUTABLE` is set and there is none: then nothing may be skipped.
 */
export async function executableSupply(): Promise<Supply> {
  const found = await lookForSupply();
  if (found.kind === "none") {
    if (Deno.env.get("TAMQ_REQUIRE_EXECUTABLE")) throw new Error(found.why);
    console.log(`SKIPPED: ${found.why}`);
  }
  return found;
}

async function lookForSupply(): Promise<Supply> {
  const path = Deno.env.get("TAMQ_TEST_EXECUTABLE");
  if (path) return { kind: "given", path };
  const deno = Deno.env.get("TAMQ_COMPILE_DENO") || Deno.execPath();
  const runtime = Deno.env.get("DENORT_BIN") || await askHelper();
  if (runtime) return { kind: "compile", deno, env: { DENORT_BIN: runtime } };
  const info = await runProcess([deno, "info", "--json"]);
  const { denoDir } = JSON.parse(info.stdout) as { denoDir: string };
  const { stdout } = await runProcess([deno, "--version"]);
  const version = stdout.split(" ")[1];
  const fetched = `${denoDir}/dl/release/v${version}/denort-${Deno.build.target}.zip`;
  if (await Deno.stat(fetched).then(() => true, () => false)) {
    return { kind: "compile", deno, env: {} };
  }
  return {
    kind: "none",
    why:
      "no executable is compiled and tried: set DENORT_BIN to the runtime (denort) of this deno, or run `deno task compile` once where deno can fetch it",
  };
}

async function askHelper(): Promise<string | undefined> {
  const helper = Deno.env.get("TAMQ_DENORT_HELPER");
  if (!helper) return undefined;
  const { code, stdout, stderr } = await runProcess([helper]);
  if (code !== 0) throw new Error(`${helper}: status ${code}\n${stderr}`);
  return stdout.trim();
}

/** The executable's path; compiled to `file` from `root` (by default the program) if need be. */
export async function obtainExecutable(supply: Supply, file: string, root?: string) {
  if (supply.kind === "none") throw new Error(supply.why);
  if (supply.kind === "given") return supply.path;
  const script = `${ROOT}scripts/compile.ts`;
  const { code, stderr } = await runProcess(
    [supply.deno, "run", "-A", "--frozen", "--no-check", script, file, "", ...(root ? [root] : [])],
    { env: { NO_COLOR: "1", ...supply.env } },
  );
  if (code !== 0) throw new Error(`the compilation failed:\n${stderr}`);
  return file;
}
