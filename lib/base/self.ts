/** How this program starts itself again: as the executable it is, or as a script under the same runtime. */

// This file lives two folders below the root in a checkout; in a bundle or an executable the main
// module is that one file.
function mainModule(): string {
  const here = import.meta.url;
  if (here.endsWith("/lib/base/self.ts")) return new URL("../../main.ts", here).pathname;
  return new URL(here).pathname;
}

/** What the kernel appends to the name of an executable that was removed or replaced. */
const DELETED = " (deleted)";

/**
 * The runtime, or the executable that this program is; by its path also after another version was
 * put there, so that a broker older than an update can still start the service (E-05).
 */
function executable(): string {
  const path = Deno.execPath();
  return path.endsWith(DELETED) ? path.slice(0, -DELETED.length) : path;
}

/**
 * For a broker that runs as a script; executables are compiled with the same. Bulk output leaves
 * garbage behind, which the engine would collect late: with 200 MB printed, a broker with a terminal
 * model had 187 MB resident, and has 89 with this, as fast (B-06).
 */
export const BROKER_RUNTIME_FLAG = "--v8-flags=--optimize-for-size";

/** The argument vector that runs `tamq` with `args`. */
export function selfCommand(args: readonly string[]): string[] {
  if (Deno.build.standalone) return [executable(), ...args];
  const main = decodeURIComponent(mainModule());
  const flags = ["run", "-A", "--no-check", "--quiet"];
  if (args[0] === "broker") flags.push(BROKER_RUNTIME_FLAG);
  if (main.endsWith(".ts")) {
    // The frozen lock and the import map of our own checkout, whatever folder we are started in.
    flags.push("--frozen", "--config", main.replace(/main\.ts$/, "deno.json"));
  } else flags.push("--no-config");
  return [executable(), ...flags, main, ...args];
}
