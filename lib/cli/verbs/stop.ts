/** `tamq stop` (L-01). */
import { loadSettings } from "../../config.ts";
import { stopService } from "../../service_control.ts";
import type { Verb } from "../command.ts";
import type { JsonFlag } from "./service.ts";

const stop: Verb<JsonFlag> = async function ({ json }) {
  const stopped = await stopService(await loadSettings(this.env));
  void stopped;
  void json;
};
export default stop;
