/** `tamq endpoints` (T-17). */
import type { Verb } from "../command.ts";
import { endpointTable } from "../render.ts";
import { ask, type JsonFlag } from "./service.ts";

const endpoints: Verb<JsonFlag> = async function ({ json }) {
  const answer = await ask(this, "endpoints", {});
  if (json) {
    for (const endpoint of answer.endpoints) this.out(JSON.stringify(endpoint));
  } else if (answer.endpoints.length === 0) {
    this.err("no window is attached; open some with: tamq --command CMD REPO...");
  } else {
    this.out(endpointTable(answer.endpoints, this.clock.now()));
  }
};
export default endpoints;
