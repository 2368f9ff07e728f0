/** The executable: argument vector in, exit status out. */
import { runCli } from "./lib/cli/run.ts";

if (import.meta.main) {
  // Explicit, so that a handle somebody forgot cannot keep a finished command alive.
  Deno.exit(await runCli(Deno.args));
}
