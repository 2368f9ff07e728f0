/** Schema 2: where a replayed message came from, and the keys of purged messages. */
import type { Migration } from "../../sqlite/migrator.ts";

export const history: Migration = {
  version: 2,
  name: "history",
  touchesMessages: true,
  statements: [
    // Columns of their own: metadata is the sender's, and its 4 KiB are the sender's as well.
    `ALTER TABLE messages ADD COLUMN replay_batch TEXT
CHECK (replay_batch IS NULL OR provenance = 'replay')`,
    `ALTER TABLE messages ADD COLUMN replay_of TEXT
CHECK (replay_of IS NULL OR replay_batch IS NOT NULL)`,

    // What a repetition of a purged send is recognised by. Halves of SHA-256 digests: 128
    // bits tell requests apart, and a million rows must not outweigh the messages they stand for.
    `CREATE TABLE purged_keys (
  key_digest BLOB PRIMARY KEY CHECK (length(key_digest) = 16),
  request_digest BLOB NOT NULL CHECK (length(request_digest) = 16),
  message_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('injected', 'acknowledged', 'failed')),
  endpoint INTEGER REFERENCES endpoints (ref)
) STRICT, WITHOUT ROWID`,

    // Kept by a trigger, like message_counts: counting would read the whole table.
    `CREATE TABLE purged_total (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  count INTEGER NOT NULL
) STRICT`,
    `INSERT INTO purged_total VALUES (1, 0)`,
    `CREATE TRIGGER purged_keys_count AFTER INSERT ON purged_keys BEGIN
  UPDATE purged_total SET count = count + 1;
END`,
  ],
};
