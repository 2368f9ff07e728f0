/** Schema 3: held messages, who may write to whom, blocked pairs, pause and release. */
import type { Migration } from "../../sqlite/migrator.ts";

export const controls: Migration = {
  version: 3,
  name: "controls",
  touchesMessages: true,
  statements: [
    // Decided at admission, so that a claim need not weigh policies. Whoever lets it go sets it to 0.
    `ALTER TABLE messages ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1))`,
    // Held messages are not in the index of claims: many of them cost a claim nothing.
    `DROP INDEX messages_claim`,
    `CREATE INDEX messages_claim ON messages (target_repo, endpoint, seq)
WHERE state = 'pending' AND held = 0`,
    `CREATE INDEX messages_held ON messages (sender_repo, target_repo)
WHERE state = 'pending' AND held = 1`,

    `CREATE TABLE allowed_pairs (
  sender TEXT NOT NULL,
  target TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (sender, target)
) STRICT, WITHOUT ROWID`,

    // Repositories that had windows in one tmux session; of each pair the smaller name is first.
    `CREATE TABLE opened_pairs (
  a TEXT NOT NULL,
  b TEXT NOT NULL CHECK (a < b),
  endpoint INTEGER NOT NULL REFERENCES endpoints (ref),
  at INTEGER NOT NULL,
  PRIMARY KEY (a, b, endpoint)
) STRICT, WITHOUT ROWID`,

    `CREATE TABLE blocked_pairs (
  sender TEXT NOT NULL,
  target TEXT NOT NULL,
  since INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  PRIMARY KEY (sender, target)
) STRICT, WITHOUT ROWID`,

    `CREATE TABLE pause (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  since INTEGER NOT NULL
) STRICT`,

    `CREATE TABLE released (
  repo TEXT PRIMARY KEY,
  through INTEGER NOT NULL
) STRICT, WITHOUT ROWID`,
  ],
};
