/** Brings a database to the schema this program knows, forwards only. */
import { createHash } from "node:crypto";
import { backup } from "node:sqlite";
import { type Clock, rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { storeError } from "./errors.ts";
import type { Database } from "./open.ts";

export interface Migration {
  /** 1, 2, 3 … without gaps. */
  readonly version: number;
  readonly name: string;
  /** One statement each: a prepared text of several would silently run only its first. */
  readonly statements: readonly string[];
  /** It alters or rewrites message or lease tables that may hold rows: a backup is made first. */
  readonly touchesMessages: boolean;
}

export interface MigrationReport {
  readonly from: number;
  readonly to: number;
  /** The backup that was made, if one was needed. */
  readonly backup: string | undefined;
}

const LEDGER = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY CHECK (version > 0),
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT`;

/** The version a database is at; 0 when it is empty. */
export function schemaVersion(db: Database): number {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").get();
  if (table === undefined) return 0;
  const row = db.prepare("SELECT max(version) AS version FROM schema_migrations").get();
  return Number(row?.version ?? 0);
}

/** Throws `schema_newer` when a later program wrote this file. */
export function refuseNewer(version: number, known: number, path: string): void {
  if (version <= known) return;
  throw new TamqError(
    "FAILED_PRECONDITION",
    "schema_newer",
    `${path}: schema ${version} is newer than this program, which knows ${known}`,
    { hint: "use the newer tamq, or restore the backup made before its migration" },
  );
}

/**
 * Applies what is missing, each migration in one transaction. Throws `schema_newer`,
 * `schema_changed` (an applied migration differs from ours), or a store error; a failed migration
 * leaves the database as it was before it.
 */
export async function migrate(
  db: Database,
  path: string,
  migrations: readonly Migration[],
  clock: Pick<Clock, "now">,
): Promise<MigrationReport> {
  try {
    const from = schemaVersion(db);
    refuseNewer(from, migrations.length, path);
    if (from > 0) verify(db, path, migrations);
    const missing = migrations.slice(from);
    const needsBackup = from > 0 && missing.some((migration) => migration.touchesMessages);
    const copy = needsBackup ? await backUp(db, path, from, clock) : undefined;
    for (const migration of missing) apply(db, migration, clock);
    return { from, to: migrations.length, backup: copy };
  } catch (error) {
    throw storeError(error, path);
  }
}

function apply(db: Database, migration: Migration, clock: Pick<Clock, "now">): void {
  const run = (sql: string) => void db.prepare(sql).run();
  run("BEGIN IMMEDIATE");
  try {
    run(LEDGER);
    // Another process may have been faster between our look and the lock.
    if (schemaVersion(db) < migration.version) {
      for (const statement of migration.statements) run(statement);
      db.prepare(
        "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
      ).run(migration.version, migration.name, checksum(migration), clock.now());
    }
    run("COMMIT");
  } catch (error) {
    try {
      run("ROLLBACK");
    } catch {
      // Full disks and I/O errors have already rolled back.
    }
    throw error;
  }
}

function verify(db: Database, path: string, migrations: readonly Migration[]): void {
  const rows = db.prepare("SELECT version, name, checksum FROM schema_migrations").all();
  for (const row of rows) {
    const ours = migrations[Number(row.version) - 1];
    if (ours !== undefined && checksum(ours) === row.checksum) continue;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "schema_changed",
      `${path}: migration ${row.version} (${row.name}) is not the one this program knows`,
      { hint: "use the tamq that wrote this file; released migrations never change" },
    );
  }
}

async function backUp(
  db: Database,
  path: string,
  version: number,
  clock: Pick<Clock, "now">,
): Promise<string> {
  const stamp = rfc3339(clock.now()).replace(/[-:]|\.\d+/g, "");
  const target = createBackup(`${path}.v${version}.${stamp}`);
  await backup(db, target);
  return target;
}

/** Made first and empty, so that the copy never exists with a wider mode. */
function createBackup(name: string): string {
  for (let n = 1;; n++) {
    const target = n === 1 ? `${name}.backup` : `${name}.${n}.backup`;
    try {
      Deno.openSync(target, { write: true, createNew: true, mode: 0o600 }).close();
      return target;
    } catch (error) {
      // A migration that died in this very second left one, perhaps half written: it stays.
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    }
  }
}

function checksum(migration: Migration): string {
  return createHash("sha256").update(JSON.stringify(migration.statements)).digest("hex");
}
