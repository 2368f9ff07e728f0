/** `tamq status` (L-06). */
import type { WireStatus } from "../../protocol/schema.ts";
import type { ColorFlag } from "../colour.ts";
import { loadSettings } from "../../config.ts";
import type { CliContext } from "../context.ts";
import type { Verb } from "../command.ts";
import { EXIT } from "../exit_codes.ts";
import { type Cell, lookOf, table } from "../layout.ts";
import { endpointTable } from "../render.ts";
import { late } from "../late.ts";
import { quoteWord } from "../words.ts";
import { ask, type JsonFlag } from "./service.ts";

type Pair = { readonly sender_repo: string; readonly target_repo: string };
const route = (pair: Pair) => `${pair.sender_repo} → ${pair.target_repo}`;
const words = (pair: Pair) => [pair.sender_repo, pair.target_repo].map(quoteWord).join(" ");

const status: Verb<JsonFlag & ColorFlag> = async function ({ json, color }) {
  const answer = await ask(this, "status", {});
  const { engine, hub } = await coordination(this);
  const parts = [
    ["service", answer.service],
    ["sqlite", answer.sqlite],
    ["gita", answer.gita],
    ["state hub", answer.state_hub],
    ["queue", answer.queue],
    ["leases", answer.leases],
    ["control", answer.controls],
    ["engine", engine],
    ["own hub", hub],
  ] as const;
  if (json) {
    this.out(JSON.stringify({ ...answer, coordination_engine: engine, embedded_hub: hub }));
  } else {
    // What is not looked at is neither well nor ill.
    const look = lookOf(this, { color });
    const health = (part: typeof parts[number][1]): Cell =>
      part.detail.startsWith("not observed") || part.detail === "not running"
        ? "-"
        : part.ok
        ? { text: "ok", style: "green" }
        : { text: "NOT OK", style: "red" };
    this.out(table(parts.map(([name, part]) => [name, health(part), part.detail]), look));
    const { service, sqlite, gita, queue } = answer;
    const states = messageCounts(queue).map(([state, n]) => `${n} ${state}`).join(", ");
    const { allowed, blocked, held, paused_at } = answer.controls;
    this.out("");
    this.out(table([
      ["pid", String(service.pid)],
      ["socket", service.socket],
      ["peer check", service.peer_check],
      ["database", `${sqlite.path} (schema ${sqlite.schema})`],
      ["registry", `${gita.path} (${gita.repositories} repositories)`],
      ["messages", states === "" ? "none" : states],
      ...allowed.length === 0 ? [] : [["may write", allowed.map(route).join(", ")]],
    ], look));
    const control = [
      ...paused_at === null ? [] : [["paused", "all deliveries", "tamq resume"]],
      ...blocked.map((pair) => [
        "blocked",
        `${route(pair)}, ${pair.refused} refused`,
        `tamq unblock ${words(pair)}`,
      ]),
      ...held.map((pair) => [
        "held",
        `${route(pair)}, ${pair.messages} waiting`,
        `tamq allow ${words(pair)}`,
      ]),
    ];
    if (control.length > 0) {
      this.out("");
      this.out(table([["HELD BACK", "WHAT", "TO LET IT GO"], ...control], look, { header: true }));
    }
    if (answer.endpoints.length > 0) {
      this.out("");
      this.out(endpointTable(answer.endpoints, this.clock.now(), look));
    }
  }
  // Messages need neither engine nor hub.
  const apart: string[] = ["state hub", "engine", "own hub"];
  const sound = parts.every(([name, part]) => part.ok || apart.includes(name));
  return sound ? EXIT.ok : EXIT.failure;
};
export default status;

const AWAY = { ok: true, running: false, detail: "not running" } as const;

/** Where neither was ever started, nothing is loaded to look for them. */
async function coordination(context: CliContext) {
  const settings = await loadSettings(context.env);
  const used = ["coord", "hub"].some((name) => exists(`${settings.stateDir}/${name}`));
  if (!used) return { engine: AWAY, hub: AWAY };
  return await (await late("cli/coordination_health")).coordinationHealth(context, settings);
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** By state, but withdrawn messages apart from those whose delivery failed. */
function messageCounts({ states, cancelled }: WireStatus["queue"]): [string, number][] {
  const counts = Object.entries(states);
  if (!cancelled) return counts; // also of a service that does not tell
  const failed = counts.map(([state, n]): [string, number] => [
    state,
    state === "failed" ? n - cancelled : n,
  ]);
  return [...failed, ["cancelled", cancelled]];
}
