/** `tamq endpoints` (T-17). */
import type { ColorFlag } from "../colour.ts";
import type { Verb } from "../command.ts";
import { lookOf } from "../layout.ts";
import { endpointTable } from "../render.ts";
import { ask, type JsonFlag } from "./service.ts";

const endpoints: Verb<JsonFlag & ColorFlag> = async function ({ json, color }) {
  const answer = await ask(this, "endpoints", {});
  if (json) {
    for (const endpoint of answer.endpoints) this.out(JSON.stringify(endpoint));
  } else if (answer.endpoints.length === 0) {
    this.err("no window is attached; open some with: tamq --command CMD REPO...");
  } else {
    this.out(endpointTable(answer.endpoints, this.clock.now(), lookOf(this, { color })));
  }
};
export default endpoints;
