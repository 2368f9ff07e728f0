/** Delivery history in pages, newest first; also read straight from the file (Q-04). */
import { TamqError } from "../base/errors.ts";
import type { MessageState } from "../model/message.ts";
import type { HistoryPage, HistoryQuery, MessageRecord } from "../model/records.ts";
import { type AttemptView, attemptView, type MessageView, messageView } from "../model/view.ts";
import type { Database } from "../sqlite/open.ts";
import { selectAttempts } from "./attempts.ts";
import { asMessage, MESSAGE_COLUMNS } from "./columns.ts";

export const DEFAULT_PAGE = 100;
// A page is one line on the socket: at most this many bytes of bodies and metadata, so that one
// reader of long messages neither fills memory nor holds up deliveries.
const MAX_PAGE_BYTES = 512 * 1024;

/** Filters as they cross the socket. */
export interface HistoryFilters {
  readonly repo?: string;
  readonly state?: MessageState;
  readonly endpoint_id?: string;
  readonly correlation_id?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** Throws `invalid_time` or `invalid_cursor`. */
export function historyQuery(filters: HistoryFilters): HistoryQuery {
  return {
    repo: filters.repo,
    state: filters.state,
    endpointId: filters.endpoint_id,
    correlationId: filters.correlation_id,
    since: parseTime("since", filters.since),
    until: parseTime("until", filters.until),
    limit: filters.limit ?? DEFAULT_PAGE,
    beforeSeq: parseCursor(filters.cursor),
  };
}

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

export function cursorOf(page: HistoryPage): string | null {
  return page.nextBefore === undefined ? null : String(page.nextBefore);
}

export function selectHistory(db: Database, query: HistoryQuery): HistoryPage {
  const where: string[] = [];
  const values: (string | number)[] = [];
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

  // One row more than asked tells whether a further page exists.
  const limit = query.limit + 1;
  const branch = (extra: readonly string[]) => {
    const all = [...extra, ...where];
    return `SELECT * FROM (SELECT ${MESSAGE_COLUMNS} FROM messages m ` +
      `${all.length > 0 ? `WHERE ${all.join(" AND ")} ` : ""}ORDER BY m.seq DESC LIMIT ${limit})`;
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
  for (const row of db.prepare(`${sql} ORDER BY seq DESC LIMIT ${limit}`).iterate(...bound)) {
    const record = row as unknown as MessageRecord;
    bytes += record.body.length + record.metadata.length;
    if (records.length === query.limit || (records.length > 0 && bytes > MAX_PAGE_BYTES)) {
      return { records, nextBefore: records.at(-1)!.seq };
    }
    records.push(record);
  }
  return { records, nextBefore: undefined };
}

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function parseTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = RFC3339.test(text) ? Date.parse(text.toUpperCase()) : NaN;
  if (Number.isNaN(ms)) {
    throw new TamqError("INVALID_ARGUMENT", "invalid_time", `"${name}" is not an RFC 3339 time`, {
      hint: "write it like 2030-01-31T12:00:00Z",
    });
  }
  return ms;
}

function parseCursor(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    throw new TamqError("INVALID_ARGUMENT", "invalid_cursor", `"cursor" is not one of ours`, {
      hint: "pass next_cursor of the page before, unchanged",
    });
  }
  return Number(text);
}
