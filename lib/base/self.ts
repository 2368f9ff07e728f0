/** How this program starts itself again: as the executable it is, or as a script under the same runtime. */

// This file lives two folders below the root in a checkout; in a bundle or an executable the main
// module is that one file.
function mainModule(): string {
  const here = import.meta.url;
  if (here.endsWith("/lib/base/self.ts")) return new URL("../../main.ts", here).pathname;
  return new URL(here).pathname;
}

/** The argument vector that runs `tamq` with `args`. */
export function selfCommand(args: readonly string[]): string[] {
  if (Deno.build.standalone) return [Deno.execPath(), ...args];
  const main = decodeURIComponent(mainModule());
  const flags = ["run", "-A", "--no-check", "--quiet"];
  if (main.endsWith(".ts")) {
    // The frozen lock and the import map of our own checkout, whatever folder we are started in.
    flags.push("--frozen", "--config", main.replace(/main\.ts$/, "deno.json"));
  } else flags.push("--no-config");
  return [Deno.execPath(), ...flags, main, ...args];
}
