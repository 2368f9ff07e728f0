/** What a worker's window may change in the hub, case by case. */
import assert from "node:assert/strict";
import * as may from "../../../lib/hub/authority.ts";
import { TASK_STATUSES } from "../../../lib/hub/rules.ts";
import type { HubMessage, Task, Workplan } from "../../../lib/hub/schema.ts";
import { BLOCKED_REASONS } from "../../../lib/model/checkpoint.ts";

const time = "2030-01-01T00:00:00.000Z";
const review = {
  note_id: "n1",
  text: "show me",
  requests_review: true,
  author: "operator",
  created_at: time,
  resolved_at: null,
};
const remark = { ...review, note_id: "n2", requests_review: false };
const task = {
  task_id: "t",
  workplan: { workplan_id: "p", status: "paused", gated: false },
  repo: "alpha",
  agent: null,
  status: "ready",
  block: null,
  dependencies: ["a", "b"],
  notes: [review, remark],
  needs_human: true,
  required_actions: ["destructive", "repo_edit"],
} as unknown as Task;
const plan = {
  workplan_id: "p",
  repo: "alpha",
  agent: null,
  status: "active",
  notes: [review, remark],
  needs_human: true,
  required_actions: ["financial"],
} as unknown as Workplan;
const blocked = (kind: string) =>
  ({ ...task, status: "blocked", block: { kind, note: "", blocked_at: time } }) as Task;

const OPERATOR = { kind: "operator" } as const;
const TOKEN = { kind: "token" } as const;
const ALPHA = { kind: "window", repo: "alpha" } as const;
const BETA = { kind: "window", repo: "beta" } as const;

function reason(work: () => void): string {
  try {
    work();
    return "ok";
  } catch (error) {
    return (error as { reason: string }).reason;
  }
}
const edit = (caller: may.Caller, change: Parameters<typeof may.mayEditTask>[2], before = task) =>
  reason(() => may.mayEditTask(caller, before, change));
const editPlan = (
  caller: may.Caller,
  change: Parameters<typeof may.mayEditPlan>[2],
  before = plan,
) => reason(() => may.mayEditPlan(caller, before, change));

Deno.test("[K-04][K-19][T-27] no change that opens a gate of a task is a window's or a token's to make; each is the operator's", () => {
  const changes = [
    { needs_human: false },
    { required_actions: [] },
    { required_actions: ["repo_edit"] },
    { required_actions: ["repo_edit", "destructive-not"] },
    { repo: "beta" },
    { agent: "claude" },
    { workplan_id: null },
    { workplan_id: "q" },
    { dependencies: [] },
    { dependencies: ["a", "c"] },
    { title: "harmless", needs_human: false },
    { status: "done", needs_human: false },
  ] as const;
  for (const change of changes) {
    const body = change as Parameters<typeof may.mayEditTask>[2];
    assert.equal(edit(ALPHA, body), "worker_refused", JSON.stringify(change));
    assert.equal(edit(TOKEN, body), "operator_only", JSON.stringify(change));
    assert.equal(edit(OPERATOR, body), "ok");
    assert.equal(edit(BETA, body), "other_repository");
  }
  const resolve = (caller: may.Caller, id: string) =>
    reason(() => may.mayResolve(caller, "it", task, id));
  assert.deepEqual([ALPHA, TOKEN, OPERATOR, BETA].map((caller) => resolve(caller, "n1")), [
    "worker_refused",
    "operator_only",
    "ok",
    "other_repository",
  ]);
  assert.equal(resolve(ALPHA, "n2"), "ok");
});

Deno.test("[K-04][K-11] a block that asks for a person is lifted by the operator alone; its worker may finish", () => {
  for (const kind of BLOCKED_REASONS) {
    const gating = !["dependency", "unavailable"].includes(kind);
    for (const status of TASK_STATUSES) {
      const allowed = !gating || ["blocked", "done", "cancelled"].includes(status);
      const said = `${kind} to ${status}`;
      assert.equal(edit(ALPHA, { status }, blocked(kind)), allowed ? "ok" : "worker_refused", said);
      assert.equal(edit(TOKEN, { status }, blocked(kind)), allowed ? "ok" : "operator_only", said);
      assert.equal(edit(OPERATOR, { status }, blocked(kind)), "ok", said);
    }
    const other = { block: { kind: "dependency", note: "" } } as const;
    const same = kind === "dependency" || !gating;
    assert.equal(edit(ALPHA, other, blocked(kind)), same ? "ok" : "worker_refused", kind);
  }
});

