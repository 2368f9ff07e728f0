/** Removing messages, and the keys that stay behind. */
import { createHash } from "node:crypto";
import { TamqError } from "../base/errors.ts";
import {
  join,
  NOTHING,
  type PurgeChoice,
  type PurgedMessage,
  type PurgeStep,
  type PurgeStore,
} from "../model/purge.ts";
import type { Database } from "../sqlite/open.ts";
import { choiceValues, one, PurgeReader, ROWS } from "./purge_reader.ts";

export class Purge extends PurgeReader implements PurgeStore {
  readonly #byKey;
  readonly #last;
  readonly #candidates;
  readonly #keep;
  readonly #delete;

  constructor(db: Database) {
    super(db);
    this.#byKey = db.prepare(`SELECT message_id AS messageId, state, endpoint AS endpointRef,
      (SELECT e.endpoint_id FROM endpoints e WHERE e.ref = p.endpoint) AS endpointId,
      request_digest AS requestDigest FROM purged_keys p WHERE key_digest = ?`);
    this.#last = db.prepare(`SELECT max(seq) AS last, count(*) AS count FROM
      (SELECT seq FROM messages WHERE seq > ? ORDER BY seq LIMIT ?)`);
    this.#candidates = db.prepare(`SELECT r.seq, r.weight, m.client_id AS clientId,
      m.idempotency_key AS idempotencyKey, m.request_digest AS requestDigest, m.created_at AS at
      FROM (${ROWS}) r JOIN messages m ON m.seq = r.seq WHERE r.chosen ORDER BY r.seq LIMIT ?8`);
    this.#keep = db.prepare(`INSERT INTO purged_keys
      (key_digest, request_digest, message_id, state, endpoint)
      SELECT ?1, ?2, message_id, state, endpoint FROM messages WHERE seq = ?3`);
    this.#delete = db.prepare("DELETE FROM messages WHERE seq = ?");
  }

  byKey(clientId: string, idempotencyKey: string): PurgedMessage | undefined {
    const row: unknown = this.#byKey.get(keyDigest(clientId, idempotencyKey));
    return row as PurgedMessage | undefined;
  }

  remove(choice: PurgeChoice, after: number, look: number, limit: number): PurgeStep {
    const window = this.#last.get(after, look)!;
    if (window.last === null) return { removed: NOTHING, next: undefined };
    const rows = this.#candidates.all(...choiceValues(choice), after, look, limit);
    let removed = NOTHING;
    for (const row of rows) {
      const seq = Number(row.seq);
      const key = keyDigest(String(row.clientId), String(row.idempotencyKey));
      this.#keep.run(key, half(row.requestDigest as Uint8Array), seq);
      this.#delete.run(seq);
      removed = join(removed, one(Number(row.weight), Number(row.at)));
    }
    if (rows.length === limit) return { removed, next: Number(rows.at(-1)!.seq) };
    return { removed, next: Number(window.count) < look ? undefined : Number(window.last) };
  }

  giveBack(pages: number): number {
    if (!this.canGiveBack()) return 0;
    // It frees a page a step, so that it must be stepped to its end.
    this.db.prepare(`PRAGMA incremental_vacuum(${pages})`).all();
    return this.#pragma("freelist_count");
  }

  canGiveBack(): boolean {
    return this.#pragma("auto_vacuum") === 2;
  }

  emptyLog(): void {
    this.db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  }

  rebuild(): void {
    this.db.prepare("PRAGMA auto_vacuum = INCREMENTAL").get();
    this.db.prepare("VACUUM").run();
    this.emptyLog();
  }

  #pragma(name: "auto_vacuum" | "freelist_count"): number {
    const row = this.db.prepare(`PRAGMA ${name}`).get();
    if (row !== undefined) return Number(row[name]);
    throw new TamqError("UNAVAILABLE", "store_unreadable", `SQLite does not know ${name}`);
  }
}

function keyDigest(clientId: string, idempotencyKey: string): Uint8Array<ArrayBuffer> {
  const canonical = JSON.stringify(["tamq key 1", clientId, idempotencyKey]);
  return half(createHash("sha256").update(canonical).digest());
}

function half(digest: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(digest.subarray(0, 16));
}
