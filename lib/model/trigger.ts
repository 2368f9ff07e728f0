/** What makes a worker worth waking (K-02). */

export const TRIGGER_SOURCES = ["workplan", "task", "message", "checkpoint"] as const;
export type TriggerSource = typeof TRIGGER_SOURCES[number];

export const TRIGGER_REASONS = [
  "task_actionable",
  "dependency_satisfied",
  "inbox_message",
  "retry_due",
  "checkpoint_resume",
] as const;
export type TriggerReason = typeof TRIGGER_REASONS[number];

export interface WorkerTrigger {
  readonly id: string;
  readonly source: TriggerSource;
  readonly source_id: string;
  readonly source_revision: string;
  readonly target_repo: string;
  readonly target_agent?: string;
  readonly reason: TriggerReason;
  /** RFC 3339, UTC. */
  readonly observed_at: string;
}

/** The part of a trigger that makes it the same trigger when it is seen again. */
export type TriggerIdentity = Pick<
  WorkerTrigger,
  "source" | "source_id" | "source_revision" | "target_repo"
>;

/** The idempotency key: equal for two observations exactly when all four parts are equal. */
export function triggerKey(trigger: TriggerIdentity): string {
  // JSON, since any separator of ours may stand in an id or a repository name.
  return JSON.stringify([
    trigger.source,
    trigger.source_id,
    trigger.source_revision,
    trigger.target_repo,
  ]);
}

/** One trigger a key, the first observation of each; order kept (K-02). */
export function collapse(triggers: Iterable<WorkerTrigger>): WorkerTrigger[] {
  const first = new Map<string, WorkerTrigger>();
  for (const trigger of triggers) {
    const key = triggerKey(trigger);
    if (!first.has(key)) first.set(key, trigger);
  }
  return [...first.values()];
}
