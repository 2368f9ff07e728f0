/** What the parts of the store share: prepared statements, time, ids, the change feed's writer. */
import type { Clock } from "../../base/clock.ts";
import { rfc3339 } from "../../base/clock.ts";
import { TamqError } from "../../base/errors.ts";
import { newId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Database } from "../../sqlite/open.ts";
import type { ChangeKind } from "../schema.ts";

export type Value = string | number | null;
export type Row = Record<string, Value>;

export class StoreContext {
  readonly #db: Database;
  readonly #clock: Pick<Clock, "now">;
  readonly #random: Random;
  readonly #statements = new Map<string, ReturnType<Database["prepare"]>>();

  constructor(db: Database, clock: Pick<Clock, "now">, random: Random) {
    this.#db = db;
    this.#clock = clock;
    this.#random = random;
  }

  now(): number {
    return Math.floor(this.#clock.now());
  }
  newId(): string {
    return newId(this.#clock, this.#random);
  }

  get(sql: string, ...values: Value[]): Row | undefined {
    return this.#prepare(sql).get(...values) as Row | undefined;
  }
  all(sql: string, ...values: Value[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[];
  }
  /** Rows one by one, for readers that stop early. */
  each(sql: string, ...values: Value[]): IterableIterator<Row> {
    // Not from the cache: two readers must not share one statement's position.
    return this.#db.prepare(sql).iterate(...values) as IterableIterator<Row>;
  }
  run(sql: string, ...values: Value[]): void {
    this.#prepare(sql).run(...values);
  }

  /** Moves the source to the end of the change feed. */
  changed(kind: ChangeKind, sourceId: string): void {
    this.run("DELETE FROM changes WHERE kind = ? AND source_id = ?", kind, sourceId);
    this.run(
      "INSERT INTO changes (kind, source_id, changed_at) VALUES (?, ?, ?)",
      kind,
      sourceId,
      this.now(),
    );
  }

  #prepare(sql: string) {
    let statement = this.#statements.get(sql);
    // The texts are fixed in this folder: the map cannot grow without bound.
    if (statement === undefined) this.#statements.set(sql, statement = this.#db.prepare(sql));
    return statement;
  }
}

/** Conditions that hold, joined; and their values. */
export function where(
  conditions: readonly (readonly [sql: string, value: Value | undefined])[],
): { sql: string; values: Value[] } {
  const given = conditions.filter(([, value]) => value !== undefined);
  return {
    sql: given.length === 0 ? "" : `WHERE ${given.map(([sql]) => sql).join(" AND ")}`,
    values: given.map(([, value]) => value as Value),
  };
}

export const time = (value: Value): string => rfc3339(value as number);
export const timeOrNull = (value: Value): string | null => value === null ? null : time(value);
export const json = <T>(value: Value): T => JSON.parse(value as string) as T;
export const flag = (value: boolean): number => value ? 1 : 0;

/** `expected`: a revision, or undefined for "whatever it is" (`If-Match: *`). */
export function checkRevision(what: string, current: Value, expected: number | undefined): void {
  if (expected === undefined || expected === current) return;
  throw new TamqError(
    "ABORTED",
    "revision_mismatch",
    `${what} is at revision ${current}, not ${expected}`,
    { hint: "read it again and decide on what it says now" },
  );
}

/** What a person can list, and the word of the command for it. */
const LISTED: Readonly<Record<string, string>> = {
  task: "task",
  workplan: "plan",
  message: "message",
};

export function unknown(what: string, reason: string, id: string): TamqError {
  const list = LISTED[what];
  return new TamqError("NOT_FOUND", reason, `there is no ${what} "${id}"`, {
    hint: list === undefined ? undefined : `see which there are: tamq hub ${list} list`,
  });
}
