/** Choosing and removing messages for a purge, and the keys that stay behind. */
import { createHash } from "node:crypto";
import { TamqError } from "../base/errors.ts";
import {
  join,
  NOTHING,
  type Portion,
  PURGEABLE,
  type PurgeChoice,
  type PurgedMessage,
  type PurgeStep,
  type PurgeStore,
  type Reach,
  type Survey,
} from "../model/purge.ts";
import type { Database } from "../sqlite/open.ts";

/** What a message takes beside body and metadata: its other columns, its indexes, an attempt. */
const ROW_BYTES = 450;
/** What a kept key takes; measured on a million of them. */
const KEY_BYTES = 110;

const STATES = PURGEABLE.map((state) => `'${state}'`).join(", ");

/** Whether the row `m` may be purged; ?1 is `settledBefore`. */
export const SETTLED = `(m.state IN (${STATES}) AND ifnull(m.updated_at < ?1, 1))`;
/** Whether a filter chooses the row `m`; ?2 to ?5 are the filters. */
export const CHOSEN = `(ifnull(m.created_at < ?2, 0)
  OR ifnull(m.target_repo = ?3 OR m.sender_repo = ?3, 0)
  OR ifnull(m.state = ?4, 0) OR ifnull(m.seq <= ?5, 0))`;

/** Values of ?1 to ?5. */
export function choiceValues(choice: PurgeChoice): (string | number | null)[] {
  const { settledBefore, before, repo, state, through } = choice;
  return [settledBefore ?? null, before ?? null, repo ?? null, state ?? null, through ?? null];
}

// The lengths stand in the head of a row: long bodies are not read for them.
const ROWS = `SELECT m.seq, m.created_at,
  octet_length(m.body) + octet_length(m.metadata) + ${ROW_BYTES} AS weight,
  ${SETTLED} AND ${CHOSEN} AS chosen, ${SETTLED} AND NOT ${CHOSEN} AS spared
  FROM messages m WHERE m.seq > ?6 ORDER BY m.seq LIMIT ?7`;

const portionOf = (flag: string) =>
  `count(*) FILTER (WHERE ${flag}) AS ${flag}Count,
  ifnull(sum(weight) FILTER (WHERE ${flag}), 0) AS ${flag}Weight,
  min(created_at) FILTER (WHERE ${flag}) AS ${flag}Oldest,
  max(created_at) FILTER (WHERE ${flag}) AS ${flag}Newest`;

export class Purge implements PurgeStore {
  readonly #db: Database;
  readonly #byKey;
  readonly #bytes;
  readonly #survey;
  readonly #spared;
  readonly #last;
  readonly #candidates;
  readonly #keep;
  readonly #delete;

  constructor(db: Database) {
    this.#db = db;
    this.#byKey = db.prepare(`SELECT message_id AS messageId, state, endpoint AS endpointRef,
      (SELECT e.endpoint_id FROM endpoints e WHERE e.ref = p.endpoint) AS endpointId,
      request_digest AS requestDigest FROM purged_keys p WHERE key_digest = ?`);
    this.#bytes = db.prepare(`SELECT
      ((SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count))
        * (SELECT page_size FROM pragma_page_size)
        - (SELECT count FROM purged_total) * ${KEY_BYTES} AS bytes`);
    this.#survey = db.prepare(`SELECT max(seq) AS last, ifnull(sum(weight), 0) AS weight,
      ${portionOf("chosen")}, ${portionOf("spared")} FROM (${ROWS})`);
    this.#spared = db.prepare(`SELECT seq, weight, created_at AS at FROM (${ROWS}) WHERE spared`);
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

  historyBytes(): number {
    return Math.max(0, Number(this.#bytes.get()?.bytes ?? 0));
  }

  survey(choice: PurgeChoice, after: number, limit: number): Survey | undefined {
    const row = this.#survey.get(...choiceValues(choice), after, limit);
    if (row === undefined || row.last === null) return undefined;
    const portion = (flag: string): Portion => ({
      count: Number(row[`${flag}Count`]),
      weight: Number(row[`${flag}Weight`]),
      oldestAt: row[`${flag}Oldest`] as number | null,
      newestAt: row[`${flag}Newest`] as number | null,
    });
    return {
      last: Number(row.last),
      weight: Number(row.weight),
      chosen: portion("chosen"),
      spared: portion("spared"),
    };
  }

  reach(choice: PurgeChoice, after: number, limit: number, weight: number): Reach {
    let portion = NOTHING;
    let last = after;
    for (const row of this.#spared.iterate(...choiceValues(choice), after, limit)) {
      portion = join(portion, one(Number(row.weight), Number(row.at)));
      last = Number(row.seq);
      if (portion.weight >= weight) break;
    }
    return { portion, last };
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
    const mode = this.#pragma("auto_vacuum");
    if (mode !== 2) return 0;
    // It frees a page a step, so that it must be stepped to its end.
    this.#db.prepare(`PRAGMA incremental_vacuum(${pages})`).all();
    return this.#pragma("freelist_count");
  }

  emptyLog(): void {
    this.#db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  }

  rebuild(): void {
    this.#db.prepare("PRAGMA auto_vacuum = INCREMENTAL").get();
    this.#db.prepare("VACUUM").run();
    this.emptyLog();
  }

  #pragma(name: "auto_vacuum" | "freelist_count"): number {
    const row = this.#db.prepare(`PRAGMA ${name}`).get();
    if (row !== undefined) return Number(row[name]);
    throw new TamqError("UNAVAILABLE", "store_unreadable", `SQLite does not know ${name}`);
  }
}

function one(weight: number, at: number): Portion {
  return { count: 1, weight, oldestAt: at, newestAt: at };
}

function keyDigest(clientId: string, idempotencyKey: string): Uint8Array<ArrayBuffer> {
  const canonical = JSON.stringify(["tamq key 1", clientId, idempotencyKey]);
  return half(createHash("sha256").update(canonical).digest());
}

function half(digest: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(digest.subarray(0, 16));
}
