/** History as lines of JSON, oldest first, a page at a time. */
import { type HistoryFilters, historyQuery } from "../model/history.ts";
import type { PurgeChoice } from "../model/purge.ts";
import type { AttemptRecord, MessageRecord } from "../model/records.ts";
import { attemptView, messageView } from "../model/view.ts";
import { EXPORT_FORMAT } from "../model/replay.ts";
import type { Database } from "../sqlite/open.ts";
import { attemptReader } from "./attempts.ts";
import { selectPage } from "./history.ts";
import { choiceValues, CHOSEN, SETTLED } from "./purge_reader.ts";

// Small: what lives no longer than a page is cheap for the garbage collector.
const PAGE = 100;

/**
 * Pages of lines, without line feeds. Each page is a read of its own: a slow reader holds back no
 * checkpoint, and memory holds one page. Messages admitted after the start are left out. With
 * `choice` only what such a purge would take. Throws `invalid_time`.
 */
export function* exportLines(
  db: Database,
  filters: Omit<HistoryFilters, "limit" | "cursor">,
  choice?: PurgeChoice,
): Generator<string[]> {
  const last = Number(db.prepare("SELECT max(seq) AS seq FROM messages").get()?.seq ?? 0);
  const only = choice && { sql: `${SETTLED} AND ${CHOSEN}`, values: choiceValues(choice) };
  const query = { ...historyQuery(filters), limit: PAGE, beforeSeq: last + 1 };
  const attemptsOf = attemptReader(db);
  for (let afterSeq = 0;;) {
    const { records, more } = selectPage(db, { ...query, afterSeq }, "ASC", only);
    if (records.length > 0) {
      yield records.map((record) => exportLine(record, attemptsOf(record.seq)));
    }
    if (!more) return;
    afterSeq = records.at(-1)!.seq;
  }
}

/** The line of one message; docs/history.md describes it. */
function exportLine(record: MessageRecord, attempts: readonly AttemptRecord[]): string {
  const { waiting_reason: _, max_attempts, ...view } = messageView(record);
  return JSON.stringify({
    format: EXPORT_FORMAT,
    ...view,
    policy: { ack_mode: record.ackMode, max_attempts },
    attempts: attempts.map(attemptView),
  });
}
