/** `tamq resume` (B-18). */
import type { Verb } from "../command.ts";
import { ask, type JsonFlag } from "./service.ts";

const resume: Verb<JsonFlag> = async function ({ json }) {
  const answer = await ask(this, "resume", {});
  if (json) return this.out(JSON.stringify(answer));
  this.out(answer.resumed ? "deliveries go on" : "nothing was paused");
};
export default resume;
