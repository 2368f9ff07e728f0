/** The engine's database: its own file, shared with nobody (K-08, K-22). */
import type { Clock } from "../../base/clock.ts";
import { GroupCommit } from "../../sqlite/group_commit.ts";
import { migrate, type MigrationReport } from "../../sqlite/migrator.ts";
import { usedBytes } from "../../sqlite/size.ts";
import { type Database, openDatabase } from "../../sqlite/open.ts";
import { JournalRows } from "./journal.ts";
import { LeaseRows } from "./leases.ts";
import { MIGRATIONS } from "./migrations.ts";
import { Triggers } from "./triggers.ts";

export class CoordStore {
  readonly triggers: Triggers;
  readonly leases: LeaseRows;
  readonly journal: JournalRows;
  readonly #db: Database;
  readonly #commits: GroupCommit;
  readonly #cursor;
  readonly #setCursor;

  private constructor(db: Database, options: StoreOptions) {
    this.#db = db;
    this.triggers = new Triggers(db);
    this.leases = new LeaseRows(db);
    this.journal = new JournalRows(db);
    this.#cursor = db.prepare("SELECT feed_cursor FROM engine");
    this.#setCursor = db.prepare("UPDATE engine SET feed_cursor = ?");
    this.#commits = new GroupCommit(db, options);
  }

  /** Opens, creates or migrates the file; throws store errors. */
  static async open(
    options: StoreOptions,
  ): Promise<{ store: CoordStore; migration: MigrationReport }> {
    const db = openDatabase(options.path, { busyTimeoutMs: options.busyTimeoutMs });
    try {
      const migration = await migrate(db, options.path, MIGRATIONS, options.clock);
      return { store: new CoordStore(db, options), migration };
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** Runs `work` in the next transaction; resolves once it is on disk. `work` must not await. */
  commit<T>(work: () => T): Promise<T> {
    return this.#commits.run(work);
  }

  cursor(): string | undefined {
    return (this.#cursor.get()!.feed_cursor as string | null) ?? undefined;
  }

  setCursor(cursor: string | undefined): void {
    this.#setCursor.run(cursor ?? null);
  }

  /** Size of what is kept. */
  bytes(): number {
    return usedBytes(this.#db);
  }

  async close(): Promise<void> {
    await this.#commits.drain();
    this.#db.close();
  }
}

export interface StoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly busyTimeoutMs: number;
}

export const SCHEMA_VERSION = MIGRATIONS.length;
