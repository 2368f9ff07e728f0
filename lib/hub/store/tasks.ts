/** Tasks, their dependencies, and what the end of one means for those that waited for it (K-18). */
import { TamqError } from "../../base/errors.ts";
import type { BlockedReason } from "../../model/checkpoint.ts";
import type { BodyOf, ParamsOf, QueryOf } from "../api.ts";
import { findCycle, moveTask, type PlanStatus, satisfies, type TaskStatus } from "../rules.ts";
import type { Note, Task } from "../schema.ts";
import {
  checkRevision,
  flag,
  json,
  type Row,
  type StoreContext,
  time,
  timeOrNull,
  unknown,
  type Value,
  where,
} from "./context.ts";
import { openReviews, type SignedNote, withNote, withResolved } from "./notes.ts";
import { common, defined } from "./plans.ts";
import { refusedMove } from "./refusals.ts";

const SELECT = `SELECT tasks.*, plan.status AS plan_status,
    plan.needs_human = 1 OR plan.open_reviews > 0 AS plan_gated,
    (SELECT json_group_array(depends_on) FROM (SELECT depends_on FROM task_dependencies
      WHERE task_id = tasks.task_id ORDER BY position)) AS dependencies,
    (SELECT json_group_array(depends_on) FROM (SELECT d.depends_on FROM task_dependencies d
      JOIN tasks other ON other.task_id = d.depends_on
      WHERE d.task_id = tasks.task_id AND other.status <> 'done'
      ORDER BY d.position)) AS unsatisfied
  FROM tasks LEFT JOIN workplans plan ON plan.workplan_id = tasks.workplan_id`;

// The value bound to it is not looked at: a condition without a place for one would need its own path.
const ACTIONABLE = `? = 1 AND tasks.status IN ('ready', 'active') AND tasks.needs_human = 0
  AND tasks.open_reviews = 0
  AND (plan.workplan_id IS NULL OR (plan.status IN ('ready', 'active')
    AND plan.needs_human = 0 AND plan.open_reviews = 0))
  AND NOT EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks other
    ON other.task_id = d.depends_on
    WHERE d.task_id = tasks.task_id AND other.status <> 'done')`;

export class Tasks {
  readonly #context: StoreContext;

  constructor(context: StoreContext) {
    this.#context = context;
  }

  find(id: string): Task | undefined {
    const row = this.#context.get(`${SELECT} WHERE tasks.task_id = ?`, id);
    return row && toTask(row);
  }

  get(id: string): Task {
    const task = this.find(id);
    if (task === undefined) throw unknown("task", "unknown_task", id);
    return task;
  }

  *list(query: QueryOf<"listTasks">, after: number): Generator<[seq: number, Task]> {
    const actionable = query.actionable === undefined ? undefined : 1;
    const { sql, values } = where([
      ["tasks.seq > ?", after],
      ["tasks.repo = ?", query.repo],
      ["tasks.agent = ?", query.agent],
      ["tasks.status = ?", query.status],
      ["tasks.workplan_id = ?", query.workplan_id],
      ["EXISTS (SELECT 1 FROM json_each(tasks.labels) WHERE value = ?)", query.label],
      [query.actionable === "false" ? `NOT (${ACTIONABLE})` : `(${ACTIONABLE})`, actionable],
    ]);
    const rows = this.#context.each(`${SELECT} ${sql} ORDER BY tasks.seq`, ...values);
    for (const row of rows) yield [row.seq as number, toTask(row)];
  }

