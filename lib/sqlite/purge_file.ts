/** Purging the database of a service that does not run. */
import type { DatabaseSync } from "node:sqlite";
import { refuseNewer, schemaVersion } from "./migrator.ts";
import { openDatabase } from "./open.ts";

export interface PurgeOptions {
  /** What is older goes, epoch milliseconds. */
  readonly before: number;
  /** False: it is counted only. */
  readonly execute: boolean;
  readonly busyTimeoutMs: number;
}

/**
 * Calls `purge`, which counts, and with `execute` removes, within one transaction; gives the room
 * back to the disk. The caller keeps every service away. `known` is the newest schema that is
 * understood. Throws store errors.
 */
export function purgeFile(
  path: string,
  known: number,
  { execute, busyTimeoutMs }: PurgeOptions,
  purge: (db: DatabaseSync) => Record<string, number>,
): Record<string, number> {
  const db = openDatabase(path, { readOnly: !execute, busyTimeoutMs });
  try {
    refuseNewer(schemaVersion(db), known, path);
    if (execute) db.exec("BEGIN IMMEDIATE");
    const counts = purge(db);
    if (execute) {
      db.exec("COMMIT");
      db.exec("VACUUM");
    }
    return counts;
  } finally {
    db.close();
  }
}
