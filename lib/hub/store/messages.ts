/** Coordination messages: unread, read, acknowledged. */
import type { BodyOf, QueryOf } from "../api.ts";
import { type MessageState, moveMessage } from "../rules.ts";
import type { HubMessage } from "../schema.ts";
import {
  checkRevision,
  flag,
  type Row,
  type StoreContext,
  timeOrNull,
  unknown,
  where,
} from "./context.ts";
import { common } from "./plans.ts";

export class Messages {
  readonly #context: StoreContext;

  constructor(context: StoreContext) {
    this.#context = context;
  }

  get(id: string): HubMessage {
    const row = this.#context.get("SELECT * FROM messages WHERE message_id = ?", id);
    if (row === undefined) throw unknown("message", "unknown_message", id);
    return toMessage(row);
  }

  *list(query: QueryOf<"listMessages">, after: number): Generator<[seq: number, HubMessage]> {
    const asks = query.requests_action;
    const { sql, values } = where([
      ["seq > ?", after],
      ["target_repo = ?", query.target_repo],
      ["state = ?", query.state],
      ["requests_action = ?", asks === undefined ? undefined : flag(asks === "true")],
    ]);
    for (const row of this.#context.each(`SELECT * FROM messages ${sql} ORDER BY seq`, ...values)) {
      yield [row.seq as number, toMessage(row)];
    }
  }

  create(input: BodyOf<"createMessage"> & { readonly sender: string }): HubMessage {
    const task = input.task_id ?? null;
    if (
      task !== null &&
      this.#context.get("SELECT 1 AS one FROM tasks WHERE task_id = ?", task) === undefined
    ) throw unknown("task", "unknown_task", task);
    const id = this.#context.newId();
    const now = this.#context.now();
    this.#context.run(
      `INSERT INTO messages (message_id, sender, target_repo, target_agent, subject, body,
        requests_action, task_id, state, needs_human, required_actions, revision, wake_revision,
        wake_reason, created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'unread', ?, ?, 1, 1, 'task_actionable', ?, ?)`,
      id,
      input.sender,
      input.target_repo,
      input.target_agent ?? null,
      input.subject,
      input.body,
      flag(input.requests_action),
      task,
      flag(input.needs_human ?? false),
      JSON.stringify(input.required_actions ?? []),
      now,
      now,
    );
    this.#context.changed("message", id);
    return this.get(id);
  }

  /** Being read wakes nobody: the revision grows, the one that a trigger names stays. */
  move(id: string, expected: number | undefined, to: MessageState): HubMessage {
    const before = this.get(id);
    const state = moveMessage(before.state, to);
    // Before the revision is compared: the repeat of a change that went through is no conflict.
    if (state === before.state) return before;
    checkRevision(`message "${id}"`, before.revision, expected);
    const now = this.#context.now();
    this.#context.run(
      `UPDATE messages SET state = ?, read_at = coalesce(read_at, ?), acknowledged_at = ?,
        revision = revision + 1, updated_at = ? WHERE message_id = ?`,
      state,
      now,
      state === "acknowledged" ? now : null,
      now,
      id,
    );
    this.#context.changed("message", id);
    return this.get(id);
  }
}

function toMessage(row: Row): HubMessage {
  return {
    message_id: row.message_id as string,
    sender: row.sender as string,
    target_repo: row.target_repo as string,
    target_agent: row.target_agent as string | null,
    subject: row.subject as string,
    body: row.body as string,
    requests_action: row.requests_action === 1,
    task_id: row.task_id as string | null,
    state: row.state as MessageState,
    read_at: timeOrNull(row.read_at!),
    acknowledged_at: timeOrNull(row.acknowledged_at!),
    ...common(row),
  };
}
