/** `tamq coord status|triggers|leases|explain|approve`. */
import { TamqError } from "../../base/errors.ts";
import type { Verb } from "../command.ts";
import { EXIT } from "../exit_codes.ts";
import { type Cell, lookOf, table } from "../layout.ts";
import { relativeTime } from "../render.ts";
import { askEngine, type LeaseAnswer } from "./coord_call.ts";
import type { JsonFlag } from "./service.ts";

interface Health {
  readonly ok: boolean;
  readonly detail: string;
}
interface Status {
  readonly engine: Health & { pid: number; socket: string; policy_profile: string };
  readonly sqlite: Health & { path: string };
  readonly gita: Health;
  readonly state_hub: Health;
  readonly message_service: Health & { windows: number };
  readonly triggers: Record<string, number>;
  readonly leases: { held: number };
  readonly projection: { waiting: number };
}

const health = ({ ok }: Health): Cell =>
  ok ? { text: "ok", style: "green" } : { text: "NOT OK", style: "red" };

export const status: Verb<JsonFlag> = async function ({ json }) {
  const answer = await askEngine<Status>(this, "status", {});
  const parts = [
    ["engine", answer.engine],
    ["sqlite", answer.sqlite],
    ["gita", answer.gita],
    ["state hub", answer.state_hub],
    ["messages", answer.message_service],
  ] as const;
  if (json) this.out(JSON.stringify(answer));
  else {
    const counts = Object.entries(answer.triggers).map(([state, n]) => `${n} ${state}`).join(", ");
    this.out(table(parts.map(([name, part]) => [name, health(part), part.detail]), lookOf(this)));
    this.out("");
    this.out(table([
      ["pid", String(answer.engine.pid)],
      ["socket", answer.engine.socket],
      ["database", answer.sqlite.path],
      ["policy", answer.engine.policy_profile],
      ["triggers", counts === "" ? "none" : counts],
      ["leases", `${answer.leases.held} held`],
      ["unpublished", String(answer.projection.waiting)],
    ], lookOf(this)));
  }
  return parts.every(([, part]) => part.ok) ? EXIT.ok : EXIT.failure;
};

interface TriggerAnswer {
  readonly id: string;
  readonly source: string;
  readonly source_id: string;
  readonly target_repo: string;
  readonly state: string;
  readonly decision: string;
  readonly gates: readonly string[];
  readonly attempts: number;
  readonly due_at: string | null;
}

export interface TriggerFlags extends JsonFlag {
  readonly state?: "waiting" | "gated" | "leased" | "done" | "stopped";
  readonly repo?: string;
  readonly limit?: number;
}
export const triggers: Verb<TriggerFlags> = async function ({ state, repo, limit, json }) {
  const request = JSON.parse(JSON.stringify({ state, repo, limit })); // absent ones left out
  const answer = await askEngine<{ triggers: TriggerAnswer[] }>(this, "triggers", request);
  if (json) {
    for (const one of answer.triggers) this.out(JSON.stringify(one));
    return;
  }
  if (answer.triggers.length === 0) return this.out("no triggers");
  this.out(table(
    [
      ["TRIGGER", "SOURCE", "REPOSITORY", "STATE", "WHY", "GATES"],
      ...answer.triggers.map((one) => [
        one.id,
        `${one.source} ${one.source_id}`,
        one.target_repo,
        one.state,
        one.decision,
        one.gates.join(", "),
      ]),
    ],
    lookOf(this),
    { header: true },
  ));
};

