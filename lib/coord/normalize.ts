/**
 * State Hub changes to triggers, and to the facts that the gates look at (K-02). Pure: the same
 * change gives the same trigger key however often and in whatever order it is seen.
 */
import { TamqError } from "../base/errors.ts";
import { isGate } from "../model/checkpoint.ts";
import type { TriggerReason, WorkerTrigger } from "../model/trigger.ts";
import type { Change, HubCheckpoint, HubMessage, Task, Workplan } from "../hub/schema.ts";
import type { Subject } from "./gates.ts";

export interface Observation {
  /** RFC 3339, UTC. */
  readonly observedAt: string;
  readonly newId: () => string;
}

/** What a change says about whom to wake; nothing for what nobody has to act on. */
export function normalize(change: Change, observation: Observation): WorkerTrigger | undefined {
  requireOwnId(change);
  const wanted = wish(change);
  if (wanted === undefined) return undefined;
  const { repo, agent, revision, reason } = wanted;
  return {
    id: observation.newId(),
    // `wish` has none for receipts, which are the engine's own words.
    source: change.kind as WorkerTrigger["source"],
    source_id: change.source_id,
    source_revision: revision,
    target_repo: repo,
    ...(agent !== null && { target_agent: agent }),
    reason,
    observed_at: observation.observedAt,
  };
}

interface Wish {
  readonly repo: string;
  readonly agent: string | null;
  readonly revision: string;
  readonly reason: TriggerReason;
}

function wish(change: Change): Wish | undefined {
  switch (change.kind) {
    case "workplan": {
      const { repo, agent, status, wake } = change.record;
      // An active plan speaks through its tasks; a ready one waits for somebody to take it up.
      if (repo === null || status !== "ready") return undefined;
      return { repo, agent, revision: String(wake.revision), reason: "task_actionable" };
    }
    case "task": {
      const { repo, agent, status, wake } = change.record;
      // Blocked ones as well: their gate is to leave a receipt (K-04).
      if (status !== "ready" && status !== "active" && status !== "blocked") return undefined;
      return { repo, agent, revision: String(wake.revision), reason: wake.reason };
    }
    case "message": {
      const { target_repo, target_agent, state, wake } = change.record;
      if (state === "acknowledged") return undefined;
      return {
        repo: target_repo,
        agent: target_agent,
        revision: String(wake.revision),
        reason: "inbox_message",
      };
    }
    case "checkpoint": {
      const { repo, next_action, blocked_reason } = change.record;
      if (next_action === undefined && blocked_reason === null) return undefined;
      return { repo, agent: null, revision: "1", reason: "checkpoint_resume" };
    }
    case "receipt":
      return undefined;
  }
}

/** A hub that files one record under another's id would let one task wake for another. */
function requireOwnId(change: Change): void {
  if (idOf(change) === change.source_id) return;
  throw new TamqError(
    "UNAVAILABLE",
    "answer_invalid",
    `the State Hub's change names a ${change.kind} that its record is not`,
  );
}

function idOf(change: Change): string {
  switch (change.kind) {
    case "workplan":
      return change.record.workplan_id;
    case "task":
      return change.record.task_id;
    case "message":
      return change.record.message_id;
    case "checkpoint":
      return change.record.checkpoint_id;
    case "receipt":
      return change.record.receipt_id;
  }
}

const NOTHING = { block: null, plan: null, unsatisfied: 0, asksForAction: true } as const;

function hasReviews(notes: Task["notes"]): boolean {
  return notes.some((note) => note.requests_review && note.resolved_at === null);
}

export function taskSubject(task: Task): Subject {
  const { status, workplan } = task;
  return {
    ...NOTHING,
    repo: task.repo,
    revision: String(task.wake.revision),
    phase: status === "ready" || status === "active" || status === "blocked"
      ? "open"
      : status === "draft"
      ? "draft"
      : "finished",
    // A block without its reason is a person's business until somebody says otherwise.
    block: status === "blocked" ? task.block?.kind ?? "human" : null,
    needsHuman: task.needs_human,
    reviewRequested: hasReviews(task.notes),
    plan: workplan === null ? null : {
      open: workplan.status === "ready" || workplan.status === "active",
      gated: workplan.gated,
    },
    unsatisfied: task.unsatisfied.length,
    requiredActions: task.required_actions,
  };
}

export function planSubject(plan: Workplan): Subject {
  const open = plan.status === "ready" || plan.status === "active";
  return {
    ...NOTHING,
    repo: plan.repo ?? "",
    revision: String(plan.wake.revision),
    phase: open
      ? "open"
      : plan.status === "draft" || plan.status === "paused"
      ? "draft"
      : "finished",
    needsHuman: plan.needs_human,
    reviewRequested: hasReviews(plan.notes),
    requiredActions: plan.required_actions,
  };
}

export function messageSubject(message: HubMessage): Subject {
  return {
    ...NOTHING,
    repo: message.target_repo,
    revision: String(message.wake.revision),
    phase: message.state === "acknowledged" ? "finished" : "open",
    needsHuman: message.needs_human,
    reviewRequested: false,
    asksForAction: message.requests_action,
    requiredActions: message.required_actions,
  };
}

/** A checkpoint stands on its task, when it has one: both must let the work go on. */
export function checkpointSubject(checkpoint: HubCheckpoint, task: Task | undefined): Subject {
  const own = checkpoint.blocked_reason;
  const below = task === undefined ? undefined : taskSubject(task);
  return {
    ...NOTHING,
    phase: "open",
    needsHuman: false,
    reviewRequested: false,
    requiredActions: [],
    ...below,
    repo: checkpoint.repo,
    revision: "1",
    // The graver of the two: a gate is not hidden by a block that passes by itself.
    block: isGate(own) ? own : below?.block ?? own,
  };
}
