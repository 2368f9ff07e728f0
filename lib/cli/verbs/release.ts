/** `tamq release` (B-11). */
import type { Verb } from "../command.ts";
import { ask, type JsonFlag } from "./service.ts";

const release: Verb<JsonFlag, [string]> = async function ({ json }, repo) {
  const answer = await ask(this, "release", { repo });
  this.out(json ? JSON.stringify(answer) : `messages that may go now: ${answer.released}`);
};
export default release;
