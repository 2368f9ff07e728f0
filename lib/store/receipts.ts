/** Receipts: what the service did, without bodies (L-03, E-03). */
import type { ReceiptData, ReceiptKind, ReceiptStore } from "../model/records.ts";
import type { Database } from "../sqlite/open.ts";

export class Receipts implements ReceiptStore {
  readonly #add;
  readonly #get;
  readonly #replace;
  readonly #latest;

  readonly #stamp: ReceiptData;

  /** `stamp`: what every receipt carries beside what it says. */
  constructor(db: Database, stamp: ReceiptData = {}) {
    this.#stamp = stamp;
    this.#add = db.prepare("INSERT INTO receipts (kind, at, data) VALUES (?, ?, ?)");
    this.#get = db.prepare("SELECT data FROM receipts WHERE kind = ? AND id = ?");
    this.#replace = db.prepare("UPDATE receipts SET data = ? WHERE id = ?");
    this.#latest = db.prepare(`SELECT kind, data FROM receipts
      WHERE kind IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT 1`);
  }

  add(kind: ReceiptKind, at: number, data: ReceiptData): number {
    return Number(
      this.#add.run(kind, at, JSON.stringify({ ...data, ...this.#stamp })).lastInsertRowid,
    );
  }

  get(kind: ReceiptKind, id: number): ReceiptData | undefined {
    const row = this.#get.get(kind, id);
    return row === undefined ? undefined : JSON.parse(String(row.data));
  }

  latest(kinds: readonly ReceiptKind[]): { kind: ReceiptKind; data: ReceiptData } | undefined {
    const row = this.#latest.get(JSON.stringify(kinds));
    if (row === undefined) return undefined;
    return { kind: row.kind as ReceiptKind, data: JSON.parse(String(row.data)) };
  }

  replace(id: number, data: ReceiptData): void {
    this.#replace.run(JSON.stringify({ ...data, ...this.#stamp }), id);
  }
}

export interface Receipt {
  readonly id: number;
  readonly kind: ReceiptKind;
  readonly at: number;
  readonly data: ReceiptData;
}

/** The latest receipts of an open database, newest first. */
export function readReceipts(db: Database, limit: number): Receipt[] {
  const rows = db.prepare("SELECT id, kind, at, data FROM receipts ORDER BY id DESC LIMIT ?")
    .all(limit);
  return rows.map((row) => ({
    ...(row as unknown as Receipt),
    data: JSON.parse(String(row.data)),
  }));
}
