/**
 * The coordination lease: who is at work on a trigger, as one total function (K-06, K-07). It is
 * another thing than the transport's delivery lease.
 */
import { ok, type Outcome, refused } from "../base/outcome.ts";

export const LEASE_STATES = [
  "offered",
  "acknowledged",
  "running",
  "checkpointed",
  "completed",
  "retry_wait",
  "stopped",
] as const;
export type LeaseState = typeof LEASE_STATES[number];

/** As the contract names its fields. Times are RFC 3339, UTC. */
export interface WorkerLease {
  readonly trigger_id: string;
  readonly lease_id: string;
  readonly owner: "coordination-engine";
  readonly target_repo: string;
  readonly target_agent?: string;
  readonly state: LeaseState;
  /** 1 for the first lease of a trigger. */
  readonly attempt: number;
  readonly acquired_at: string;
  readonly expires_at: string;
  readonly last_checkpoint_at?: string;
  readonly coordination_endpoint_id?: string;
  readonly local_lease_id?: string;
}

/** What the engine keeps beside it: whose term it is, and under which rules it was given (K-13). */
export interface LeaseRecord extends WorkerLease {
  /** Grows with every claim; every later call must name the exact one. */
  readonly fencing_token: number;
  readonly policy_profile: string;
  readonly policy_version: string;
  readonly config_version: string;
}

/** `held`: somebody may still work under it, so no other lease of the trigger may exist. */
export interface LeaseStatus {
  readonly state: LeaseState;
  readonly held: boolean;
}

export type LeaseEvent =
  /** The worker takes the work on. */
  | { readonly type: "acknowledge" }
  /** Still at work – or, while `offered`, still waiting for the worker to be free (K-07). */
  | { readonly type: "renew" }
  | { readonly type: "checkpoint" }
  /** The worker ends it: with its last checkpoint, done, or unable to go on. */
  | { readonly type: "release"; readonly result: "checkpoint" | "completed" | "stopped" }
  /** Nobody renewed it. `capped`: the attempt was the last one allowed. */
  | { readonly type: "expire"; readonly capped: boolean }
  /** The wake could not be delivered at all. */
  | { readonly type: "undeliverable"; readonly capped: boolean }
  /** A safety gate or an operator ends it. */
  | { readonly type: "stop" };
export type LeaseEventType = LeaseEvent["type"];

export const LEASE_EVENTS: readonly LeaseEventType[] = [
  "acknowledge",
  "renew",
  "checkpoint",
  "release",
  "expire",
  "undeliverable",
  "stop",
];

export interface LeaseTransition {
  readonly next: LeaseStatus;
  /** Allowed, and nothing changes: a repeat. */
  readonly noop: boolean;
}
export interface LeaseRefusal {
  /** `lease_lost`: it is over; `not_acknowledged`: work is reported that was never taken on. */
  readonly reason: "lease_lost" | "not_acknowledged" | "invalid_state";
  readonly state: LeaseState;
  readonly event: LeaseEventType;
}
type Result = Outcome<LeaseTransition, LeaseRefusal>;

/** Every status that can occur. */
export const LEASE_STATUSES: readonly LeaseStatus[] = [
  { state: "offered", held: true },
  { state: "acknowledged", held: true },
  { state: "running", held: true },
  { state: "checkpointed", held: true },
  { state: "checkpointed", held: false },
  { state: "completed", held: false },
  { state: "retry_wait", held: false },
  { state: "stopped", held: false },
];

function go(state: LeaseState, held: boolean, noop = false): Result {
  return ok({ next: { state, held }, noop });
}

/** The next status, or a typed refusal; total over every (status, event) pair. */
export function leaseTransition(from: LeaseStatus, event: LeaseEvent): Result {
  const no = (reason: LeaseRefusal["reason"]): Result =>
    refused({ reason, state: from.state, event: event.type });
  if (!from.held) return repeatOfEnd(from, event) ?? no("lease_lost");
  const offered = from.state === "offered";
  switch (event.type) {
    case "acknowledge":
      return offered ? go("acknowledged", true) : go(from.state, true, true);
    case "renew":
      // The engine itself keeps an offer alive while its message waits for a busy agent.
      return offered ? go("offered", true) : go("running", true);
    case "checkpoint":
      return offered ? no("not_acknowledged") : go("checkpointed", true);
    case "release":
      if (offered) return no("not_acknowledged");
      if (event.result === "completed") return go("completed", false);
      if (event.result === "stopped") return go("stopped", false);
      // Letting go with a checkpoint needs one: the next worker starts from it.
      return from.state === "checkpointed" ? go("checkpointed", false) : no("invalid_state");
    case "expire":
      return event.capped ? go("stopped", false) : go("retry_wait", false);
    case "undeliverable":
      if (!offered) return no("invalid_state");
      return event.capped ? go("stopped", false) : go("retry_wait", false);
    case "stop":
      return go("stopped", false);
  }
}

/** A release or stop that is told twice is a no-op, so that a lost answer can be asked for again. */
function repeatOfEnd(from: LeaseStatus, event: LeaseEvent): Result | undefined {
  const same = event.type === "stop" ? from.state === "stopped" : event.type === "release" &&
    from.state === (event.result === "checkpoint" ? "checkpointed" : event.result);
  return same ? go(from.state, false, true) : undefined;
}
