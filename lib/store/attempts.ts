/** Delivery attempts: one row each, kept with their message. */
import type { AttemptOutcome, AttemptRecord, AttemptStore } from "../model/records.ts";
import type { Database } from "../sqlite/open.ts";

const SELECT = `SELECT a.attempt,
  (SELECT e.endpoint_id FROM endpoints e WHERE e.ref = a.endpoint) AS endpointId,
  a.started_at AS startedAt, a.ended_at AS endedAt, a.outcome, a.reason
  FROM attempts a WHERE a.message = ? ORDER BY a.ordinal`;

/** Reads the attempts of many messages. */
export function attemptReader(db: Database): (seq: number) => AttemptRecord[] {
  const select = db.prepare(SELECT);
  return (seq) => select.all(seq) as unknown as AttemptRecord[];
}

export function selectAttempts(db: Database, seq: number): AttemptRecord[] {
  return attemptReader(db)(seq);
}

export class Attempts implements AttemptStore {
  readonly #start;
  readonly #end;
  readonly #of;

  constructor(db: Database) {
    this.#start = db.prepare(`INSERT INTO attempts
      (message, ordinal, attempt, lease_token, endpoint, started_at)
      VALUES (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM attempts WHERE message = ?1),
        ?2, ?3, ?4, ?5)`);
    this.#end = db.prepare(`UPDATE attempts SET ended_at = ?, outcome = ?, reason = ?
      WHERE message = ? AND ended_at IS NULL`);
    this.#of = db.prepare(SELECT);
  }

  start(seq: number, attempt: number, token: string | null, ref: number, at: number): void {
    this.#start.run(seq, attempt, token, ref, at);
  }

  end(seq: number, at: number, outcome: AttemptOutcome, reason: string | null): void {
    this.#end.run(at, outcome, reason, seq);
  }

  of(seq: number): AttemptRecord[] {
    return this.#of.all(seq) as unknown as AttemptRecord[];
  }
}
