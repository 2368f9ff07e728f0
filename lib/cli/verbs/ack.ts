/** `tamq ack` (T-15). */
import type { Verb } from "../command.ts";
import { lookOf } from "../layout.ts";
import { messageLine } from "../render.ts";
import { ask, type JsonFlag, messageIdOf } from "./service.ts";

const ack: Verb<JsonFlag, [string]> = async function ({ json }, id) {
  const { message } = await ask(this, "ack", {
    message_id: await messageIdOf(this, id),
  });
  this.out(json ? JSON.stringify(message) : messageLine(message, lookOf(this)));
};
export default ack;
