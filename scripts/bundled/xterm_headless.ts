/**
 * Stands in for `@xterm/headless` in the bundle: its manifest names a `module` that the package does
 * not hold, and the bundlers of two runtimes disagree about the default export of its `main`.
 */
// deno-lint-ignore no-import-prefix -- an entry of its own in the import map would be one for the whole program
import { Terminal } from "npm:@xterm/headless@6.0.0/lib-headless/xterm-headless.mjs";
export default { Terminal };
