/**
 * One durable transaction for all the work of a turn. The first job of a turn queues a
 * microtask; it begins, runs every job in a savepoint of its own, commits, and only then answers
 * all of them. Measured at three times the rate of one transaction a job.
 */
import type { Clock } from "../base/clock.ts";
import { probe } from "../base/probe.ts";
import { isBusy, storeError } from "./errors.ts";
import type { Database } from "./open.ts";
import { Presence } from "./presence.ts";

// A transaction blocks the event loop: past this many jobs the rest waits for the next one.
const MAX_BATCH = 512;
// While another process writes, each try blocks the event loop for this long at most, and reads
// and terminals go on in between.
const BUSY_SLICE_MS = 20;

interface Job {
  readonly work: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommitOptions {
  /** Of the database: nothing is committed to a file that no longer stands there. */
  readonly path: string;
  readonly clock: Clock;
  /** How long to retry while another process holds the write lock, milliseconds. */
  readonly busyTimeoutMs: number;
  /** Jobs of one transaction at most; 1 gives each its own, to measure what grouping gains. */
  readonly maxBatch?: number;
}

export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #presence: Presence;
  readonly #begin;
  readonly #commit;
  readonly #rollback;
  readonly #savepoint;
  readonly #release;
  readonly #undo;
  #jobs: Job[] = [];
  #scheduled = false;
  /** Monotonic time of the first busy answer in a row. */
  #busySince: number | undefined;
  #idle: (() => void)[] = [];

  constructor(db: Database, options: GroupCommitOptions) {
    this.#options = options;
    this.#presence = new Presence(options.path);
    db.prepare(`PRAGMA busy_timeout = ${Math.min(BUSY_SLICE_MS, options.busyTimeoutMs)}`).get();
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#rollback = db.prepare("ROLLBACK");
    this.#savepoint = db.prepare("SAVEPOINT job");
    this.#release = db.prepare("RELEASE job");
    this.#undo = db.prepare("ROLLBACK TO job");
  }

  /**
   * Runs `work` inside the next transaction; resolves with its result after the commit is on disk.
   * What `work` throws rejects its own promise and undoes its own changes. A commit that fails
   * rejects every job of the batch and undoes all of it. `work` must not await.
   */
  run<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push({ work, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Resolves when everything handed in so far is answered. */
  drain(): Promise<void> {
    if (this.#jobs.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Throws `store_lost` when the database is not where it was any more. */
  checkPresence(): void {
    this.#presence.check();
  }

  /** Jobs that are not answered yet. */
  get pending(): number {
    return this.#jobs.length;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const batch = this.#jobs.slice(0, this.#options.maxBatch ?? MAX_BATCH);
    try {
      this.#presence.check();
      this.#begin.run();
    } catch (error) {
      if (isBusy(error) && this.#mayWait()) return;
      this.#answer(batch, batch.map(() => ({ error })));
      return;
    }
    this.#busySince = undefined;
    this.#answer(batch, this.#transaction(batch));
  }

  /** Nothing has run yet, so waiting and beginning again cannot repeat anything. */
  #mayWait(): boolean {
    const { clock, busyTimeoutMs } = this.#options;
    this.#busySince ??= clock.monotonic();
    if (clock.monotonic() - this.#busySince >= busyTimeoutMs) {
      this.#busySince = undefined;
      return false;
    }
    this.#scheduled = true;
    clock.after(BUSY_SLICE_MS, () => this.#flush());
    return true;
  }

  #transaction(batch: readonly Job[]): Result[] {
    const results: Result[] = [];
    try {
      // A job alone needs no savepoint: what it throws undoes the whole transaction.
      if (batch.length === 1) results.push({ value: batch[0]!.work() });
      else for (const job of batch) results.push(this.#runJob(job));
      probe("commit.before");
      this.#commit.run();
      probe("commit.after");
      return results;
    } catch (error) {
      try {
        this.#rollback.run();
      } catch {
        // A full disk or an I/O error has already rolled the whole transaction back.
      }
      return batch.map(() => ({ error }));
    }
  }

  /** The job's own failure is a result; only a transaction that is gone throws. */
  #runJob(job: Job): Result {
    this.#savepoint.run();
    try {
      const value = job.work();
      this.#release.run();
      return { value };
    } catch (error) {
      try {
        this.#undo.run();
        this.#release.run();
      } catch {
        throw error; // SQLite has rolled back more than this job: none of the batch stands
      }
      return { error };
    }
  }

  #answer(batch: readonly Job[], results: readonly Result[]): void {
    this.#jobs = this.#jobs.slice(batch.length);
    if (this.#jobs.length > 0) this.#schedule();
    batch.forEach((job, index) => {
      const result = results[index]!;
      if ("error" in result) job.reject(storeError(result.error, this.#options.path));
      else job.resolve(result.value);
    });
    if (this.#jobs.length === 0) {
      for (const resolve of this.#idle.splice(0)) resolve();
    }
  }
}

type Result = { value: unknown } | { error: unknown };
