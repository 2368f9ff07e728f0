/** `tamq message` (T-17). */
import type { Verb } from "../command.ts";
import { messageDetails } from "../render.ts";
import { ask, type JsonFlag } from "./service.ts";

const message: Verb<JsonFlag, [string]> = async function ({ json }, id) {
  const answer = await ask(this, "message", { message_id: id });
  if (json) return this.out(JSON.stringify(answer));
  this.out(messageDetails(answer.message, answer.attempts, this.clock.now()));
};
export default message;
