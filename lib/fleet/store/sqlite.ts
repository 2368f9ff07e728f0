/** The fleet's store on one host: SQLite, nothing else installed (G-03). */
import { type Clock, pause } from "../../base/clock.ts";
import { probe } from "../../base/probe.ts";
import { isBusy, storeError } from "../../sqlite/errors.ts";
import { migrate, type Migration } from "../../sqlite/migrator.ts";
import { type Database, openDatabase } from "../../sqlite/open.ts";
import type { FleetStore, FleetTx } from "../ports.ts";
import { KINDS } from "../records.ts";

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "records",
    touchesMessages: false,
    statements: [
      `CREATE TABLE records (
        seq INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN (${KINDS.map((kind) => `'${kind}'`).join(", ")})),
        id TEXT NOT NULL,
        part TEXT NOT NULL,
        revision INTEGER NOT NULL CHECK (revision >= 1),
        value TEXT NOT NULL,
        UNIQUE (kind, id)
      ) STRICT`,
      "CREATE INDEX records_part ON records (kind, part, seq)",
    ],
  },
];

const MAX_BATCH = 256;
/** While another process writes, the event loop goes on between tries. */
const BUSY_SLICE_MS = 10;

export interface SqliteStoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly busyTimeoutMs: number;
}

interface Job {
  readonly work: (tx: FleetTx) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}
type Result = { value: unknown } | { error: unknown };

export class SqliteFleetStore implements FleetStore {
  readonly #db: Database;
  readonly #options: SqliteStoreOptions;
  readonly #tx: FleetTx;
  #jobs: Job[] = [];
  #running: Promise<void> | undefined;

  private constructor(db: Database, options: SqliteStoreOptions) {
    this.#db = db;
    this.#options = options;
    this.#tx = rows(db);
    db.prepare(`PRAGMA busy_timeout = ${BUSY_SLICE_MS}`).get();
  }

  /** Opens, creates or migrates the file; throws store errors. */
  static async open(options: SqliteStoreOptions): Promise<SqliteFleetStore> {
    const db = openDatabase(options.path, { busyTimeoutMs: options.busyTimeoutMs });
    try {
      await migrate(db, options.path, MIGRATIONS, options.clock);
      return new SqliteFleetStore(db, options);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  commit<T>(work: (tx: FleetTx) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push({ work, resolve: resolve as (value: unknown) => void, reject });
      this.#running ??= this.#run();
    });
  }

  async close(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    this.#db.close();
  }

  /** What came in during one transaction shares the next: one fsync for all of them. */
  async #run(): Promise<void> {
    await Promise.resolve();
    while (this.#jobs.length > 0) {
      const batch = this.#jobs.splice(0, MAX_BATCH);
      let results: Result[];
      try {
        await this.#begin();
        results = await this.#transaction(batch);
      } catch (error) {
        results = batch.map(() => ({ error }));
      }
      batch.forEach((job, at) => {
        const result = results[at]!;
        if ("error" in result) job.reject(storeError(result.error, this.#options.path));
        else job.resolve(result.value);
      });
    }
    this.#running = undefined;
  }

  async #begin(): Promise<void> {
    const { clock, busyTimeoutMs } = this.#options;
    const since = clock.monotonic();
    for (;;) {
      try {
        return void this.#db.prepare("BEGIN IMMEDIATE").run();
      } catch (error) {
        if (!isBusy(error) || clock.monotonic() - since >= busyTimeoutMs) throw error;
        await pause(clock, BUSY_SLICE_MS);
      }
    }
  }

  async #transaction(batch: readonly Job[]): Promise<Result[]> {
    const run = (sql: string) => void this.#db.prepare(sql).run();
    const results: Result[] = [];
    try {
      for (const { work } of batch) {
        run("SAVEPOINT job");
        try {
          results.push({ value: await work(this.#tx) });
        } catch (error) {
          run("ROLLBACK TO job");
          results.push({ error });
        }
        run("RELEASE job");
      }
      probe("commit.before");
      run("COMMIT");
      probe("commit.after");
      return results;
    } catch (error) {
      try {
        run("ROLLBACK");
      } catch {
        // A full disk or an I/O error has already rolled the whole transaction back.
      }
      return batch.map(() => ({ error }));
    }
  }
}

function rows(db: Database): FleetTx {
  const get = db.prepare("SELECT value, revision FROM records WHERE kind = ? AND id = ?");
  const insert = db.prepare(
    "INSERT INTO records (kind, id, part, revision, value) VALUES (?, ?, ?, 1, ?) ON CONFLICT (kind, id) DO NOTHING",
  );
  const update = db.prepare(
    "UPDATE records SET revision = revision + 1, value = ?, part = coalesce(?, part) WHERE kind = ? AND id = ? AND revision = ?",
  );
  const select = (where: string, order: string) =>
    db.prepare(
      `SELECT id, value FROM records WHERE kind = ? ${where} ORDER BY seq ${order} LIMIT ?`,
    );
  const lists = {
    all: { asc: select("", "ASC"), desc: select("", "DESC") },
    group: { asc: select("AND part = ?", "ASC"), desc: select("AND part = ?", "DESC") },
  };
  return {
    get(kind, key) {
      const row = get.get(kind, key);
      if (row === undefined) return Promise.resolve(undefined);
      const value = JSON.parse(row.value as string);
      return Promise.resolve({ value, revision: Number(row.revision) });
    },
    insert(kind, key, value, group = "") {
      return Promise.resolve(insert.run(kind, key, group, JSON.stringify(value)).changes === 1);
    },
    update(kind, key, revision, value, group) {
      const { changes } = update.run(JSON.stringify(value), group ?? null, kind, key, revision);
      return Promise.resolve(changes === 1);
    },
    list(kind, { group, limit = -1, newest = false } = {}) {
      const order = newest ? "desc" : "asc";
      const found = group === undefined
        ? lists.all[order].all(kind, limit)
        : lists.group[order].all(kind, group, limit);
      return Promise.resolve(
        found.map((row) => ({ key: row.id as string, value: JSON.parse(row.value as string) })),
      );
    },
  };
}
