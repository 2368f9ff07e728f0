import assert from "node:assert/strict";
import fc from "fast-check";
import {
  checkpointSubject,
  messageSubject,
  normalize,
  planSubject,
  taskSubject,
} from "../../../lib/coord/normalize.ts";
import { TASK_STATUSES } from "../../../lib/hub/rules.ts";
import type { Change, HubCheckpoint, HubMessage, Task, Workplan } from "../../../lib/hub/schema.ts";
import { collapse, triggerKey } from "../../../lib/model/trigger.ts";

const time = "2030-01-01T00:00:00.000Z";
const shared = {
  needs_human: false,
  required_actions: [],
  revision: 5,
  wake: { revision: 3, reason: "task_actionable" as const },
  created_at: time,
  updated_at: time,
};
const task: Task = {
  task_id: "t",
  workplan: null,
  title: "T",
  description: "",
  repo: "alpha",
  agent: "codex",
  status: "ready",
  block: null,
  dependencies: [],
  unsatisfied: [],
  labels: [],
  priority: 5,
  notes: [],
  completed_at: null,
  ...shared,
};
const plan: Workplan = {
  workplan_id: "p",
  title: "P",
  description: "",
  repo: "alpha",
  agent: null,
  status: "ready",
  labels: [],
  notes: [],
  ...shared,
};
const message: HubMessage = {
  message_id: "m",
  sender: "beta",
  target_repo: "alpha",
  target_agent: null,
  subject: "S",
  body: "B",
  requests_action: true,
  task_id: null,
  state: "unread",
  read_at: null,
  acknowledged_at: null,
  ...shared,
};
const checkpoint: HubCheckpoint = {
  checkpoint_id: "c",
  lease_id: "l",
  task_id: "t",
  repo: "alpha",
  summary: "S",
  files_changed: [],
  next_action: "go on",
  blocked_reason: null,
  recorded_at: time,
};

let made = 0;
const observe = () => ({ observedAt: time, newId: () => `id${++made}` });
const of = (kind: string, source_id: string, record: unknown) =>
  ({ cursor: "x", kind, source_id, changed_at: time, record }) as Change;
const trigger = (kind: string, id: string, record: unknown) =>
  normalize(of(kind, id, record), observe());

Deno.test("[K-02] each kind of source becomes the trigger that the contract describes", () => {
  const { id, ...first } = trigger("task", "t", task)!;
  assert.match(id, /^id\d+$/);
  assert.deepEqual(first, {
    source: "task",
    source_id: "t",
    source_revision: "3",
    target_repo: "alpha",
    target_agent: "codex",
    reason: "task_actionable",
    observed_at: time,
  });
  const freed = { ...task, wake: { revision: 4, reason: "dependency_satisfied" } };
  assert.equal(trigger("task", "t", freed)!.reason, "dependency_satisfied");
  assert.equal(trigger("message", "m", message)!.reason, "inbox_message");
  assert.equal(trigger("checkpoint", "c", checkpoint)!.reason, "checkpoint_resume");
  assert.equal(trigger("workplan", "p", plan)!.source, "workplan");
  assert.equal("target_agent" in trigger("message", "m", message)!, false);
});

Deno.test("[K-02] what nobody has to act on makes no trigger", () => {
  for (const status of TASK_STATUSES) {
    const expected = status === "ready" || status === "active" || status === "blocked";
    const block = status === "blocked" ? { kind: "human", note: "", blocked_at: time } : null;
    assert.equal(trigger("task", "t", { ...task, status, block }) !== undefined, expected, status);
  }
  assert.equal(trigger("workplan", "p", { ...plan, status: "active" }), undefined);
  assert.equal(trigger("workplan", "p", { ...plan, repo: null }), undefined);
  assert.equal(trigger("message", "m", { ...message, state: "acknowledged" }), undefined);
  assert.equal(trigger("receipt", "r", { receipt_id: "r" }), undefined);
  const { next_action: _, ...ended } = checkpoint;
  assert.equal(trigger("checkpoint", "c", ended), undefined);
});

Deno.test("[K-02] a record filed under another id is refused", () => {
  assert.throws(() => trigger("task", "other", task), { reason: "answer_invalid" });
});

Deno.test("[K-02] repeats and reorderings of observations collapse to one trigger a key", () => {
  const word = fc.constantFrom("a", "b", 'a","b', "a b", "");
  fc.assert(fc.property(
    fc.array(fc.tuple(word, word, fc.constantFrom("alpha", "beta")), { maxLength: 30 }),
    (seen) => {
      const triggers = seen.map(([source_id, source_revision, target_repo], i) => ({
        ...trigger("task", "t", task)!,
        id: `n${i}`,
        source_id,
        source_revision,
        target_repo,
      }));
      const kept = collapse(triggers);
      assert.equal(kept.length, new Set(seen.map((parts) => parts.join("\0"))).size);
      assert.equal(new Set(kept.map(triggerKey)).size, kept.length);
      assert.equal(collapse([...kept, ...triggers.toReversed()]).length, kept.length);
    },
  ));
});

Deno.test("[K-03][K-04] facts for the gates come from the record alone", () => {
  const review = {
    note_id: "n",
    text: "stop",
    requests_review: true,
    author: "me",
    created_at: time,
    resolved_at: null as string | null,
  };
  const subject = taskSubject({
    ...task,
    status: "blocked",
    needs_human: true,
    notes: [review],
    unsatisfied: ["x"],
    workplan: { workplan_id: "p", status: "paused", gated: true },
    required_actions: ["legal"],
  });
  // Blocked without a reason, as a hostile hub might say: a person's business.
  assert.deepEqual(subject, {
    repo: "alpha",
    revision: "3",
    phase: "open",
    block: "human",
    needsHuman: true,
    reviewRequested: true,
    plan: { open: false, gated: true },
    unsatisfied: 1,
    asksForAction: true,
    requiredActions: ["legal"],
  });
  assert.equal(
    taskSubject({ ...task, notes: [{ ...review, resolved_at: time }] }).reviewRequested,
    false,
  );
  assert.equal(planSubject({ ...plan, status: "paused" }).phase, "draft");
  assert.equal(messageSubject({ ...message, requests_action: false }).asksForAction, false);
});

Deno.test("[K-11] a checkpoint's own gate is not hidden by its task, nor the task's by the checkpoint", () => {
  const waiting = {
    ...task,
    status: "blocked" as const,
    block: { kind: "dependency" as const, note: "", blocked_at: time },
  };
  const secret = { ...checkpoint, blocked_reason: "secret" as const };
  assert.equal(checkpointSubject(secret, waiting).block, "secret");
  const human = { ...waiting, block: { ...waiting.block, kind: "human" as const } };
  assert.equal(
    checkpointSubject({ ...checkpoint, blocked_reason: "unavailable" }, human).block,
    "human",
  );
  assert.equal(
    checkpointSubject({ ...checkpoint, blocked_reason: "unavailable" }, undefined).block,
    "unavailable",
  );
  assert.equal(checkpointSubject(checkpoint, { ...task, needs_human: true }).needsHuman, true);
});
