/** Where a worker stands when it yields or stops (K-11). */

export const BLOCKED_REASONS = [
  "human",
  "secret",
  "destructive",
  "policy",
  "dependency",
  "unavailable",
] as const;
export type BlockedReason = typeof BLOCKED_REASONS[number];

export interface Checkpoint {
  readonly lease_id: string;
  readonly task_id?: string;
  readonly summary: string;
  readonly files_changed: readonly string[];
  readonly next_action?: string;
  readonly blocked_reason: BlockedReason | null;
  /** RFC 3339, UTC. */
  readonly recorded_at: string;
}

/** Sizes in characters; a checkpoint goes into a prompt of at most 8 KiB. */
export const CHECKPOINT_LIMITS = Object.freeze({
  summary: 2000,
  nextAction: 1000,
  files: 200,
  file: 1024,
});

/** A block that only a person can lift; the others pass by themselves (K-11). */
export function isGate(reason: BlockedReason | null): boolean {
  return reason !== null && reason !== "dependency" && reason !== "unavailable";
}

/** The later one; of two of the same moment the second, which was read later. */
export function latest(a: Checkpoint | undefined, b: Checkpoint): Checkpoint {
  return a !== undefined && Date.parse(a.recorded_at) > Date.parse(b.recorded_at) ? a : b;
}
