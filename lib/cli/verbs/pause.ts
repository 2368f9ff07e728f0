/** `tamq pause` (B-18). */
import type { Verb } from "../command.ts";
import { ask, type JsonFlag } from "./service.ts";

const pause: Verb<JsonFlag> = async function ({ json }) {
  const answer = await ask(this, "pause", {});
  this.out(
    json ? JSON.stringify(answer) : "paused: nothing is delivered until you type: tamq resume",
  );
};
export default pause;
