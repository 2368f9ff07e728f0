/** Delivery history in pages, newest first; also read straight from the file (Q-04). */
import { cursorOf, type HistoryFilters, historyQuery } from "../model/history.ts";
import type { HistoryPage, HistoryQuery, MessageRecord } from "../model/records.ts";
import { type AttemptView, attemptView, type MessageView, messageView } from "../model/view.ts";
import type { Database } from "../sqlite/open.ts";
import { selectAttempts } from "./attempts.ts";
import { asMessage, MESSAGE_COLUMNS } from "./columns.ts";

// A page is one line on the socket: at most this many bytes of bodies and metadata, so that one
// reader of long messages neither fills memory nor holds up deliveries.
const MAX_PAGE_BYTES = 512 * 1024;

/** One page of history of an open database; needs no service. */
export function readHistory(
  db: Database,
  filters: HistoryFilters,
): { messages: MessageView[]; next_cursor: string | null } {
  const page = selectHistory(db, historyQuery(filters));
  return {
    messages: page.records.map((record) => messageView(record)),
    next_cursor: cursorOf(page),
  };
}

/** The most that an inbox shows of what waits. */
const MOST_WAITING = 200;

/** What waits for a repository, oldest first, and the latest that are done with, newest first. */
export function readInbox(
  db: Database,
  repo: string,
  recent: number,
): { waiting: MessageView[]; more: number; recent: MessageView[] } {
  const states = (are: string) => ({
    sql: `m.target_repo = ?1 AND m.state ${are} IN ('pending', 'awaiting_ack')`,
    values: [repo],
  });
  const waiting = selectPage(db, { limit: MOST_WAITING }, "ASC", states("")).records;
  const { count } = db.prepare(
    `SELECT count(*) AS count FROM messages m WHERE ${states("").sql}`,
  ).get(repo) as { count: number };
  const done = selectPage(db, { limit: recent }, "DESC", states("NOT")).records;
  return {
    waiting: waiting.map((record) => messageView(record)),
    more: count - waiting.length,
    recent: done.map((record) => messageView(record)),
  };
}

/** One message with its attempts, of an open database; undefined when there is none of that id. */
export function readMessage(
  db: Database,
  messageId: string,
): { message: MessageView; attempts: AttemptView[] } | undefined {
  const record = asMessage(
    db.prepare(`SELECT ${MESSAGE_COLUMNS} FROM messages m WHERE m.message_id = ?`).get(messageId),
  );
  if (record === undefined) return undefined;
  return {
    message: messageView(record),
    attempts: selectAttempts(db, record.seq).map(attemptView),
  };
}

/**
 * Newest first. With `most`, no more than so many messages are looked at for one page: it may be
 * short or even empty although others follow.
 */
export function selectHistory(db: Database, query: HistoryQuery, most?: number): HistoryPage {
  const floor = most === undefined || !isSearch(query) ? 0 : lookedAtDownTo(db, query, most);
  const { records, more } = selectPage(db, { ...query, afterSeq: floor }, "DESC");
  const rest = floor > 0 ? floor + 1 : undefined;
  return { records, nextBefore: more ? records.at(-1)!.seq : rest };
}

/** No index leads to these: message after message is looked at. */
function isSearch(query: HistoryQuery): boolean {
  return [query.since, query.until, query.endpointId].some((filter) => filter !== undefined);
}

/** The sequence below which the next page begins; 0 when everything is looked at. */
function lookedAtDownTo(db: Database, { beforeSeq }: HistoryQuery, most: number): number {
  const { first, last } = db.prepare(
    "SELECT (SELECT min(seq) FROM messages) AS first, (SELECT max(seq) FROM messages) AS last",
  ).get() as { first: number | null; last: number | null };
  if (first === null || last === null) return 0;
  const floor = Math.min(beforeSeq ?? Infinity, last + 1) - 1 - most;
  return floor < first ? 0 : floor;
}

/** A condition on a row `m` with parameters ?1, ?2 …, and their values. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number | null)[];
}

/** Messages in the order of admission or against it; at most a page of them. */
export function selectPage(
  db: Database,
  query: HistoryQuery & { readonly afterSeq?: number },
  order: "ASC" | "DESC",
  only?: Condition,
): { records: MessageRecord[]; more: boolean } {
  const where: string[] = [];
  const values: (string | number | null)[] = [];
  const filter = (sql: string, value: string | number | undefined) => {
    if (value === undefined) return;
    where.push(sql);
    values.push(value);
  };
  // The state stands in the text, from a closed set, so that partial indexes apply.
  if (query.state !== undefined) where.push(`m.state = '${query.state}'`);
  filter("m.correlation_id = ?", query.correlationId);
  filter(
    "m.endpoint IN (SELECT ref FROM endpoints WHERE endpoint_id = ?)",
    query.endpointId,
  );
  filter("m.created_at >= ?", query.since);
  filter("m.created_at < ?", query.until);
  filter("m.seq < ?", query.beforeSeq);
  filter("m.seq > ?", query.afterSeq);

  // One row more than asked tells whether a further page exists.
  const limit = query.limit + 1;
  const branch = (extra: readonly string[]) => {
    // Numbered parameters first: plain ones count on from the highest number before them.
    const all = [...(only === undefined ? [] : [only.sql]), ...extra, ...where];
    return `SELECT * FROM (SELECT ${MESSAGE_COLUMNS} FROM messages m ` +
      `${
        all.length > 0 ? `WHERE ${all.join(" AND ")} ` : ""
      }ORDER BY m.seq ${order} LIMIT ${limit})`;
  };
  const { repo } = query;
  const [sql, bound] = repo === undefined ? [branch([]), values] : [
    `${branch(["m.target_repo = ?"])} UNION ALL ${
      branch(["m.sender_repo = ?", "m.target_repo <> ?"])
    }`,
    [repo, ...values, repo, repo, ...values],
  ];

  const records: MessageRecord[] = [];
  let bytes = 0;
  const rows = prepared(db, `${sql} ORDER BY seq ${order} LIMIT ${limit}`)
    .iterate(...only?.values ?? [], ...bound);
  for (const row of rows) {
    const record = row as unknown as MessageRecord;
    bytes += record.body.length + record.metadata.length;
    if (records.length === query.limit || (records.length > 0 && bytes > MAX_PAGE_BYTES)) {
      return { records, more: true };
    }
    records.push(record);
  }
  return { records, more: false };
}

/**
 * The statement of the page before, which mostly is that of this one. A statement of its own for
 * each page would be freed when the garbage collector finds it, which knows nothing of its size: a
 * million messages took 200 MB.
 */
const latest = new WeakMap<Database, { sql: string; statement: ReturnType<Database["prepare"]> }>();

function prepared(db: Database, sql: string): ReturnType<Database["prepare"]> {
  const known = latest.get(db);
  if (known?.sql === sql) return known.statement;
  const statement = db.prepare(sql);
  latest.set(db, { sql, statement });
  return statement;
}
