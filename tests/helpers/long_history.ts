/** Many messages that were delivered long ago, written straight into a database. */
import type { Database } from "../../lib/sqlite/open.ts";

/** Adds `count` injected messages to `beta` with bodies of `bytes`, a second apart from 2029 on. */
export function addHistory(db: Database, count: number, bytes: number): void {
  db.prepare(`INSERT OR IGNORE INTO endpoints (ref, endpoint_id, generation, session, protocol,
    capabilities, first_seen_at, last_seen_at)
    VALUES (1, 'tmux-amq-1', 'g', 's', '0.1', '[]', 0, 0)`).run();
  const first = Number(db.prepare("SELECT coalesce(max(seq), 0) AS n FROM messages").get()!.n);
  const start = Date.UTC(2020, 0, 1);
  const step = 20_000;
  for (let from = first; from < first + count; from += step) {
    const to = Math.min(first + count, from + step);
    db.prepare(`WITH RECURSIVE n (i) AS (SELECT ?1 + 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
      INSERT INTO messages (seq, message_id, client_id, idempotency_key, request_digest, sender_repo,
        target_repo, provenance, state, attempt_count, max_attempts, ack_mode, created_at,
        updated_at, injected_at, eligible_at, metadata, body)
      SELECT i, printf('%026d', i), 'old', lower(hex(randomblob(13))), randomblob(32), 'alpha',
        'beta', 'worker', 'injected', 1, 4, 'injected', ?3 + i * 1000, ?3 + i * 1000,
        ?3 + i * 1000, 0, json_object('n', i), i || ' ' || ?4 FROM n`)
      .run(from, to, start, "x".repeat(Math.max(0, bytes - 8)));
    db.prepare(`INSERT INTO attempts (message, ordinal, attempt, endpoint, started_at, ended_at,
      outcome) SELECT seq, 1, 1, 1, created_at, created_at, 'written' FROM messages
      WHERE seq > ? AND seq <= ?`).run(from, to);
  }
  db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
}
