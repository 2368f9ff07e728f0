/** Schema 1. Released migrations never change; the CHECKs say what lib/model/message.ts says. */
import type { Migration } from "../../sqlite/migrator.ts";

export const initial: Migration = {
  version: 1,
  name: "initial",
  touchesMessages: false,
  statements: [
    // One row a tmux server; a reused pid has another generation and so another row (E-01).
    `CREATE TABLE endpoints (
  ref INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint_id TEXT NOT NULL CHECK (endpoint_id GLOB 'tmux-amq-[0-9]*'),
  generation TEXT NOT NULL,
  session TEXT NOT NULL,
  protocol TEXT NOT NULL,
  capabilities TEXT NOT NULL CHECK (json_type(capabilities) = 'array'),
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  disconnected_at INTEGER,
  UNIQUE (endpoint_id, generation)
) STRICT`,

    // Nothing goes to a repository's window until then, also after a restart (T-26).
    `CREATE TABLE target_backoff (
  endpoint INTEGER NOT NULL REFERENCES endpoints (ref),
  repo TEXT NOT NULL,
  until_at INTEGER NOT NULL,
  PRIMARY KEY (endpoint, repo)
) STRICT, WITHOUT ROWID`,

    // Body and metadata stand last, so that scans need not read their overflow pages.
    `CREATE TABLE messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id TEXT NOT NULL UNIQUE CHECK (length(message_id) = 26),
  client_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  request_digest BLOB NOT NULL CHECK (length(request_digest) = 32),
  correlation_id TEXT,
  sender_repo TEXT NOT NULL,
  target_repo TEXT NOT NULL,
  provenance TEXT NOT NULL
    CHECK (provenance IN ('worker', 'operator', 'cli', 'coordination_engine', 'replay')),
  endpoint INTEGER REFERENCES endpoints (ref),
  source_endpoint INTEGER REFERENCES endpoints (ref),
  last_endpoint INTEGER REFERENCES endpoints (ref),
  state TEXT NOT NULL
    CHECK (state IN ('pending', 'awaiting_ack', 'injected', 'acknowledged', 'failed')),
  attempt_count INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 9),
  ack_mode TEXT NOT NULL CHECK (ack_mode IN ('injected', 'acknowledged')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  injected_at INTEGER,
  acknowledged_at INTEGER,
  next_attempt_at INTEGER,
  eligible_at INTEGER NOT NULL,
  lease_token TEXT,
  lease_expires_at INTEGER,
  lease_endpoint INTEGER REFERENCES endpoints (ref),
  lease_holder TEXT,
  ack_deadline_at INTEGER,
  last_failure_reason TEXT,
  metadata TEXT NOT NULL
    CHECK (json_type(metadata) = 'object' AND octet_length(metadata) <= 4096),
  body TEXT NOT NULL CHECK (octet_length(body) BETWEEN 1 AND 8192),
  UNIQUE (client_id, idempotency_key),
  CONSTRAINT attempts_within_cap CHECK (attempt_count BETWEEN 0 AND max_attempts),
  CONSTRAINT lease_is_whole CHECK (
    (lease_token IS NULL) = (lease_expires_at IS NULL)
    AND (lease_token IS NULL) = (lease_endpoint IS NULL)
    AND (lease_token IS NULL) = (lease_holder IS NULL)),
  CONSTRAINT lease_only_while_pending CHECK (
    lease_token IS NULL OR (state = 'pending' AND attempt_count > 0)),
  CONSTRAINT pending_has_an_attempt_left CHECK (
    state <> 'pending' OR lease_token IS NOT NULL OR attempt_count < max_attempts),
  CONSTRAINT backoff_only_while_waiting CHECK (
    next_attempt_at IS NULL OR (state = 'pending' AND lease_token IS NULL)),
  CONSTRAINT ack_deadline_while_awaiting CHECK (
    (ack_deadline_at IS NOT NULL) = (state = 'awaiting_ack')),
  CONSTRAINT acknowledged_has_its_time CHECK (
    (acknowledged_at IS NOT NULL) = (state = 'acknowledged')),
  CONSTRAINT failed_has_a_reason CHECK (state <> 'failed' OR last_failure_reason IS NOT NULL),
  CONSTRAINT written_has_its_time CHECK (
    state NOT IN ('injected', 'awaiting_ack') OR (injected_at IS NOT NULL AND attempt_count > 0)),
  CONSTRAINT written_by_its_mode CHECK (
    (state <> 'injected' OR ack_mode = 'injected')
    AND (state <> 'awaiting_ack' OR ack_mode = 'acknowledged'))
) STRICT`,

    `CREATE TRIGGER messages_move BEFORE UPDATE OF state ON messages
WHEN OLD.state <> NEW.state AND NOT (
  OLD.state = 'pending'
  OR (OLD.state = 'awaiting_ack' AND NEW.state IN ('pending', 'failed', 'acknowledged'))
  OR (OLD.state = 'injected' AND NEW.state = 'acknowledged')
  OR (OLD.state = 'failed' AND NEW.state IN ('pending', 'acknowledged')))
BEGIN SELECT RAISE(ABORT, 'no such transition'); END`,

    // Claims: the order of admission inside one binding. With a time before seq it was 10 to 30
    // times slower. Only pending rows are in it: its size does not grow with history.
    `CREATE INDEX messages_claim ON messages (target_repo, endpoint, seq)
WHERE state = 'pending'`,
    `CREATE UNIQUE INDEX messages_lease ON messages (lease_token) WHERE lease_token IS NOT NULL`,
    `CREATE INDEX messages_lease_expiry ON messages (lease_expires_at)
WHERE lease_expires_at IS NOT NULL`,
    `CREATE INDEX messages_retry ON messages (next_attempt_at) WHERE next_attempt_at IS NOT NULL`,
    `CREATE INDEX messages_ack_deadline ON messages (ack_deadline_at)
WHERE ack_deadline_at IS NOT NULL`,
    // History.
    `CREATE INDEX messages_target ON messages (target_repo, seq)`,
    `CREATE INDEX messages_sender ON messages (sender_repo, seq)`,
    `CREATE INDEX messages_correlation ON messages (correlation_id, seq)
WHERE correlation_id IS NOT NULL`,
    `CREATE INDEX messages_failed ON messages (seq) WHERE state = 'failed'`,
    `CREATE INDEX messages_acknowledged ON messages (seq) WHERE state = 'acknowledged'`,

    // Kept by triggers: counting a million rows would hold up every delivery.
    `CREATE TABLE message_counts (
  state TEXT PRIMARY KEY,
  count INTEGER NOT NULL CHECK (count >= 0)
) STRICT, WITHOUT ROWID`,
    `INSERT INTO message_counts VALUES
  ('pending', 0), ('awaiting_ack', 0), ('injected', 0), ('acknowledged', 0), ('failed', 0)`,
    `CREATE TRIGGER messages_count_insert AFTER INSERT ON messages BEGIN
  UPDATE message_counts SET count = count + 1 WHERE state = NEW.state;
END`,
    `CREATE TRIGGER messages_count_move AFTER UPDATE OF state ON messages
WHEN OLD.state <> NEW.state BEGIN
  UPDATE message_counts SET count = count - 1 WHERE state = OLD.state;
  UPDATE message_counts SET count = count + 1 WHERE state = NEW.state;
END`,
    `CREATE TRIGGER messages_count_delete AFTER DELETE ON messages BEGIN
  UPDATE message_counts SET count = count - 1 WHERE state = OLD.state;
END`,

    // One row an attempt; ordinals go on over a retry that resets attempt_count.
    `CREATE TABLE attempts (
  message INTEGER NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL CHECK (ordinal > 0),
  attempt INTEGER NOT NULL CHECK (attempt BETWEEN 1 AND 9),
  lease_token TEXT,
  endpoint INTEGER NOT NULL REFERENCES endpoints (ref),
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  outcome TEXT CHECK (
    outcome IN ('written', 'displayed', 'failed', 'stalled', 'expired', 'interrupted')),
  reason TEXT,
  PRIMARY KEY (message, ordinal),
  CONSTRAINT ended_has_an_outcome CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT, WITHOUT ROWID`,

    `CREATE TABLE receipts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  data TEXT NOT NULL CHECK (json_type(data) = 'object')
) STRICT`,
  ],
};
