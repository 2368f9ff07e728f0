/** Receipts, checkpoints, approvals and endpoints of the engine; receipts are only ever added. */
import type { Receipt } from "../../model/receipt.ts";
import type { TriggerSource } from "../../model/trigger.ts";
import type { Database } from "../../sqlite/open.ts";
import type { ApprovalRow, CheckpointRow, EndpointRow } from "../records.ts";

type Row = Record<string, unknown>;

function toCheckpoint(row: Row): CheckpointRow {
  return {
    checkpointId: row.checkpoint_id as string,
    leaseId: row.lease_id as string,
    triggerId: row.trigger_id as string,
    source: row.source as TriggerSource,
    sourceId: row.source_id as string,
    repo: row.repo as string,
    record: row.record as string,
    createdAt: row.created_at as number,
  };
}

/** Something that is to be published, with its place in the queue. */
export interface Queued<T> {
  readonly seq: number;
  readonly item: T;
}

export class JournalRows {
  readonly #addReceipt;
  readonly #receiptsOfTrigger;
  readonly #unpublishedReceipts;
  readonly #publishedReceipt;
  readonly #waitingReceipts;
  readonly #addCheckpoint;
  readonly #latest;
  readonly #unpublishedCheckpoints;
  readonly #publishedCheckpoint;
  readonly #addApproval;
  readonly #approvals;
  readonly #putEndpoint;
  readonly #endpoint;
  readonly #endpoints;

  constructor(db: Database) {
    this.#addReceipt = db.prepare(`INSERT INTO receipts (receipt_id, trigger_id, lease_id,
        source_id, record) VALUES (?, ?, ?, ?, ?)`);
    this.#receiptsOfTrigger = db.prepare(
      "SELECT record FROM receipts WHERE trigger_id = ? ORDER BY seq",
    );
    this.#unpublishedReceipts = db.prepare(
      "SELECT seq, record FROM receipts WHERE published_at IS NULL ORDER BY seq LIMIT ?",
    );
    this.#publishedReceipt = db.prepare("UPDATE receipts SET published_at = ? WHERE seq = ?");
    this.#waitingReceipts = db.prepare(`SELECT
        (SELECT count(*) FROM receipts WHERE published_at IS NULL) +
        (SELECT count(*) FROM checkpoints WHERE published_at IS NULL) AS n`);
    this.#addCheckpoint = db.prepare(`INSERT INTO checkpoints (checkpoint_id, lease_id, trigger_id,
        source, source_id, repo, record, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#latest = db.prepare(`SELECT * FROM checkpoints WHERE source = ? AND source_id = ?
      AND repo = ? ORDER BY seq DESC LIMIT 1`);
    this.#unpublishedCheckpoints = db.prepare(
      "SELECT * FROM checkpoints WHERE published_at IS NULL ORDER BY seq LIMIT ?",
    );
    this.#publishedCheckpoint = db.prepare("UPDATE checkpoints SET published_at = ? WHERE seq = ?");
    this.#addApproval = db.prepare(`INSERT INTO approvals (approval_id, trigger_id, action, why,
        recorded_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)`);
    this.#approvals = db.prepare("SELECT * FROM approvals WHERE trigger_id = ?");
    this.#putEndpoint = db.prepare(`INSERT INTO endpoints (coord_endpoint_id, endpoint_id,
        generation, session, protocol, attached_at) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (endpoint_id, generation) DO UPDATE SET session = excluded.session,
        protocol = excluded.protocol,
        attached_at = coalesce(excluded.attached_at, endpoints.attached_at)`);
    this.#endpoint = db.prepare(
      "SELECT * FROM endpoints WHERE endpoint_id = ? AND generation = ?",
    );
    this.#endpoints = db.prepare("SELECT * FROM endpoints");
  }

  addReceipt(receipt: Receipt): void {
    this.#addReceipt.run(
      receipt.receipt_id,
      receipt.trigger_id ?? null,
      receipt.lease_id ?? null,
      receipt.source_id ?? null,
      JSON.stringify(receipt),
    );
  }

  /** Oldest first. */
  receiptsOf(triggerId: string): Receipt[] {
    return this.#receiptsOfTrigger.all(triggerId).map((row) => JSON.parse(row.record as string));
  }

  unpublishedReceipts(limit: number): Queued<Receipt>[] {
    return this.#unpublishedReceipts.all(limit).map((row) => ({
      seq: row.seq as number,
      item: JSON.parse(row.record as string),
    }));
  }

  receiptPublished(seq: number, at: number): void {
    this.#publishedReceipt.run(at, seq);
  }

  /** Receipts and checkpoints that the hub has not got yet. */
  unpublished(): number {
    return this.#waitingReceipts.get()!.n as number;
  }

  addCheckpoint(row: CheckpointRow): void {
    this.#addCheckpoint.run(
      row.checkpointId,
      row.leaseId,
      row.triggerId,
      row.source,
      row.sourceId,
      row.repo,
      row.record,
      row.createdAt,
    );
  }

  /** The last one that anybody published for that source in that repository (K-11). */
  latestCheckpoint(source: TriggerSource, id: string, repo: string): CheckpointRow | undefined {
    const row = this.#latest.get(source, id, repo);
    return row && toCheckpoint(row);
  }

  unpublishedCheckpoints(limit: number): Queued<CheckpointRow>[] {
    return this.#unpublishedCheckpoints.all(limit).map((row) => ({
      seq: row.seq as number,
      item: toCheckpoint(row),
    }));
  }

  checkpointPublished(seq: number, at: number): void {
    this.#publishedCheckpoint.run(at, seq);
  }

  addApproval(row: ApprovalRow & { why: string }): void {
    this.#addApproval.run(
      row.approvalId,
      row.triggerId,
      row.action,
      row.why,
      row.recordedAt,
      row.expiresAt,
    );
  }

  approvals(triggerId: string): ApprovalRow[] {
    return this.#approvals.all(triggerId).map((row) => ({
      approvalId: row.approval_id as string,
      triggerId: row.trigger_id as string,
      action: row.action as string,
      recordedAt: row.recorded_at as number,
      expiresAt: row.expires_at as number,
    }));
  }

  /** The row as it is now: the first id that an endpoint got stays its own. */
  endpoint(row: EndpointRow): EndpointRow {
    this.#putEndpoint.run(
      row.coordEndpointId,
      row.endpointId,
      row.generation,
      row.session,
      row.protocol,
      row.attachedAt,
    );
    return toEndpoint(this.#endpoint.get(row.endpointId, row.generation)!);
  }

  endpoints(): EndpointRow[] {
    return this.#endpoints.all().map(toEndpoint);
  }
}

function toEndpoint(row: Row): EndpointRow {
  return {
    coordEndpointId: row.coord_endpoint_id as string,
    endpointId: row.endpoint_id as string,
    generation: row.generation as string,
    session: row.session as string,
    protocol: row.protocol as string,
    attachedAt: row.attached_at as number | null,
  };
}
