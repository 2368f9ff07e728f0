/** `tamq ping` (L-05). */
import type { Verb } from "../command.ts";
import { ask, type JsonFlag, settingsAtAnyRate } from "./service.ts";

const ping: Verb<JsonFlag> = async function ({ json }) {
  const answer = await ask(this, "ping", {}, { settings: await settingsAtAnyRate(this) });
  if (json) return this.out(JSON.stringify(answer));
  this.out(`tamq ${answer.version}, protocol ${answer.protocol}, pid ${answer.pid}`);
};
export default ping;