Deno.test("[K-07][K-19] a window reports on its own work, raises its gates, and adds to its dependencies", () => {
  const changes = [
    { status: "active" },
    { status: "done" },
    { status: "blocked", block: { kind: "human", note: "which?" } },
    { status: "cancelled" },
    { title: "x", description: "y", labels: ["z"], priority: 1 },
    { required_actions: ["destructive", "repo_edit", "financial"] },
    { dependencies: ["b", "a", "c"] },
    { needs_human: true },
    { repo: "alpha", agent: null, workplan_id: "p" },
  ] as Parameters<typeof may.mayEditTask>[2][];
  for (const change of changes) {
    assert.equal(edit(ALPHA, change), "ok", JSON.stringify(change));
    assert.equal(edit(TOKEN, change), "ok");
    assert.equal(edit(BETA, change), "other_repository");
  }
});

Deno.test("[K-04][K-19] plans: a window ends and holds its own, and opens none", () => {
  const held = { ...plan, status: "paused" } as Workplan;
  for (const status of ["ready", "active"] as const) {
    assert.equal(editPlan(ALPHA, { status }, held), "worker_refused");
    assert.equal(editPlan(TOKEN, { status }, held), "operator_only");
    assert.equal(editPlan(OPERATOR, { status }, held), "ok");
    assert.equal(editPlan(ALPHA, { status }), "ok");
  }
  for (
    const change of [
      { needs_human: false },
      { required_actions: [] },
      { repo: null },
      { repo: "beta" },
      { agent: "x" },
    ]
  ) {
    assert.equal(editPlan(ALPHA, change), "worker_refused", JSON.stringify(change));
    assert.equal(editPlan(TOKEN, change), "operator_only");
    assert.equal(editPlan(BETA, change), "other_repository");
  }
  for (const status of ["paused", "done", "cancelled"] as const) {
    assert.equal(editPlan(ALPHA, { status }), "ok");
    assert.equal(editPlan(BETA, { status }), "other_repository");
  }
  const nobodys = { ...plan, repo: null } as Workplan;
  assert.equal(editPlan(ALPHA, { status: "done" }, nobodys), "other_repository");
});

Deno.test("[B-04][K-14][K-19] notes, messages, checkpoints and receipts: a window's bear its name, and it stops nobody else's work", () => {
  const note = (caller: may.Caller, requests_review: boolean, author?: string) =>
    reason(() => may.mayNote(caller, "it", "alpha", { text: "x", requests_review, author }));
  assert.equal(note(ALPHA, true), "ok");
  assert.equal(note(BETA, false), "ok");
  assert.equal(note(BETA, true), "other_repository");
  assert.equal(note(BETA, false, "operator"), "sender_refused");
  assert.equal(note(BETA, false, "beta"), "ok");
  assert.equal(note(OPERATOR, true, "anna"), "ok");

  const message = { target_repo: "beta", subject: "x", body: "", requests_action: true };
  const send = (caller: may.Caller, sender?: string) =>
    reason(() => may.maySend(caller, { ...message, sender }));
  assert.equal(send(ALPHA), "ok");
  assert.equal(send(ALPHA, "alpha"), "ok");
  assert.equal(send(ALPHA, "operator"), "sender_refused");
  assert.equal(send(ALPHA, "coordination-engine"), "sender_refused");
  assert.equal(send(OPERATOR, "anna"), "ok");
  const receive = (caller: may.Caller) =>
    reason(() =>
      may.mayReceive(caller, { message_id: "m", target_repo: "beta" } as unknown as HubMessage)
    );
  assert.equal(receive(ALPHA), "other_repository");
  assert.equal(receive(BETA), "ok");
  assert.equal(receive(TOKEN), "ok");

  const checkpoint = { lease_id: "l", repo: "alpha" } as Parameters<typeof may.mayCheckpoint>[1];
  assert.equal(reason(() => may.mayCheckpoint(BETA, checkpoint)), "other_repository");
  assert.equal(reason(() => may.mayCheckpoint(ALPHA, checkpoint)), "ok");
  assert.equal(reason(() => may.mayPublish(ALPHA)), "worker_refused");
  assert.equal(reason(() => may.mayPublish(TOKEN)), "ok");
  assert.deepEqual([ALPHA, OPERATOR, TOKEN].map(may.nameOf), ["alpha", "operator", "token"]);
});