export interface LeaseFlags extends JsonFlag {
  readonly all?: boolean;
  readonly limit?: number;
}
export const leases: Verb<LeaseFlags> = async function ({ all, limit, json }) {
  const request = JSON.parse(JSON.stringify({ all, limit }));
  const answer = await askEngine<{ leases: LeaseAnswer[] }>(this, "leases", request);
  if (json) {
    for (const one of answer.leases) this.out(JSON.stringify(one));
    return;
  }
  if (answer.leases.length === 0) return this.out("no leases");
  const now = this.clock.now();
  this.out(table(
    [
      ["LEASE", "REPOSITORY", "STATE", "ATTEMPT", "EXPIRES", "MESSAGE"],
      ...answer.leases.map((one) => [
        one.lease,
        one.target_repo,
        one.state,
        String(one.attempt),
        one.held ? relativeTime(one.expires_at, now) : "",
        one.local_message_id === null ? "" : `${one.local_message_id} ${one.message_state ?? ""}`,
      ]),
    ],
    lookOf(this),
    { header: true },
  ));
};

interface ExplainAnswer {
  readonly explanations: readonly {
    readonly trigger: TriggerAnswer & { reason: string; observed_at: string };
    readonly why: string;
    readonly waits_for: readonly string[];
    readonly leases: readonly { lease_id: string; state: string; attempt: number }[];
    readonly receipts: readonly {
      readonly kind: string;
      readonly status: string;
      readonly reason?: string;
      readonly gate?: string;
      readonly recorded_at: string;
    }[];
  }[];
}

export const explain: Verb<JsonFlag, [string]> = async function ({ json }, id) {
  const { explanations } = await askEngine<ExplainAnswer>(this, "explain", { id });
  if (json) {
    for (const one of explanations) this.out(JSON.stringify(one));
    return;
  }
  const now = this.clock.now();
  explanations.forEach(({ trigger, why, waits_for, receipts }, index) => {
    if (index > 0) this.out("");
    this.out(table([
      ["trigger", `${trigger.id} (${trigger.reason})`],
      ["source", `${trigger.source} ${trigger.source_id} for ${trigger.target_repo}`],
      ["state", `${trigger.state}: ${why}`],
      ...(trigger.state === "gated" ? trigger.gates : []).map((gate) => [
        "to open it",
        `tamq coord approve ${trigger.id} --action ${gate} --why TEXT`,
      ]),
      ...(waits_for.length === 0 ? [] : [["waits for", waits_for.join(", ")]]),
      ...(trigger.due_at === null ? [] : [["next look", relativeTime(trigger.due_at, now)]]),
    ], lookOf(this)));
    const rows = receipts.map((one) => [
      `  ${relativeTime(one.recorded_at, now)}`,
      one.kind,
      one.status,
      [one.gate, one.reason].filter((word) => word !== undefined).join(": "),
    ]);
    if (rows.length > 0) this.out(table(rows, lookOf(this)));
  });
};

export interface ApproveFlags extends JsonFlag {
  readonly action: string;
  readonly why: string;
}
export const approve: Verb<ApproveFlags, [string]> = async function (flags, trigger_id) {
  if (!this.stdinIsTerminal()) {
    throw new TamqError(
      "PERMISSION_DENIED",
      "not_a_terminal",
      "an approval is typed by a person at a terminal",
      { hint: "run it in a terminal outside the windows that tamq opened" },
    );
  }
  const { action, why, json } = flags;
  const asked = await askEngine<{ challenge: string; trigger: TriggerAnswer }>(
    this,
    "challenge",
    { trigger_id, action },
  );
  const { trigger } = asked;
  this.err(table([
    ["trigger", trigger.id],
    ["source", `${trigger.source} ${trigger.source_id} for ${trigger.target_repo}`],
    ["gate", `${action} (${trigger.decision})`],
  ], lookOf(this)));
  const typed = await this.ask(`To open it, type ${asked.challenge}: `);
  if (typed !== asked.challenge) {
    throw new TamqError("PERMISSION_DENIED", "challenge_wrong", "nothing was approved", {
      hint: "type the word exactly",
    });
  }
  const done = await askEngine<{ approval_id: string; expires_at: string }>(this, "approve", {
    trigger_id,
    action,
    why,
    challenge: asked.challenge,
  });
  if (json) return this.out(JSON.stringify(done));
  this.out(`approved; it expires ${relativeTime(done.expires_at, this.clock.now())}`);
};
