/** `tamq completion SHELL` (C-04). */
import type { Verb } from "../command.ts";
import { completionScript, type Shell } from "../completion_scripts.ts";

const completion: Verb<unknown, [Shell]> = function (_flags, shell) {
  this.out(completionScript(shell));
};
export default completion;
