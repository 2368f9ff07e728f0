/** The engine's schema, forwards only. Released migrations never change. */
import type { Migration } from "../../sqlite/migrator.ts";

const SOURCES = "('workplan', 'task', 'message', 'checkpoint')";

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "triggers, leases, receipts",
    touchesMessages: false,
    statements: [
      `CREATE TABLE engine (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        fencing INTEGER NOT NULL CHECK (fencing >= 0),
        feed_cursor TEXT
      ) STRICT`,
      "INSERT INTO engine (one, fencing) VALUES (1, 0)",
      `CREATE TABLE sources (
        source TEXT NOT NULL CHECK (source IN ${SOURCES}),
        source_id TEXT NOT NULL,
        revision INTEGER NOT NULL CHECK (revision >= 1),
        subject TEXT NOT NULL,
        waits_for TEXT NOT NULL,
        priority INTEGER NOT NULL,
        PRIMARY KEY (source, source_id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE triggers (
        seq INTEGER PRIMARY KEY,
        trigger_id TEXT NOT NULL UNIQUE,
        source TEXT NOT NULL CHECK (source IN ${SOURCES}),
        source_id TEXT NOT NULL,
        source_revision TEXT NOT NULL,
        target_repo TEXT NOT NULL,
        target_agent TEXT,
        reason TEXT NOT NULL CHECK (reason IN ('task_actionable', 'dependency_satisfied',
          'inbox_message', 'retry_due', 'checkpoint_resume')),
        observed_at INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'gated', 'leased', 'done', 'stopped')),
        decision TEXT NOT NULL,
        gates TEXT NOT NULL,
        gated_attempts INTEGER NOT NULL CHECK (gated_attempts >= 0),
        attempts INTEGER NOT NULL CHECK (attempts >= 0),
        due_at INTEGER NOT NULL,
        priority INTEGER NOT NULL,
        UNIQUE (source, source_id, source_revision, target_repo)
      ) STRICT`,
      "CREATE INDEX triggers_due ON triggers (state, due_at, priority, seq)",
      `CREATE TABLE leases (
        seq INTEGER PRIMARY KEY,
        lease_id TEXT NOT NULL UNIQUE,
        trigger_id TEXT NOT NULL REFERENCES triggers (trigger_id),
        fencing_token INTEGER NOT NULL UNIQUE,
        target_repo TEXT NOT NULL,
        target_agent TEXT,
        state TEXT NOT NULL CHECK (state IN ('offered', 'acknowledged', 'running', 'checkpointed',
          'completed', 'retry_wait', 'stopped')),
        held INTEGER NOT NULL CHECK (held IN (0, 1)),
        attempt INTEGER NOT NULL CHECK (attempt >= 1),
        acquired_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        last_checkpoint_at INTEGER,
        policy_profile TEXT NOT NULL,
        policy_version TEXT NOT NULL,
        config_version TEXT NOT NULL,
        prompt TEXT NOT NULL,
        resumed INTEGER NOT NULL CHECK (resumed IN (0, 1)),
        endpoint_id TEXT,
        coord_endpoint_id TEXT,
        message_id TEXT,
        message_state TEXT,
        shown_at INTEGER,
        CHECK (held = 0 OR state IN ('offered', 'acknowledged', 'running', 'checkpointed')),
        CHECK (held = 1 OR state IN ('completed', 'retry_wait', 'stopped', 'checkpointed'))
      ) STRICT`,
      // At most one lease of a trigger is held, whoever claims (K-06).
      "CREATE UNIQUE INDEX leases_held ON leases (trigger_id) WHERE held = 1",
      "CREATE INDEX leases_by_trigger ON leases (trigger_id, seq)",
      `CREATE TABLE checkpoints (
        seq INTEGER PRIMARY KEY,
        checkpoint_id TEXT NOT NULL UNIQUE,
        lease_id TEXT NOT NULL REFERENCES leases (lease_id),
        trigger_id TEXT NOT NULL,
        source TEXT NOT NULL,
        source_id TEXT NOT NULL,
        repo TEXT NOT NULL,
        record TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        published_at INTEGER
      ) STRICT`,
      "CREATE INDEX checkpoints_by_source ON checkpoints (source, source_id, seq)",
      "CREATE INDEX checkpoints_unpublished ON checkpoints (seq) WHERE published_at IS NULL",
      `CREATE TABLE receipts (
        seq INTEGER PRIMARY KEY,
        receipt_id TEXT NOT NULL UNIQUE,
        trigger_id TEXT,
        lease_id TEXT,
        source_id TEXT,
        record TEXT NOT NULL,
        published_at INTEGER
      ) STRICT`,
      "CREATE INDEX receipts_by_trigger ON receipts (trigger_id, seq)",
      "CREATE INDEX receipts_by_source ON receipts (source_id, seq)",
      "CREATE INDEX receipts_unpublished ON receipts (seq) WHERE published_at IS NULL",
      `CREATE TABLE approvals (
        approval_id TEXT PRIMARY KEY,
        trigger_id TEXT NOT NULL REFERENCES triggers (trigger_id),
        action TEXT NOT NULL,
        why TEXT NOT NULL,
        recorded_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX approvals_by_trigger ON approvals (trigger_id)",
      `CREATE TABLE endpoints (
        coord_endpoint_id TEXT PRIMARY KEY,
        endpoint_id TEXT NOT NULL,
        generation TEXT NOT NULL,
        session TEXT NOT NULL,
        protocol TEXT NOT NULL,
        attached_at INTEGER,
        UNIQUE (endpoint_id, generation)
      ) STRICT, WITHOUT ROWID`,
    ],
  },
];
