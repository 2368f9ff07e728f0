/**
 * The hub's database: every change in a transaction of the single writer, answered after it is on
 * disk; repeats recognised by their key.
 */
import type { Clock } from "../../base/clock.ts";
import { rfc3339 } from "../../base/clock.ts";
import { TamqError } from "../../base/errors.ts";
import { newToken } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { GroupCommit } from "../../sqlite/group_commit.ts";
import { migrate } from "../../sqlite/migrator.ts";
import { type Database, openDatabase } from "../../sqlite/open.ts";
import { usedBytes } from "../../sqlite/size.ts";
import { type Change, type ChangeKind, LIMITS } from "../schema.ts";
import { StoreContext } from "./context.ts";
import { expired, readCursor, writeCursor } from "./cursor.ts";
import { Journal } from "./journal.ts";
import { Messages } from "./messages.ts";
import { MIGRATIONS } from "./migrations.ts";
import { Plans } from "./plans.ts";
import { Tasks } from "./tasks.ts";

export interface StoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a change waits for another process that writes, milliseconds. */
  readonly busyTimeoutMs: number;
}

/** A change and the key under which its repeat is recognised. */
export interface Mutation<T> {
  readonly key: string | undefined;
  /** Of everything that was asked for: the same key with another digest is a conflict. */
  readonly digest: string;
  readonly kind: ChangeKind;
  readonly idOf: (record: T) => string;
  readonly work: () => T;
  /** The record as it is now, for a repeat. */
  readonly again: (id: string) => T;
}

export interface Page<T> {
  readonly items: T[];
  readonly next_cursor: string | null;
}

export interface ChangePage {
  readonly changes: Change[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

export class HubStore {
  readonly hubId: string;
  readonly plans: Plans;
  readonly tasks: Tasks;
  readonly messages: Messages;
  readonly journal: Journal;
  readonly #db: Database;
  readonly #context: StoreContext;
  readonly #commits: GroupCommit;
  readonly #listeners = new Set<() => void>();

  private constructor(db: Database, options: StoreOptions) {
    this.#db = db;
    this.#context = new StoreContext(db, options.clock, options.random);
    this.#context.run(
      "INSERT OR IGNORE INTO hub (one, hub_id) VALUES (1, ?)",
      newToken(options.random),
    );
    this.hubId = this.#context.get("SELECT hub_id FROM hub")!.hub_id as string;
    this.tasks = new Tasks(this.#context);
    this.plans = new Plans(this.#context, this.tasks);
    this.messages = new Messages(this.#context);
    this.journal = new Journal(this.#context);
    this.#commits = new GroupCommit(db, options);
  }

  /** Opens, creates or migrates the file; throws the errors of `openDatabase` and `migrate`. */
  static async open(options: StoreOptions): Promise<HubStore> {
    const db = openDatabase(options.path, { busyTimeoutMs: options.busyTimeoutMs });
    try {
      await migrate(db, options.path, MIGRATIONS, options.clock);
      return new HubStore(db, options);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** Resolves when the change is on disk; `repeated`: it was made before, nothing changed now. */
  async mutate<T>(mutation: Mutation<T>): Promise<{ record: T; repeated: boolean }> {
    const result = await this.#commits.run(() => this.#once(mutation));
    if (!result.repeated) { for (const listener of [...this.#listeners]) listener(); }
    return result;
  }

  #once<T>({ key, digest, kind, idOf, work, again }: Mutation<T>) {
    if (key === undefined) return { record: work(), repeated: false };
    const known = this.#context.get(
      "SELECT digest, source_id FROM idempotency WHERE idempotency_key = ?",
      key,
    );
    if (known !== undefined) {
      if (known.digest !== digest) {
        throw new TamqError(
          "ABORTED",
          "idempotency_conflict",
          "the idempotency key was used for another request",
          { hint: "use a new key for a new request" },
        );
      }
      return { record: again(known.source_id as string), repeated: true };
    }
    const record = work();
    this.#context.run(
      `INSERT INTO idempotency (idempotency_key, digest, kind, source_id, created_at)
        VALUES (?, ?, ?, ?, ?)`,
      key,
      digest,
      kind,
      idOf(record),
      this.#context.now(),
    );
    return { record, repeated: false };
  }

  /**
   * Fills a page from `rows(place)`, which yields from the place of `cursor` on; ends it by count
   * or by bytes, so that its size is bounded whatever the records hold.
   */
  page<T>(
    list: string,
    query: { cursor?: string; limit?: number },
    start: number,
    rows: (place: number) => Iterable<[seq: number, item: T]>,
  ): Page<T> {
    const place = query.cursor === undefined ? start : readCursor(list, this.hubId, query.cursor);
    const limit = query.limit ?? 100;
    const items: T[] = [];
    let bytes = 0;
    let last = place;
    for (const [seq, item] of rows(place)) {
      bytes += JSON.stringify(item).length;
      if (items.length === limit || (items.length > 0 && bytes > LIMITS.pageBytes)) {
        return { items, next_cursor: writeCursor(list, this.hubId, last) };
      }
      items.push(item);
      last = seq;
    }
    return { items, next_cursor: null };
  }

  /** The newest place of the change feed. */
  head(): string {
    return writeCursor("feed", this.hubId, this.#lastSeq());
  }

  /** Changes after `cursor`, oldest first (K-01). Throws `cursor_invalid`, `cursor_expired`. */
  changes(cursor: string | undefined, kinds: readonly string[], limit: number): ChangePage {
    const after = cursor === undefined ? 0 : readCursor("feed", this.hubId, cursor);
    // A database restored from a copy is behind the places that it once gave out.
    const newest = this.#lastSeq();
    if (after > newest) throw expired();
    const changes: Change[] = [];
    let bytes = 0;
    const rows = this.#context.each(
      `SELECT seq, kind, source_id, changed_at FROM changes
        WHERE seq > ? AND (? = '' OR instr(?, kind) > 0) ORDER BY seq`,
      after,
      kinds.join(","),
      kinds.join(","),
    );
    for (const row of rows) {
      const kind = row.kind as ChangeKind;
      const source_id = row.source_id as string;
      const record = this.#record(kind, source_id);
      bytes += JSON.stringify(record).length;
      if (changes.length === limit || (changes.length > 0 && bytes > LIMITS.pageBytes)) {
        return { changes, next_cursor: changes.at(-1)!.cursor, has_more: true };
      }
      changes.push({
        cursor: writeCursor("feed", this.hubId, row.seq as number),
        kind,
        source_id,
        changed_at: rfc3339(row.changed_at as number),
        record,
      } as Change);
    }
    // Past what the filter left out as well: the next look starts at what is new.
    return { changes, next_cursor: writeCursor("feed", this.hubId, newest), has_more: false };
  }

  /** Calls `listener` after each committed change; returns the function that ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Size of what is kept. */
  bytes(): number {
    return usedBytes(this.#db);
  }

  /** What was handed in is answered first. */
  async close(): Promise<void> {
    await this.#commits.drain();
    this.#db.close();
  }

  #lastSeq(): number {
    // Not max(seq): the last change may have moved on and left its place empty.
    const row = this.#context.get("SELECT seq FROM sqlite_sequence WHERE name = 'changes'");
    return (row?.seq as number | undefined) ?? 0;
  }

  #record(kind: ChangeKind, id: string): unknown {
    switch (kind) {
      case "workplan":
        return this.plans.get(id);
      case "task":
        return this.tasks.get(id);
      case "message":
        return this.messages.get(id);
      case "checkpoint":
        return this.journal.checkpoint(id);
      case "receipt":
        return this.journal.receipt(id);
    }
  }
}
