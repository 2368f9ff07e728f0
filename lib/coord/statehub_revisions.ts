/** Notices a State Hub that goes back in time: a restored copy, or a hostile answer. */
import { TamqError } from "../base/errors.ts";
import type { Change } from "../hub/schema.ts";

/** Sources remembered; the ones longest not seen are forgotten first. */
const LIMIT = 50_000;

export class Revisions {
  readonly #seen = new Map<string, number>();
  readonly #limit: number;

  constructor(limit = LIMIT) {
    this.#limit = limit;
  }

  /**
   * Throws `revision_regressed` for a record older than one seen before, and `answer_invalid` for
   * one whose wake revision is ahead of its own. A repeat of the same revision is fine.
   */
  check(change: Change): void {
    if (change.kind === "checkpoint" || change.kind === "receipt") return;
    const { revision, wake } = change.record;
    const key = `${change.kind} ${change.source_id}`;
    const known = this.#seen.get(key) ?? 0;
    if (wake.revision > revision) {
      throw new TamqError(
        "UNAVAILABLE",
        "answer_invalid",
        `the State Hub gives ${change.kind} ${change.source_id} a wake revision of its future`,
      );
    }
    if (revision < known) {
      throw new TamqError(
        "UNAVAILABLE",
        "revision_regressed",
        `the State Hub gives ${change.kind} ${change.source_id} revision ${revision} after ${known}`,
        { hint: "was it restored from a copy? then begin its change feed again" },
      );
    }
    this.#seen.delete(key);
    this.#seen.set(key, revision);
    if (this.#seen.size > this.#limit) this.#seen.delete(this.#seen.keys().next().value!);
  }

  /** After a decision to accept what the hub says now. */
  reset(): void {
    this.#seen.clear();
  }
}
