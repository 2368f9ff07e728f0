/** What the engine keeps (K-08). Times are epoch milliseconds of {@link Steady} unless said otherwise. */
import type { LeaseState, WorkerLease } from "../model/coord_lease.ts";
import type { TriggerReason, TriggerSource } from "../model/trigger.ts";
import type { Subject } from "./gates.ts";

/** `waiting`: looked at again by itself. The last two are ends. */
export const TRIGGER_STATES = ["waiting", "gated", "leased", "done", "stopped"] as const;
export type TriggerState = typeof TRIGGER_STATES[number];

export interface TriggerRow {
  readonly triggerId: string;
  readonly source: TriggerSource;
  readonly sourceId: string;
  readonly sourceRevision: string;
  readonly targetRepo: string;
  readonly targetAgent: string | null;
  readonly reason: TriggerReason;
  /** Wall time, for people. */
  readonly observedAt: number;
  readonly state: TriggerState;
  /** Why it is in that state: the last decision. */
  readonly decision: string;
  /** Gates that are or were shut: they stay so until somebody approves (K-04). */
  readonly gates: readonly string[];
  readonly gatedAttempts: number;
  /** Leases that ended without a result. */
  readonly attempts: number;
  /** Not to be looked at before. */
  readonly dueAt: number;
  /** 0 (first) to 9. */
  readonly priority: number;
}

/** What the hub last said of a source. */
export interface SourceRow {
  readonly revision: number;
  readonly subject: Subject;
  /** Ids of dependencies that are not done. */
  readonly waitsFor: readonly string[];
  readonly priority: number;
}

export interface LeaseRow {
  readonly leaseId: string;
  readonly triggerId: string;
  readonly fencingToken: number;
  readonly targetRepo: string;
  readonly targetAgent: string | null;
  readonly state: LeaseState;
  readonly held: boolean;
  readonly attempt: number;
  readonly acquiredAt: number;
  readonly expiresAt: number;
  readonly lastCheckpointAt: number | null;
  readonly policyProfile: string;
  readonly policyVersion: string;
  readonly configVersion: string;
  /** The stored prompt: every try of the wake sends these very bytes (K-06). */
  readonly prompt: string;
  readonly resumed: boolean;
  /** Where it was sent; null until the transport has admitted it. */
  readonly endpointId: string | null;
  readonly coordEndpointId: string | null;
  readonly messageId: string | null;
  readonly messageState: string | null;
  /** When the message was seen written into the terminal: from then on an answer is due (K-07). */
  readonly shownAt: number | null;
}

export interface CheckpointRow {
  readonly checkpointId: string;
  readonly leaseId: string;
  readonly triggerId: string;
  readonly source: TriggerSource;
  readonly sourceId: string;
  readonly repo: string;
  /** A `Checkpoint` as JSON. */
  readonly record: string;
  readonly createdAt: number;
}

export interface ApprovalRow {
  readonly approvalId: string;
  readonly triggerId: string;
  readonly action: string;
  readonly recordedAt: number;
  readonly expiresAt: number;
}

export interface EndpointRow {
  readonly coordEndpointId: string;
  readonly endpointId: string;
  /** Start identity of its tmux server: a reused pid is another endpoint. */
  readonly generation: string;
  readonly session: string;
  readonly protocol: string;
  readonly attachedAt: number | null;
}

/** The contract's form of a lease. */
export function leaseView(row: LeaseRow, time: (ms: number) => string): WorkerLease {
  return {
    trigger_id: row.triggerId,
    lease_id: row.leaseId,
    owner: "coordination-engine",
    target_repo: row.targetRepo,
    ...(row.targetAgent !== null && { target_agent: row.targetAgent }),
    state: row.state,
    attempt: row.attempt,
    acquired_at: time(row.acquiredAt),
    expires_at: time(row.expiresAt),
    ...(row.lastCheckpointAt !== null && { last_checkpoint_at: time(row.lastCheckpointAt) }),
    ...(row.coordEndpointId !== null && { coordination_endpoint_id: row.coordEndpointId }),
    ...(row.messageId !== null && { local_lease_id: row.messageId }),
  };
}
