/**
 * The decision whether a trigger may wake a worker (K-03, K-04, K-05, K-13): one total, pure
 * function over facts. A gate is opened by a recorded approval of a person and by nothing else; the
 * gates of identity, authentication and secrets in a prompt by nothing at all.
 */
import type { BlockedReason } from "../model/checkpoint.ts";
import type { PolicyProfile } from "../model/policy.ts";
import type { TriggerSource, WorkerTrigger } from "../model/trigger.ts";

/** What is now known of the trigger's source. */
export interface Subject {
  readonly repo: string;
  /** Its current wake revision: an older trigger is superseded. */
  readonly revision: string;
  readonly phase: "draft" | "open" | "finished";
  readonly block: BlockedReason | null;
  readonly needsHuman: boolean;
  /** An intervention note asks for review. */
  readonly reviewRequested: boolean;
  readonly plan: { readonly open: boolean; readonly gated: boolean } | null;
  /** Dependencies that are not done. */
  readonly unsatisfied: number;
  /** For messages: whether action is asked for explicitly. */
  readonly asksForAction: boolean;
  readonly requiredActions: readonly string[];
}

/** The addressed repository and its window, as registry and transport vouch for them. */
export interface Target {
  readonly registration: "registered" | "unregistered" | "ambiguous";
  readonly session: "authenticated" | "unauthenticated" | "absent" | "several";
  /** Whether the session's slug and path are those of the registry. */
  readonly identity: "matches" | "mismatch" | "unknown";
}

/** A person's recorded yes to one gate of one trigger; itself a receipt, and it expires. */
export interface Approval {
  readonly approvalId: string;
  readonly triggerId: string;
  /** The gate that it opens. */
  readonly action: string;
  /** Epoch ms. */
  readonly recordedAt: number;
  readonly expiresAt: number;
}

export interface Facts {
  /** Epoch ms. */
  readonly now: number;
  /** Undefined: the source is gone. */
  readonly subject: Subject | undefined;
  readonly target: Target;
  readonly ownership: "clear" | "ambiguous";
  /** Whether a secret was found in the prompt; undefined: not looked at yet. */
  readonly promptSecret: boolean | undefined;
  /** Gates that stopped this very trigger before: they stay shut until approved (K-04). */
  readonly gatesBefore: readonly string[];
  readonly approvals: readonly Approval[];
  readonly lease: "none" | "held" | "completed";
  /** Leases of this trigger that ended without a result. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** Epoch ms; undefined: at once. */
  readonly nextAttemptAt: number | undefined;
}

export type NotYet =
  | "source_gone"
  | "superseded"
  | "finished"
  | "not_ready"
  | "plan_not_open"
  | "no_action_requested"
  | "lease_completed"
  | "dependencies_unsatisfied"
  | "blocked_dependency"
  | "blocked_unavailable"
  | "lease_held"
  | "attempts_exhausted"
  | "retry_not_allowed"
  | "backing_off"
  | "session_absent"
  | "endpoint_ambiguous"
  | "prompt_unchecked";

export interface Gate {
  /** What an approval must name: a class of action, or one of the gates below. */
  readonly gate: string;
  readonly reason: string;
  readonly approvable: boolean;
}

export type Decision =
  | { readonly kind: "actionable"; readonly approvals: readonly string[] }
  | {
    readonly kind: "gated";
    /** The gravest one's reason. */
    readonly reason: string;
    /** All that are shut, gravest first. */
    readonly gates: readonly Gate[];
  }
  | { readonly kind: "not_yet"; readonly reason: NotYet };

/** Gates that no approval opens. */
export const NEVER_APPROVABLE = ["identity", "authentication", "prompt_secret"] as const;

/** The gate that a block shuts; those without one pass by themselves (K-11). */
export const BLOCK_GATES: Readonly<Record<BlockedReason, string | undefined>> = {
  human: "human_review",
  secret: "secrets",
  destructive: "destructive",
  policy: "policy_decision",
  dependency: undefined,
  unavailable: undefined,
};

type When = (subject: Subject, facts: Facts, policy: PolicyProfile) => boolean;

/** Gates of fixed name, gravest first: what is shut when. */
const GATES: readonly (readonly [gate: string, reason: string, when: When])[] = [
  ["identity", "repository_unregistered", (_, f) => f.target.registration === "unregistered"],
  ["identity", "repository_ambiguous", (_, f) => f.target.registration === "ambiguous"],
  ["authentication", "session_unauthenticated", (_, f) => f.target.session === "unauthenticated"],
  ["identity", "identity_mismatch", (_, f) => f.target.identity === "mismatch"],
  [
    "identity",
    "identity_unknown",
    (_, f) => f.target.session === "authenticated" && f.target.identity === "unknown",
  ],
  ["prompt_secret", "secret_in_prompt", (_, f) => f.promptSecret === true],
  ["human_review", "needs_human", (s) => s.needsHuman],
  ["human_review", "review_requested", (s) => s.reviewRequested],
  ["human_review", "plan_gated", (s) => s.plan?.gated === true],
  ["ambiguous_ownership", "ownership_ambiguous", (_, f) => f.ownership === "ambiguous"],
  ["tmux_wake", "action_not_allowed", (_s, _f, p) => !p.allow.includes("tmux_wake")],
];

