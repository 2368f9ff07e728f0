/** Choosing messages for a purge: reads alone, also of a database that nobody serves. */
import {
  join,
  NOTHING,
  type Portion,
  PURGEABLE,
  type PurgeChoice,
  type PurgeSurveyor,
  type Reach,
  type Survey,
} from "../model/purge.ts";
import type { Database } from "../sqlite/open.ts";

/** What a message takes beside body and metadata: its other columns, its indexes, an attempt. */
const ROW_BYTES = 350;
/** What a kept key takes, as measured on many of them. */
const KEY_BYTES = 88;

const STATES = PURGEABLE.map((state) => `'${state}'`).join(", ");

/** Whether the row `m` may be purged; ?1 is `settledBefore`. */
export const SETTLED = `(m.state IN (${STATES}) AND ifnull(m.updated_at < ?1, 1))`;
/** Whether a filter chooses the row `m`; ?2 to ?5 are the filters. */
export const CHOSEN = `(ifnull(m.created_at < ?2, 0)
  OR ifnull(m.target_repo = ?3 OR m.sender_repo = ?3, 0)
  OR ifnull(m.state = ?4, 0) OR ifnull(m.seq <= ?5, 0))`;

/** Values of ?1 to ?5. */
export function choiceValues(choice: PurgeChoice): (string | number | null)[] {
  const { settledBefore, before, repo, state, through } = choice;
  return [settledBefore ?? null, before ?? null, repo ?? null, state ?? null, through ?? null];
}

// The lengths stand in the head of a row: long bodies are not read for them.
export const ROWS = `SELECT m.seq, m.created_at,
  octet_length(m.body) + octet_length(m.metadata) + ${ROW_BYTES} AS weight,
  ${SETTLED} AND ${CHOSEN} AS chosen, ${SETTLED} AND NOT ${CHOSEN} AS spared
  FROM messages m WHERE m.seq > ?6 ORDER BY m.seq LIMIT ?7`;

const portionOf = (flag: string) =>
  `count(*) FILTER (WHERE ${flag}) AS ${flag}Count,
  ifnull(sum(weight) FILTER (WHERE ${flag}), 0) AS ${flag}Weight,
  min(created_at) FILTER (WHERE ${flag}) AS ${flag}Oldest,
  max(created_at) FILTER (WHERE ${flag}) AS ${flag}Newest`;

export class PurgeReader implements PurgeSurveyor {
  protected readonly db: Database;
  readonly #bytes;
  readonly #survey;
  readonly #spared;

  constructor(db: Database) {
    this.db = db;
    this.#bytes = db.prepare(`SELECT
      ((SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count))
        * (SELECT page_size FROM pragma_page_size)
        - (SELECT count FROM purged_total) * ${KEY_BYTES} AS bytes`);
    this.#survey = db.prepare(`SELECT max(seq) AS last, ifnull(sum(weight), 0) AS weight,
      ${portionOf("chosen")}, ${portionOf("spared")} FROM (${ROWS})`);
    this.#spared = db.prepare(`SELECT seq, weight, created_at AS at FROM (${ROWS}) WHERE spared`);
  }

  historyBytes(): number {
    return Math.max(0, Number(this.#bytes.get()?.bytes ?? 0));
  }

  survey(choice: PurgeChoice, after: number, limit: number): Survey | undefined {
    const row = this.#survey.get(...choiceValues(choice), after, limit);
    if (row === undefined || row.last === null) return undefined;
    const portion = (flag: string): Portion => ({
      count: Number(row[`${flag}Count`]),
      weight: Number(row[`${flag}Weight`]),
      oldestAt: row[`${flag}Oldest`] as number | null,
      newestAt: row[`${flag}Newest`] as number | null,
    });
    return {
      last: Number(row.last),
      weight: Number(row.weight),
      chosen: portion("chosen"),
      spared: portion("spared"),
    };
  }

  reach(choice: PurgeChoice, after: number, limit: number, weight: number): Reach {
    let portion = NOTHING;
    let last = after;
    for (const row of this.#spared.iterate(...choiceValues(choice), after, limit)) {
      portion = join(portion, one(Number(row.weight), Number(row.at)));
      last = Number(row.seq);
      if (portion.weight >= weight) break;
    }
    return { portion, last };
  }
}

/** One message as a portion. */
export function one(weight: number, at: number): Portion {
  return { count: 1, weight, oldestAt: at, newestAt: at };
}
