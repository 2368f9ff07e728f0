/** `tamq stop` (L-01). */
import { stopService } from "../../service_control.ts";
import type { Verb } from "../command.ts";
import { type JsonFlag, settingsAtAnyRate } from "./service.ts";

const stop: Verb<JsonFlag> = async function ({ json }) {
  const result = await stopService(await settingsAtAnyRate(this));
  if (json) return this.out(JSON.stringify(result));
  this.out(result.stopped ? `service stopped (pid ${result.pid})` : "no service was running");
};
export default stop;
