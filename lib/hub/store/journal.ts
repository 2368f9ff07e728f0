/** What is only ever appended: checkpoints and receipts. */
import { makeReceipt, type Receipt } from "../../model/receipt.ts";
import { TamqError } from "../../base/errors.ts";
import type { BodyOf, QueryOf } from "../api.ts";
import type { HubCheckpoint } from "../schema.ts";
import { json, type StoreContext, unknown, where } from "./context.ts";

export class Journal {
  readonly #context: StoreContext;

  constructor(context: StoreContext) {
    this.#context = context;
  }

  checkpoint(id: string): HubCheckpoint {
    const row = this.#context.get("SELECT record FROM checkpoints WHERE checkpoint_id = ?", id);
    if (row === undefined) throw unknown("checkpoint", "unknown_checkpoint", id);
    return json(row.record!);
  }

  /** Newest first; `before` is the number of the last one seen. */
  *checkpoints(
    query: QueryOf<"listCheckpoints">,
    before: number,
  ): Generator<[seq: number, HubCheckpoint]> {
    const { sql, values } = where([
      ["seq < ?", before],
      ["repo = ?", query.repo],
      ["task_id = ?", query.task_id],
      ["lease_id = ?", query.lease_id],
    ]);
    const select = `SELECT seq, record FROM checkpoints ${sql} ORDER BY seq DESC`;
    for (const row of this.#context.each(select, ...values)) {
      yield [row.seq as number, json(row.record!)];
    }
  }

  addCheckpoint(input: BodyOf<"createCheckpoint">): HubCheckpoint {
    const { idempotency_key: _, ...fields } = input;
    const task = fields.task_id;
    if (
      task !== undefined &&
      this.#context.get("SELECT 1 AS one FROM tasks WHERE task_id = ?", task) === undefined
    ) throw unknown("task", "unknown_task", task);
    const record: HubCheckpoint = { checkpoint_id: this.#context.newId(), ...fields };
    this.#context.run(
      `INSERT INTO checkpoints (checkpoint_id, lease_id, task_id, repo, record)
        VALUES (?, ?, ?, ?, ?)`,
      record.checkpoint_id,
      record.lease_id,
      task ?? null,
      record.repo,
      JSON.stringify(record),
    );
    this.#context.changed("checkpoint", record.checkpoint_id);
    return record;
  }

  receipt(id: string): Receipt {
    const row = this.#context.get("SELECT record FROM receipts WHERE receipt_id = ?", id);
    if (row === undefined) throw unknown("receipt", "unknown_receipt", id);
    return json(row.record!);
  }

  /** Newest first. */
  *receipts(query: QueryOf<"listReceipts">, before: number): Generator<[seq: number, Receipt]> {
    const { sql, values } = where([
      ["seq < ?", before],
      ["kind = ?", query.kind],
      ["trigger_id = ?", query.trigger_id],
      ["lease_id = ?", query.lease_id],
      ["source_id = ?", query.source_id],
    ]);
    const select = `SELECT seq, record FROM receipts ${sql} ORDER BY seq DESC`;
    for (const row of this.#context.each(select, ...values)) {
      yield [row.seq as number, json(row.record!)];
    }
  }

  addReceipt(input: Readonly<Record<string, unknown>>): Receipt {
    const receipt = makeReceipt(input);
    const taken = this.#context.get(
      "SELECT 1 AS one FROM receipts WHERE receipt_id = ?",
      receipt.receipt_id,
    );
    if (taken !== undefined) {
      throw new TamqError(
        "ABORTED",
        "idempotency_conflict",
        `there is another receipt "${receipt.receipt_id}"`,
        { hint: "each receipt has an id and an idempotency key of its own" },
      );
    }
    this.#context.run(
      `INSERT INTO receipts (receipt_id, kind, trigger_id, lease_id, source_id, record)
        VALUES (?, ?, ?, ?, ?, ?)`,
      receipt.receipt_id,
      receipt.kind,
      receipt.trigger_id ?? null,
      receipt.lease_id ?? null,
      receipt.source_id ?? null,
      JSON.stringify(receipt),
    );
    this.#context.changed("receipt", receipt.receipt_id);
    return receipt;
  }
}
