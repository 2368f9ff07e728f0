/** `tamq allow` (B-18). */
import { displaySafe } from "../../base/display.ts";
import type { Verb } from "../command.ts";
import { ask } from "./service.ts";

export interface AllowFlags {
  readonly both?: boolean;
  readonly remove?: boolean;
  readonly json?: boolean;
}

const allow: Verb<AllowFlags, [string, string]> = async function (flags, sender, target) {
  const answer = await ask(this, "allow", {
    sender_repo: sender,
    target_repo: target,
    both: flags.both === true,
    remove: flags.remove === true,
  });
  if (flags.json) return this.out(JSON.stringify(answer));
  for (const { sender_repo: from, target_repo: to } of answer.pairs) {
    const what = flags.remove ? "needs permission to write" : "may write";
    this.out(displaySafe(`${from} ${what} to ${to}`));
  }
  if (answer.released > 0) this.out(`held messages that may go now: ${answer.released}`);
};
export default allow;
