/** The message service's database, opened, migrated and ready. */
import type { Clock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import type { QueueStore, ReceiptData } from "../model/records.ts";
import { migrate, type MigrationReport, refuseNewer, schemaVersion } from "../sqlite/migrator.ts";
import { type Database, openDatabase, type OpenOptions } from "../sqlite/open.ts";
import { Attempts } from "./attempts.ts";
import { Controls } from "./controls.ts";
import { Endpoints } from "./endpoints.ts";
import { Messages } from "./messages.ts";
import { MIGRATIONS } from "./migrations/all.ts";
import { Purge } from "./purge.ts";
import { Receipts } from "./receipts.ts";

/** The schema version that this program writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/** Statements over a migrated database; one instance a connection. */
export class Store implements QueueStore {
  readonly messages: Messages;
  readonly attempts: Attempts;
  readonly endpoints: Endpoints;
  readonly receipts: Receipts;
  readonly purge: Purge;
  readonly controls: Controls;

  constructor(db: Database, stamp?: ReceiptData) {
    this.messages = new Messages(db);
    this.attempts = new Attempts(db);
    this.endpoints = new Endpoints(db);
    this.receipts = new Receipts(db, stamp);
    this.purge = new Purge(db);
    this.controls = new Controls(db);
  }
}

/** Opens for the service: creates and migrates as needed. The caller closes `db`. */
export async function openStore(
  path: string,
  options: {
    busyTimeoutMs: number;
    clock: Pick<Clock, "now">;
    /** What every receipt carries. */
    stamp?: ReceiptData;
  },
): Promise<{ db: Database; store: Store; migration: MigrationReport }> {
  const db = openDatabase(path, { ...options, givesSpaceBack: true });
  try {
    const migration = await migrate(db, path, MIGRATIONS, options.clock);
    return { db, store: new Store(db, options.stamp), migration };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Opens for reading, with or without a running service; throws `schema_newer`,
 * `store_missing` and other store errors.
 */
export function openForReading(path: string, options: Omit<OpenOptions, "readOnly">): Database {
  const db = openDatabase(path, { ...options, readOnly: true });
  try {
    const version = schemaVersion(db);
    refuseNewer(version, SCHEMA_VERSION, path);
    if (version > 0) {
      for (const view of asIfNew(version)) db.prepare(view).run();
      return db;
    }
    throw new TamqError("NOT_FOUND", "store_missing", `${path}: no messages yet`, {
      hint: "the tables are made when the service first starts: tamq serve --detach",
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * An older database is read as if it were migrated: a new program must show the history also while
 * the old service still runs. Temporary views stand before the tables of the same name.
 */
function asIfNew(version: number): readonly string[] {
  if (version >= 3) return [];
  if (version === 2) return ["CREATE TEMP VIEW messages AS SELECT *, 0 AS held FROM main.messages"];
  return [
    `CREATE TEMP VIEW messages AS
      SELECT *, NULL AS replay_batch, NULL AS replay_of, 0 AS held FROM main.messages`,
    "CREATE TEMP VIEW purged_total AS SELECT 1 AS one, 0 AS count",
  ];
}
