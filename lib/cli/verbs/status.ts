/** `tamq status` (L-06). */
import type { Verb } from "../command.ts";
import { EXIT } from "../exit_codes.ts";
import { endpointTable, table } from "../render.ts";
import { ask, type JsonFlag } from "./service.ts";

const status: Verb<JsonFlag> = async function ({ json }) {
  const answer = await ask(this, "status", {});
  const parts = [
    ["service", answer.service],
    ["sqlite", answer.sqlite],
    ["gita", answer.gita],
    ["state hub", answer.state_hub],
    ["queue", answer.queue],
    ["leases", answer.leases],
  ] as const;
  if (json) {
    this.out(JSON.stringify(answer));
  } else {
    this.out(table(parts.map(([name, part]) => [name, part.ok ? "ok" : "NOT OK", part.detail])));
    const { service, sqlite, gita, queue } = answer;
    const states = Object.entries(queue.states).map(([state, n]) => `${n} ${state}`).join(", ");
    this.out("");
    this.out(table([
      ["pid", String(service.pid)],
      ["socket", service.socket],
      ["peer check", service.peer_check],
      ["database", `${sqlite.path} (schema ${sqlite.schema})`],
      ["registry", `${gita.path} (${gita.repositories} repositories)`],
      ["messages", states === "" ? "none" : states],
    ]));
    if (answer.endpoints.length > 0) {
      this.out("");
      this.out(endpointTable(answer.endpoints, this.clock.now()));
    }
  }
  // The hub is another program's; messages do not need it.
  const sound = parts.every(([name, part]) => part.ok || name === "state hub");
  return sound ? EXIT.ok : EXIT.failure;
};
export default status;
