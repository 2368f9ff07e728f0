/** The hub's schema, forwards only. Released migrations never change. */
import type { Migration } from "../../sqlite/migrator.ts";

const STATUS = "status IN ('draft', 'ready', 'active', 'blocked', 'done', 'cancelled')";
const PLAN_STATUS = "status IN ('draft', 'ready', 'active', 'paused', 'done', 'cancelled')";
const BLOCK = "('human', 'secret', 'destructive', 'policy', 'dependency', 'unavailable')";

/** What workplans, tasks and messages share: JSON lists, gates, revisions, times in epoch ms. */
const SHARED = `
  needs_human INTEGER NOT NULL CHECK (needs_human IN (0, 1)),
  required_actions TEXT NOT NULL,
  revision INTEGER NOT NULL CHECK (revision >= 1),
  wake_revision INTEGER NOT NULL CHECK (wake_revision BETWEEN 1 AND revision),
  wake_reason TEXT NOT NULL CHECK (wake_reason IN ('task_actionable', 'dependency_satisfied')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL`;

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "records and change feed",
    touchesMessages: false,
    statements: [
      `CREATE TABLE hub (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        hub_id TEXT NOT NULL
      ) STRICT`,
      `CREATE TABLE workplans (
        seq INTEGER PRIMARY KEY,
        workplan_id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        repo TEXT,
        agent TEXT,
        status TEXT NOT NULL CHECK (${PLAN_STATUS}),
        labels TEXT NOT NULL,
        notes TEXT NOT NULL,
        open_reviews INTEGER NOT NULL CHECK (open_reviews >= 0),
        ${SHARED}
      ) STRICT`,
      `CREATE TABLE tasks (
        seq INTEGER PRIMARY KEY,
        task_id TEXT NOT NULL UNIQUE,
        workplan_id TEXT REFERENCES workplans (workplan_id),
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        repo TEXT NOT NULL,
        agent TEXT,
        status TEXT NOT NULL CHECK (${STATUS}),
        block_kind TEXT CHECK (block_kind IN ${BLOCK}),
        block_note TEXT,
        blocked_at INTEGER,
        labels TEXT NOT NULL,
        priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
        notes TEXT NOT NULL,
        open_reviews INTEGER NOT NULL CHECK (open_reviews >= 0),
        completed_at INTEGER,
        ${SHARED},
        CHECK ((status = 'blocked') = (block_kind IS NOT NULL)),
        CHECK ((status = 'done') = (completed_at IS NOT NULL))
      ) STRICT`,
      "CREATE INDEX tasks_by_repo ON tasks (repo, seq)",
      "CREATE INDEX tasks_by_plan ON tasks (workplan_id, seq)",
      `CREATE TABLE task_dependencies (
        task_id TEXT NOT NULL REFERENCES tasks (task_id),
        position INTEGER NOT NULL,
        depends_on TEXT NOT NULL REFERENCES tasks (task_id),
        PRIMARY KEY (task_id, depends_on),
        CHECK (task_id <> depends_on)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX dependents ON task_dependencies (depends_on)",
      `CREATE TABLE messages (
        seq INTEGER PRIMARY KEY,
        message_id TEXT NOT NULL UNIQUE,
        sender TEXT NOT NULL,
        target_repo TEXT NOT NULL,
        target_agent TEXT,
        subject TEXT NOT NULL,
        body TEXT NOT NULL,
        requests_action INTEGER NOT NULL CHECK (requests_action IN (0, 1)),
        task_id TEXT REFERENCES tasks (task_id),
        state TEXT NOT NULL CHECK (state IN ('unread', 'read', 'acknowledged')),
        read_at INTEGER,
        acknowledged_at INTEGER,
        ${SHARED},
        CHECK ((state = 'unread') = (read_at IS NULL)),
        CHECK ((state = 'acknowledged') = (acknowledged_at IS NOT NULL))
      ) STRICT`,
      "CREATE INDEX messages_by_repo ON messages (target_repo, seq)",
      `CREATE TABLE checkpoints (
        seq INTEGER PRIMARY KEY,
        checkpoint_id TEXT NOT NULL UNIQUE,
        lease_id TEXT NOT NULL,
        task_id TEXT REFERENCES tasks (task_id),
        repo TEXT NOT NULL,
        record TEXT NOT NULL
      ) STRICT`,
      "CREATE INDEX checkpoints_by_lease ON checkpoints (lease_id, seq)",
      "CREATE INDEX checkpoints_by_task ON checkpoints (task_id, seq)",
      `CREATE TABLE receipts (
        seq INTEGER PRIMARY KEY,
        receipt_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        trigger_id TEXT,
        lease_id TEXT,
        source_id TEXT,
        record TEXT NOT NULL
      ) STRICT`,
      "CREATE INDEX receipts_by_source ON receipts (source_id, seq)",
      "CREATE INDEX receipts_by_trigger ON receipts (trigger_id, seq)",
      "CREATE INDEX receipts_by_lease ON receipts (lease_id, seq)",
      // AUTOINCREMENT: a cursor of a place that was left must never name a later change.
      `CREATE TABLE changes (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL
          CHECK (kind IN ('workplan', 'task', 'message', 'checkpoint', 'receipt')),
        source_id TEXT NOT NULL,
        changed_at INTEGER NOT NULL,
        UNIQUE (kind, source_id)
      ) STRICT`,
      `CREATE TABLE idempotency (
        idempotency_key TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        kind TEXT NOT NULL,
        source_id TEXT NOT NULL,
        created_at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
    ],
  },
];
