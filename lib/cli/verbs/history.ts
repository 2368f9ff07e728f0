/** `tamq history`: reads the database itself, so that it works with the service stopped. */
import { loadSettings } from "../../config.ts";
import type { MessageState } from "../../model/message.ts";
import type { WireMessage } from "../../protocol/schema.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { late } from "../late.ts";
import { messageEntry } from "../render.ts";
import { parseTime } from "../times.ts";
import { openHistory } from "./open_history.ts";

export interface HistoryFlags {
  readonly repo?: string;
  readonly state?: MessageState;
  readonly endpoint?: string;
  readonly correlation?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly reverse?: boolean;
  readonly json?: boolean;
}

interface Page {
  readonly messages: readonly WireMessage[];
  readonly next_cursor: string | null;
}

type ReadPage = (limit: number, cursor: string | undefined) => Page;

const DEFAULT_SHOWN = 50;
const PAGE = 500;

const history: Verb<HistoryFlags> = async function (flags) {
  const now = this.clock.now();
  const time = (option: "since" | "until") =>
    flags[option] === undefined ? undefined : parseTime(flags[option], now, `--${option}`);
  const filters = {
    repo: flags.repo,
    state: flags.state,
    endpoint_id: flags.endpoint,
    correlation_id: flags.correlation,
    since: time("since"),
    until: time("until"),
  };
  const settings = await loadSettings(this.env);
  const db = await openHistory(this, settings);
  if (db === undefined) return;
  const { readHistory } = await late("store/history");
  try {
    const read: ReadPage = (limit, cursor) => readHistory(db, { ...filters, limit, cursor });
    const limit = flags.limit ?? (flags.json ? Infinity : DEFAULT_SHOWN);
    const print = (message: WireMessage) =>
      this.out(flags.json ? JSON.stringify(message) : messageEntry(message, now));
    await (flags.reverse ? newestFirst : oldestFirst)(this, read, limit, print);
  } finally {
    db.close();
  }
};
export default history;

async function newestFirst(
  context: CliContext,
  read: ReadPage,
  limit: number,
  print: (message: WireMessage) => void,
): Promise<void> {
  let cursor: string | undefined;
  for (let left = limit; left > 0;) {
    const page = read(Math.min(left, PAGE), cursor);
    page.messages.forEach(print);
    await context.flush();
    if (page.next_cursor === null) return;
    left -= page.messages.length;
    cursor = page.next_cursor;
  }
}

/**
 * The store reads from the newest on. A first pass notes where each page begins, a second prints the
 * pages backwards: memory holds one page, however long the history is.
 */
async function oldestFirst(
  context: CliContext,
  read: ReadPage,
  limit: number,
  print: (message: WireMessage) => void,
): Promise<void> {
  const first = read(Math.min(limit, PAGE), undefined);
  const older: { cursor: string; count: number }[] = [];
  let left = limit - first.messages.length;
  for (let cursor = first.next_cursor; cursor !== null && left > 0;) {
    const page = read(Math.min(left, PAGE), cursor);
    older.push({ cursor, count: page.messages.length });
    left -= page.messages.length;
    cursor = page.next_cursor;
  }
  for (const { cursor, count } of older.reverse()) {
    if (count > 0) [...read(count, cursor).messages].reverse().forEach(print);
    await context.flush();
  }
  // Kept from the first pass: a message admitted since would shift it.
  [...first.messages].reverse().forEach(print);
}