  create(input: BodyOf<"createTask">): Task {
    const id = input.task_id ?? this.#context.newId();
    if (this.find(id) !== undefined) {
      throw new TamqError("ALREADY_EXISTS", "task_exists", `task "${id}" exists already`, {
        hint: "choose another id, or change that one: tamq hub task edit",
      });
    }
    this.#checkPlan(input.workplan_id ?? null);
    const dependencies = this.#checkDependencies(id, input.dependencies ?? []);
    const now = this.#context.now();
    this.#context.run(
      `INSERT INTO tasks (task_id, workplan_id, title, description, repo, agent, status, labels,
        priority, notes, open_reviews, needs_human, required_actions, revision, wake_revision,
        wake_reason, created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', 0, ?, ?, 1, 1, 'task_actionable', ?, ?)`,
      id,
      input.workplan_id ?? null,
      input.title,
      input.description ?? "",
      input.repo,
      input.agent ?? null,
      input.status ?? "draft",
      JSON.stringify(input.labels ?? []),
      input.priority ?? 5,
      flag(input.needs_human ?? false),
      JSON.stringify(input.required_actions ?? []),
      now,
      now,
    );
    this.#setDependencies(id, dependencies);
    this.#context.changed("task", id);
    return this.get(id);
  }

  edit(id: string, expected: number | undefined, input: BodyOf<"editTask">): Task {
    const before = this.get(id);
    checkRevision(`task "${id}"`, before.revision, expected);
    const { idempotency_key: _, workplan_id, block, dependencies, ...fields } = input;
    const after: Task = { ...before, ...defined(fields) };
    if (workplan_id !== undefined && workplan_id !== before.workplan?.workplan_id) {
      this.#checkPlan(workplan_id);
      // The plan's own state is read again with the result.
      after.workplan = workplan_id === null ? null : { workplan_id, status: "draft", gated: false };
    }
    if (dependencies !== undefined) {
      after.dependencies = this.#checkDependencies(id, dependencies);
      after.unsatisfied = after.dependencies.filter((other) => !this.#isSatisfied(other));
    }
    after.block = nextBlock(before, after.status, block, time(this.#context.now()));
    return this.#write(before, after);
  }

  addNote(id: string, expected: number | undefined, input: SignedNote): Task {
    const before = this.get(id);
    checkRevision(`task "${id}"`, before.revision, expected);
    const notes = withNote(before.notes, this.#context.newId(), input, this.#context.now());
    return this.#write(before, { ...before, notes });
  }

  resolveNote(params: ParamsOf<"resolveTaskNote">, expected: number | undefined): Task {
    const before = this.get(params.task_id);
    checkRevision(`task "${before.task_id}"`, before.revision, expected);
    const notes = withResolved(before.notes, params.note_id, this.#context.now());
    return this.#write(before, { ...before, notes: notes as Note[] });
  }

  /** A plan's status or gates moved: its tasks say so, and the open ones are to be looked at again. */
  planChanged(workplanId: string): void {
    const tasks = this.#context.all(
      "SELECT task_id, status FROM tasks WHERE workplan_id = ? ORDER BY priority, seq",
      workplanId,
    );
    for (const row of tasks) this.#touch(row, "task_actionable");
  }

  #write(before: Task, after: Task): Task {
    if (JSON.stringify(before) === JSON.stringify(after)) return before;
    const id = before.task_id;
    const moved = moveTask(before.status, after.status, after.unsatisfied.length);
    if (!moved.ok) throw refusedMove(`task "${id}"`, moved.error);
    const revision = before.revision + 1;
    const relevant = wakes(before, after);
    const now = this.#context.now();
    const done = after.status === "done";
    this.#context.run(
      `UPDATE tasks SET workplan_id = ?, title = ?, description = ?, repo = ?, agent = ?,
        status = ?, block_kind = ?, block_note = ?, blocked_at = ?, labels = ?, priority = ?,
        notes = ?, open_reviews = ?, completed_at = ?, needs_human = ?, required_actions = ?,
        revision = ?, wake_revision = ?, wake_reason = ?, updated_at = ? WHERE task_id = ?`,
      after.workplan?.workplan_id ?? null,
      after.title,
      after.description,
      after.repo,
      after.agent,
      after.status,
      after.block?.kind ?? null,
      after.block?.note ?? null,
      after.block === null ? null : Date.parse(after.block.blocked_at),
      JSON.stringify(after.labels),
      after.priority,
      JSON.stringify(after.notes),
      openReviews(after.notes),
      done ? (before.completed_at === null ? now : Date.parse(before.completed_at)) : null,
      flag(after.needs_human),
      JSON.stringify(after.required_actions),
      revision,
      relevant ? revision : before.wake.revision,
      relevant ? "task_actionable" : before.wake.reason,
      now,
      id,
    );
    if (before.dependencies !== after.dependencies) this.#setDependencies(id, after.dependencies);
    this.#context.changed("task", id);
    if (satisfies(before.status) !== satisfies(after.status)) this.#tellDependents(id, done);
    return this.get(id);
  }

  #tellDependents(id: string, satisfied: boolean): void {
    const dependents = this.#context.all(
      `SELECT tasks.task_id, tasks.status FROM task_dependencies d
        JOIN tasks ON tasks.task_id = d.task_id
        WHERE d.depends_on = ? ORDER BY tasks.priority, tasks.seq`,
      id,
    );
    const reason = satisfied ? "dependency_satisfied" : "task_actionable";
    for (const row of dependents) this.#touch(row, reason);
  }

  /** What a task shows of others has changed: a new revision, and for an open one a reason to look. */
  #touch({ task_id, status }: Row, reason: Task["wake"]["reason"]): void {
    const id = task_id as string;
    const open = status !== "done" && status !== "cancelled";
    this.#context.run(
      `UPDATE tasks SET revision = revision + 1, updated_at = ?,
        wake_revision = CASE WHEN ? THEN revision + 1 ELSE wake_revision END,
        wake_reason = CASE WHEN ? THEN ? ELSE wake_reason END
        WHERE task_id = ?`,
      this.#context.now(),
      flag(open),
      flag(open),
      reason,
      id,
    );
    this.#context.changed("task", id);
  }

  #isSatisfied(id: string): boolean {
    const row = this.#context.get("SELECT status FROM tasks WHERE task_id = ?", id);
    return row !== undefined && satisfies(row.status as TaskStatus);
  }

  #checkPlan(id: string | null): void {
    if (id === null) return;
    const row = this.#context.get("SELECT 1 AS one FROM workplans WHERE workplan_id = ?", id);
    if (row === undefined) throw unknown("workplan", "unknown_workplan", id);
  }

  #checkDependencies(id: string, dependencies: readonly string[]): string[] {
    const wanted = [...new Set(dependencies)];
    for (const other of wanted) {
      const row = this.#context.get("SELECT 1 AS one FROM tasks WHERE task_id = ?", other);
      if (row !== undefined || other === id) continue;
      throw new TamqError(
        "FAILED_PRECONDITION",
        "unknown_dependency",
        `task "${id}" cannot depend on "${other}": there is no such task`,
        { hint: "create that task first" },
      );
    }
    const cycle = findCycle(
      id,
      wanted,
      (task) =>
        this.#context.all("SELECT depends_on FROM task_dependencies WHERE task_id = ?", task)
          .map((row) => row.depends_on as string),
    );
    if (cycle === undefined) return wanted;
    const path = cycle.length > 8 ? [...cycle.slice(0, 7), "…", id] : cycle;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "dependency_cycle",
      `these tasks would wait for each other: ${path.join(" -> ")}`,
      { hint: "leave out one of these dependencies" },
    );
  }

  #setDependencies(id: string, dependencies: readonly string[]): void {
    this.#context.run("DELETE FROM task_dependencies WHERE task_id = ?", id);
    dependencies.forEach((other, position) =>
      this.#context.run(
        "INSERT INTO task_dependencies (task_id, position, depends_on) VALUES (?, ?, ?)",
        id,
        position,
        other,
      )
    );
  }
}

