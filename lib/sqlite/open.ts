/** Opens SQLite files the way every service here needs them (Q-01, C-02). */
import { DatabaseSync } from "node:sqlite";
import { errorText, TamqError } from "../base/errors.ts";
import { storeError } from "./errors.ts";

export type Database = DatabaseSync;

export interface OpenOptions {
  /** Never creates and never writes; works beside a running service and on a stopped one. */
  readonly readOnly?: boolean;
  /** How long a statement waits for another writer, milliseconds. */
  readonly busyTimeoutMs: number;
  /**
   * A new file keeps the bookkeeping by which `PRAGMA incremental_vacuum` can shorten it later. It
   * can be chosen only while the file is empty; afterwards it takes a VACUUM of the whole.
   */
  readonly givesSpaceBack?: boolean;
}

/**
 * Write-ahead log, `synchronous=FULL` (a simulated power cut lost acknowledged rows with NORMAL),
 * foreign keys on. A new file is 0600 and a new directory 0700 from their first instant.
 *
 * Throws `store_missing` (read-only and no file), `store_unreadable`, `store_read_only`,
 * `store_full`, `store_busy` or `store_corrupt`, each with the path and the way out.
 */
export function openDatabase(path: string, options: OpenOptions): Database {
  return options.readOnly === true ? openReadOnly(path, options) : openWritable(path, options);
}

function openWritable(path: string, options: OpenOptions): Database {
  const dir = path.slice(0, path.lastIndexOf("/")) || "/";
  makeDirectory(dir);
  let db: Database | undefined;
  try {
    refuseDangling(path);
    makePrivate(path);
    db = new DatabaseSync(path, {
      timeout: options.busyTimeoutMs,
      enableForeignKeyConstraints: true,
    });
    if (options.givesSpaceBack) pragma(db, "PRAGMA auto_vacuum = INCREMENTAL");
    pragma(db, "PRAGMA journal_mode = WAL");
    pragma(db, "PRAGMA synchronous = FULL");
    pragma(db, "PRAGMA foreign_keys = ON");
    // A file that can be opened but not written says so only when something is written.
    pragma(db, "BEGIN IMMEDIATE");
    pragma(db, "ROLLBACK");
    return db;
  } catch (error) {
    closeQuietly(db);
    throw explainOpen(error, path, dir);
  }
}

/**
 * SQLite would create the file 0644 and gives its -wal and -shm files the mode of the database, so
 * the file is made first, empty, 0600. (No umask: that belongs to the whole process.)
 */
function makePrivate(path: string): void {
  try {
    Deno.openSync(path, { write: true, createNew: true, mode: 0o600 }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) return; // SQLite's own error says more
    const mode = Deno.statSync(path).mode ?? 0o600;
    // A backup restored with `cp` would otherwise show messages to everybody.
    if (Deno.statSync(path).isFile && (mode & 0o077) !== 0) Deno.chmodSync(path, 0o600);
  }
}

/** A link to a database elsewhere is the user's choice; one that leads nowhere is no empty database. */
function refuseDangling(path: string): void {
  try {
    if (!Deno.lstatSync(path).isSymlink) return;
  } catch {
    return; // absent, or its directory cannot be searched: opening says so
  }
  try {
    Deno.statSync(path);
  } catch (cause) {
    throw new TamqError(
      "UNAVAILABLE",
      "store_unreadable",
      `${path}: is a symbolic link that leads to no file (${errorText(cause)})`,
      {
        hint: "bring back what it led to, or move the link away to start with an empty one",
        cause,
      },
    );
  }
}

function openReadOnly(path: string, options: OpenOptions): Database {
  let db: Database | undefined;
  try {
    refuseDangling(path);
    if (!Deno.statSync(path).isFile) throw new Error("unable to open: not a file");
    db = new DatabaseSync(path, { readOnly: true, timeout: options.busyTimeoutMs });
    pragma(db, "SELECT count(*) FROM sqlite_schema");
    return db;
  } catch (error) {
    closeQuietly(db);
    if (error instanceof Deno.errors.NotFound) {
      throw new TamqError("NOT_FOUND", "store_missing", `${path}: no database yet`, {
        hint: "it is created when the service first starts: tamq serve --detach",
        cause: error,
      });
    }
    // In a directory that cannot be written the shared-memory file cannot be made. Without a
    // write-ahead log beside it nobody is writing, and the file may be read as it stands.
    if (!exists(`${path}-wal`)) {
      const frozen = openImmutable(path);
      if (frozen !== undefined) return frozen;
    }
    throw explainOpen(error, path);
  }
}

function openImmutable(path: string): Database | undefined {
  let db: Database | undefined;
  try {
    const url = new URL("file:///");
    url.pathname = path;
    url.search = "immutable=1";
    db = new DatabaseSync(url, { readOnly: true });
    pragma(db, "SELECT count(*) FROM sqlite_schema");
    return db;
  } catch {
    closeQuietly(db);
    return undefined;
  }
}

/** Prepared and run, since errors of `exec` carry no result code. */
function pragma(db: Database, sql: string): void {
  db.prepare(sql).get();
}

function makeDirectory(dir: string): void {
  try {
    Deno.mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new TamqError(
      "UNAVAILABLE",
      "store_unreadable",
      `${dir}: cannot create the state directory (${errorText(cause)})`,
      { hint: "make its parent writable for your user, or set TAMQ_STATE_DIR", cause },
    );
  }
}

function explainOpen(error: unknown, path: string, dir?: string): unknown {
  const known = storeError(error, path);
  // SQLite says "unable to open" for a read-only file system too; the kernel says which it is.
  if (dir !== undefined && known instanceof TamqError && known.reason === "store_unreadable") {
    try {
      const probe = `${dir}/.tamq-write-test-${Deno.pid}`;
      Deno.openSync(probe, { write: true, createNew: true, mode: 0o600 }).close();
      Deno.removeSync(probe);
    } catch (cause) {
      if (/read-only|denied|EROFS|EACCES/i.test(errorText(cause))) {
        return new TamqError(
          "UNAVAILABLE",
          "store_read_only",
          `${path}: the state directory cannot be written`,
          { hint: "make it writable for your user, or set TAMQ_STATE_DIR", cause: error },
        );
      }
    }
  }
  return known;
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

function closeQuietly(db: Database | undefined): void {
  try {
    db?.close();
  } catch {
    // The error that led here is the one to report.
  }
}
