/** Workplans. */
import { TamqError } from "../../base/errors.ts";
import type { BodyOf, ParamsOf, QueryOf } from "../api.ts";
import { movePlan, type PlanStatus } from "../rules.ts";
import type { Note, Workplan } from "../schema.ts";
import {
  checkRevision,
  flag,
  json,
  type Row,
  type StoreContext,
  time,
  unknown,
  where,
} from "./context.ts";
import { openReviews, type SignedNote, withNote, withResolved } from "./notes.ts";
import { refusedMove } from "./refusals.ts";

/** What a changed plan does to its tasks. */
export interface PlanTasks {
  planChanged(workplanId: string): void;
}

export class Plans {
  readonly #context: StoreContext;
  readonly #tasks: PlanTasks;

  constructor(context: StoreContext, tasks: PlanTasks) {
    this.#context = context;
    this.#tasks = tasks;
  }

  find(id: string): Workplan | undefined {
    const row = this.#context.get("SELECT * FROM workplans WHERE workplan_id = ?", id);
    return row && toWorkplan(row);
  }

  get(id: string): Workplan {
    const plan = this.find(id);
    if (plan === undefined) throw unknown("workplan", "unknown_workplan", id);
    return plan;
  }

  *list(query: QueryOf<"listWorkplans">, after: number): Generator<[seq: number, Workplan]> {
    const { sql, values } = where([
      ["seq > ?", after],
      ["repo = ?", query.repo],
      ["status = ?", query.status],
    ]);
    for (
      const row of this.#context.each(`SELECT * FROM workplans ${sql} ORDER BY seq`, ...values)
    ) {
      yield [row.seq as number, toWorkplan(row)];
    }
  }

  create(input: BodyOf<"createWorkplan">): Workplan {
    const id = input.workplan_id ?? this.#context.newId();
    if (this.find(id) !== undefined) {
      throw new TamqError("ALREADY_EXISTS", "workplan_exists", `workplan "${id}" exists already`, {
        hint: "choose another id, or change that one: tamq hub plan edit",
      });
    }
    const now = this.#context.now();
    this.#context.run(
      `INSERT INTO workplans (workplan_id, title, description, repo, agent, status, labels, notes,
        open_reviews, needs_human, required_actions, revision, wake_revision, wake_reason,
        created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, '[]', 0, ?, ?, 1, 1, 'task_actionable', ?, ?)`,
      id,
      input.title,
      input.description ?? "",
      input.repo ?? null,
      input.agent ?? null,
      input.status ?? "draft",
      JSON.stringify(input.labels ?? []),
      flag(input.needs_human ?? false),
      JSON.stringify(input.required_actions ?? []),
      now,
      now,
    );
    this.#context.changed("workplan", id);
    return this.get(id);
  }

  edit(id: string, expected: number | undefined, input: BodyOf<"editWorkplan">): Workplan {
    const before = this.get(id);
    checkRevision(`workplan "${id}"`, before.revision, expected);
    const { idempotency_key: _, ...fields } = input;
    return this.#write(before, { ...before, ...defined(fields) });
  }

  addNote(id: string, expected: number | undefined, input: SignedNote): Workplan {
    const before = this.get(id);
    checkRevision(`workplan "${id}"`, before.revision, expected);
    const notes = withNote(before.notes, this.#context.newId(), input, this.#context.now());
    return this.#write(before, { ...before, notes });
  }

  resolveNote(params: ParamsOf<"resolveWorkplanNote">, expected: number | undefined): Workplan {
    const before = this.get(params.workplan_id);
    checkRevision(`workplan "${before.workplan_id}"`, before.revision, expected);
    const notes = withResolved(before.notes, params.note_id, this.#context.now());
    return this.#write(before, { ...before, notes: notes as Note[] });
  }

  #write(before: Workplan, after: Workplan): Workplan {
    if (JSON.stringify(before) === JSON.stringify(after)) return before;
    const id = before.workplan_id;
    const moved = movePlan(before.status, after.status);
    if (!moved.ok) throw refusedMove(`workplan "${id}"`, moved.error);
    const revision = before.revision + 1;
    const reviews = openReviews(after.notes);
    const gatesMoved = before.status !== after.status || before.needs_human !== after.needs_human ||
      openReviews(before.notes) !== reviews;
    // From `ready` to `active` is the worker taking the plan up: no reason to wake it again.
    const takenUp = before.status === "ready" && after.status === "active";
    const relevant = (gatesMoved && !takenUp) || before.repo !== after.repo ||
      before.agent !== after.agent ||
      JSON.stringify(before.required_actions) !== JSON.stringify(after.required_actions);
    this.#context.run(
      `UPDATE workplans SET title = ?, description = ?, repo = ?, agent = ?, status = ?,
        labels = ?, notes = ?, open_reviews = ?, needs_human = ?, required_actions = ?,
        revision = ?, wake_revision = ?, updated_at = ? WHERE workplan_id = ?`,
      after.title,
      after.description,
      after.repo,
      after.agent,
      after.status,
      JSON.stringify(after.labels),
      JSON.stringify(after.notes),
      reviews,
      flag(after.needs_human),
      JSON.stringify(after.required_actions),
      revision,
      relevant ? revision : before.wake.revision,
      this.#context.now(),
      id,
    );
    this.#context.changed("workplan", id);
    if (gatesMoved) this.#tasks.planChanged(id);
    return this.get(id);
  }
}

function toWorkplan(row: Row): Workplan {
  return {
    workplan_id: row.workplan_id as string,
    title: row.title as string,
    description: row.description as string,
    repo: row.repo as string | null,
    agent: row.agent as string | null,
    status: row.status as PlanStatus,
    labels: json(row.labels!),
    notes: json(row.notes!),
    ...common(row),
  };
}

/** The columns that workplans, tasks and messages share. */
export function common(row: Row) {
  return {
    needs_human: row.needs_human === 1,
    required_actions: json<string[]>(row.required_actions!),
    revision: row.revision as number,
    wake: {
      revision: row.wake_revision as number,
      reason: row.wake_reason as "task_actionable" | "dependency_satisfied",
    },
    created_at: time(row.created_at!),
    updated_at: time(row.updated_at!),
  };
}

/** Without the keys whose value is undefined: they mean "unchanged". */
export function defined<T extends object>(
  fields: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
