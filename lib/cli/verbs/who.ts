/** `tamq who`: the repositories that are live. */
import { displaySafe } from "../../base/display.ts";
import type { Verb } from "../command.ts";
import { ask, type JsonFlag } from "./service.ts";

const who: Verb<JsonFlag> = async function ({ json }) {
  const { endpoints } = await ask(this, "endpoints", {});
  const live = new Map<string, string[]>();
  for (const endpoint of endpoints) {
    for (const repo of endpoint.repos) {
      live.set(repo, [...live.get(repo) ?? [], endpoint.endpoint_id]);
    }
  }
  for (const [repo, ids] of [...live].sort(([a], [b]) => a < b ? -1 : 1)) {
    this.out(json ? JSON.stringify({ repo, endpoints: ids }) : displaySafe(repo));
  }
};
export default who;