/** All gates that apply, open or not; also those that a retry setting or a later calm would hide. */
function gatesOf(subject: Subject, facts: Facts, policy: PolicyProfile): Gate[] {
  const found = new Map<string, Gate>();
  const add = (gate: string, reason: string) => {
    const approvable = !(NEVER_APPROVABLE as readonly string[]).includes(gate);
    if (!found.has(gate)) found.set(gate, { gate, reason, approvable });
  };
  for (const [gate, reason, when] of GATES) {
    if (when(subject, facts, policy)) add(gate, reason);
  }
  const blocked = subject.block === null ? undefined : BLOCK_GATES[subject.block];
  if (blocked !== undefined) add(blocked, `blocked_${subject.block}`);
  for (const action of subject.requiredActions) {
    if (policy.requireHuman.includes(action)) add(action, "action_requires_human");
    else if (!policy.allow.includes(action)) add(action, "action_not_allowed");
  }
  for (const gate of facts.gatesBefore) add(gate, "gated_before");
  return [...found.values()];
}

function approvalFor(gate: Gate, trigger: WorkerTrigger, facts: Facts): Approval | undefined {
  if (!gate.approvable) return undefined;
  return facts.approvals.find((approval) =>
    approval.triggerId === trigger.id && approval.action === gate.gate &&
    approval.recordedAt <= facts.now && facts.now < approval.expiresAt
  );
}

/** Why the source itself asks for nothing now; nothing a person would have to decide. */
const IDLE: readonly (readonly [NotYet, (s: Subject, t: WorkerTrigger, f: Facts) => boolean])[] = [
  ["superseded", (s, t) => s.revision !== t.source_revision || s.repo !== t.target_repo],
  ["finished", (s) => s.phase === "finished"],
  ["not_ready", (s) => s.phase === "draft"],
  ["plan_not_open", (s) => s.plan !== null && !s.plan.open],
  ["no_action_requested", (s, t) => t.source === "message" && !s.asksForAction],
  ["lease_completed", (_s, _t, f) => f.lease === "completed"],
];

/** A message that asks for action does not wait for anybody's dependencies (K-03). */
const WAITS: Readonly<Record<TriggerSource, boolean>> = {
  task: true,
  workplan: true,
  checkpoint: true,
  message: false,
};

/** What has to pass by itself before a wake, in the order in which it is told. */
const WAITING: readonly (readonly [
  NotYet,
  (s: Subject, t: WorkerTrigger, f: Facts, p: PolicyProfile) => boolean,
])[] = [
  ["dependencies_unsatisfied", (s, t) => WAITS[t.source] && s.unsatisfied > 0],
  ["blocked_dependency", (s) => s.block === "dependency"],
  ["blocked_unavailable", (s) => s.block === "unavailable"],
  ["lease_held", (_s, _t, f) => f.lease === "held"],
  ["attempts_exhausted", (_s, _t, f) => f.attempts >= f.maxAttempts],
  [
    "retry_not_allowed",
    (_s, _t, f, p) => f.attempts > 0 && !p.allow.includes("transient_retry"),
  ],
  ["backing_off", (_s, _t, f) => f.nextAttemptAt !== undefined && f.now < f.nextAttemptAt],
  ["session_absent", (_s, _t, f) => f.target.session === "absent"],
  ["endpoint_ambiguous", (_s, _t, f) => f.target.session === "several"],
  ["prompt_unchecked", (_s, _t, f) => f.promptSecret === undefined],
];

/**
 * `actionable`, `gated` or `not_yet`. Total; looks at nothing but its arguments. No field of the
 * policy or of the attempts takes part in opening a gate.
 */
export function evaluate(trigger: WorkerTrigger, facts: Facts, policy: PolicyProfile): Decision {
  const { subject } = facts;
  if (subject === undefined) return { kind: "not_yet", reason: "source_gone" };
  for (const [reason, when] of IDLE) {
    if (when(subject, trigger, facts)) return { kind: "not_yet", reason };
  }
  const approvals: string[] = [];
  const shut: Gate[] = [];
  for (const gate of gatesOf(subject, facts, policy)) {
    const approval = approvalFor(gate, trigger, facts);
    if (approval === undefined) shut.push(gate);
    else approvals.push(approval.approvalId);
  }
  if (shut.length > 0) return { kind: "gated", reason: shut[0]!.reason, gates: shut };
  for (const [reason, when] of WAITING) {
    if (when(subject, trigger, facts, policy)) return { kind: "not_yet", reason };
  }
  return { kind: "actionable", approvals };
}

/**
 * Whether a gated trigger may be looked at again by itself (K-05). Looking again finds the gate as
 * shut as before – {@link Facts.gatesBefore} – unless a person has approved meanwhile.
 */
export function mayLookAgain(policy: PolicyProfile, gatedAttempts: number): boolean {
  return gatedAttempts < policy.safetyGatedMaxAttempts;
}