/** Whether the difference matters to the question if a worker should be woken (K-02). */
function wakes(before: Task, after: Task): boolean {
  // From `ready` to `active` is the worker taking the task up: no reason to wake it again.
  const takenUp = before.status === "ready" && after.status === "active";
  const facts = (task: Task) =>
    JSON.stringify([
      task.workplan?.workplan_id,
      task.repo,
      task.agent,
      task.dependencies,
      task.needs_human,
      task.required_actions,
      task.block?.kind,
      openReviews(task.notes),
    ]);
  return (before.status !== after.status && !takenUp) || facts(before) !== facts(after);
}

function nextBlock(
  before: Task,
  status: TaskStatus,
  given: BodyOf<"editTask">["block"],
  now: string,
): Task["block"] {
  if (status !== "blocked") {
    if (given === undefined) return null;
    throw new TamqError(
      "INVALID_ARGUMENT",
      "block_unexpected",
      `a reason for a block does not go with the status ${status}`,
      { hint: 'set "status" to "blocked" as well' },
    );
  }
  if (given !== undefined) return { ...given, blocked_at: before.block?.blocked_at ?? now };
  if (before.block !== null) return before.block;
  throw new TamqError("INVALID_ARGUMENT", "block_required", "a blocked task needs a reason", {
    hint: 'give "block": {"kind": "…", "note": "…"}',
  });
}

function toTask(row: Row): Task {
  const text = (value: Value | undefined) => value as string;
  return {
    task_id: text(row.task_id),
    workplan: row.workplan_id === null ? null : {
      workplan_id: text(row.workplan_id),
      status: row.plan_status as PlanStatus,
      gated: row.plan_gated === 1,
    },
    title: text(row.title),
    description: text(row.description),
    repo: text(row.repo),
    agent: row.agent as string | null,
    status: row.status as TaskStatus,
    block: row.block_kind === null ? null : {
      kind: row.block_kind as BlockedReason,
      note: text(row.block_note),
      blocked_at: time(row.blocked_at!),
    },
    dependencies: json(row.dependencies!),
    unsatisfied: json(row.unsatisfied!),
    labels: json(row.labels!),
    priority: row.priority as number,
    notes: json(row.notes!),
    completed_at: timeOrNull(row.completed_at!),
    ...common(row),
  };
}
