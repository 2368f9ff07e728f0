/** Root of the single-file forms, executable and bundle: all modules are known beforehand. */
import { provide } from "./lib/base/late.ts";
import { IMPLEMENTATIONS } from "./lib/cli/implementations.ts";
import { runCli } from "./lib/cli/run.ts";

if (import.meta.main) {
  provide(IMPLEMENTATIONS);
  Deno.exit(await runCli(Deno.args));
}
