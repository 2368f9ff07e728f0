/** Why somebody was woken or was not (K-15): from what the engine decided and did. */
import { rfc3339 } from "../base/clock.ts";
import type { Receipt } from "../model/receipt.ts";
import { leaseView, type TriggerRow } from "./records.ts";
import type { CoordStore } from "./store/store.ts";

export interface Explanation {
  readonly trigger: Record<string, unknown>;
  /** The state in words. */
  readonly why: string;
  readonly waits_for: readonly string[];
  readonly leases: readonly Record<string, unknown>[];
  readonly receipts: readonly Receipt[];
}

/** What a decision means, for people. */
const WORDS: Readonly<Record<string, string>> = {
  observed: "it was seen and is about to be decided",
  actionable: "its worker is being woken or is at work",
  repository_busy: "another piece of work of its repository is under way",
  dependencies_unsatisfied: "tasks that it depends on are not done",
  superseded: "its source has changed since; a newer trigger stands for it",
  finished: "its source is done, cancelled or acknowledged",
  source_gone: "the State Hub has its source no more",
  not_ready: "its source is a draft, or paused",
  plan_not_open: "its workplan is neither ready nor active",
  no_action_requested: "the message asks for no action",
  lease_completed: "its worker has completed it",
  blocked_dependency: "it is blocked by something that others do",
  blocked_unavailable: "something that it needs is not available; it is tried again",
  lease_held: "its worker is at work",
  attempts_exhausted: "every attempt that is allowed ended without a result; look at it",
  retry_not_allowed: "the policy allows no further attempt",
  retry_wait: "an attempt ended without a result; the next one waits for its time",
  session_absent: "no window of its repository is open",
  endpoint_ambiguous: "its repository is open in several tmux servers",
  hub_unreachable: "the State Hub cannot be reached",
  registry_unavailable: "the gita registry cannot be read",
  released: "its worker let go of it",
  stopped_by_worker: "its worker stopped it for good",
  needs_human: "a person is asked for",
  review_requested: "a note asks for review",
  plan_gated: "a person is asked for on its workplan",
  secret_in_prompt: "its text holds what looks like a secret; nobody is woken with that",
  repository_unregistered: "its repository is not in the gita registry",
  repository_ambiguous: "two repositories are registered under its name",
  identity_mismatch: "the window's folder is not the registered one",
  action_requires_human: "it needs an action that the policy leaves to a person",
  action_not_allowed: "it needs an action that the policy does not allow",
  gated_before: "a gate stopped it before and nobody has approved since",
  blocked_human: "it is blocked: a person is asked",
  blocked_secret: "it is blocked: a secret is needed",
  blocked_destructive: "it is blocked: something destructive is needed",
  blocked_policy: "it is blocked: a decision is needed",
};

/** Every trigger of that source, or that one trigger, newest first. */
export function explain(
  store: Pick<CoordStore, "triggers" | "leases" | "journal">,
  id: string,
): Explanation[] {
  const one = store.triggers.get(id);
  const rows = one === undefined ? store.triggers.ofSource(id) : [one];
  return rows.slice(0, 50).map((row) => ({
    trigger: triggerView(row),
    why: whyOf(row),
    waits_for: row.decision === "dependencies_unsatisfied"
      ? store.triggers.source(row.source, row.sourceId)?.waitsFor ?? []
      : [],
    leases: store.leases.ofTrigger(row.triggerId).map((lease) => ({
      ...leaseView(lease, rfc3339),
      local_message_id: lease.messageId,
      message_state: lease.messageState,
    })),
    receipts: store.journal.receiptsOf(row.triggerId),
  }));
}

function whyOf(row: TriggerRow): string {
  const words = WORDS[row.decision] ?? row.decision;
  if (row.state !== "gated") return words;
  return `${words} (gates: ${row.gates.join(", ") || "not to be approved"})`;
}

/** A trigger in the contract's names, with what the engine adds. */
export function triggerView(row: TriggerRow): Record<string, unknown> {
  return {
    id: row.triggerId,
    source: row.source,
    source_id: row.sourceId,
    source_revision: row.sourceRevision,
    target_repo: row.targetRepo,
    target_agent: row.targetAgent,
    reason: row.reason,
    observed_at: rfc3339(row.observedAt),
    state: row.state,
    decision: row.decision,
    gates: row.gates,
    attempts: row.attempts,
    due_at: row.state !== "waiting" || row.dueAt === 0 || row.dueAt > 8.64e15
      ? null
      : rfc3339(row.dueAt),
  };
}
