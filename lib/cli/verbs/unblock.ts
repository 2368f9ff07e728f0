/** `tamq unblock` (B-14). */
import { displaySafe } from "../../base/display.ts";
import type { Verb } from "../command.ts";
import { ask, type JsonFlag } from "./service.ts";

const unblock: Verb<JsonFlag, [string, string]> = async function ({ json }, sender, target) {
  const answer = await ask(this, "unblock", { sender_repo: sender, target_repo: target });
  if (json) return this.out(JSON.stringify(answer));
  this.out(displaySafe(`${sender} may write to ${target} again`));
  this.out(`messages refused meanwhile, not kept: ${answer.refused}`);
};
export default unblock;
