/** The filters of `history` as they cross the socket, and what the store makes of them. */
import { TamqError } from "../base/errors.ts";
import type { MessageState } from "./message.ts";
import type { HistoryPage, HistoryQuery } from "./records.ts";

export const DEFAULT_PAGE = 100;

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

/** For `next_cursor`; null on the last page. */
export function cursorOf(page: HistoryPage): string | null {
  return page.nextBefore === undefined ? null : String(page.nextBefore);
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
