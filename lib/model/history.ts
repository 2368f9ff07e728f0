/** The filters of `history` as they cross the socket, and what the store makes of them. */
import { parseCursor, parseTime } from "./filters.ts";
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
    beforeSeq: parseCursor("cursor", filters.cursor),
  };
}

/** For `next_cursor`; null on the last page. */
export function cursorOf(page: HistoryPage): string | null {
  return page.nextBefore === undefined ? null : String(page.nextBefore);
}
