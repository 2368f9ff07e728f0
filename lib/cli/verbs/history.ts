/** `tamq history`: reads the database itself, so that it works with the service stopped. */
import { displaySafe } from "../../base/display.ts";
import { loadSettings } from "../../config.ts";
import { RESERVED_SENDERS } from "../../model/envelope.ts";
import type { HistoryFilters } from "../../model/history.ts";
import type { MessageState } from "../../model/message.ts";
import { nearest } from "../../model/nearest.ts";
import type { WireMessage } from "../../protocol/schema.ts";
import type { ColorFlag } from "../colour.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../errors.ts";
import { late } from "../late.ts";
import { lookOf } from "../layout.ts";
import { messageEntry } from "../render.ts";
import { parseTime } from "../times.ts";
import { waitingReasons } from "../waiting_reasons.ts";
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

export interface ShowFlags extends HistoryFlags, ColorFlag {
  readonly full?: boolean;
}

interface Page {
  readonly messages: readonly WireMessage[];
  readonly next_cursor: string | null;
}

type ReadPage = (limit: number, cursor: string | undefined) => Page;

const DEFAULT_SHOWN = 50;
const PAGE = 500;

const history: Verb<ShowFlags> = async function (flags) {
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
  const { since, until } = filters;
  if (since !== undefined && until !== undefined && since >= until) {
    throw usageError(
      `--since (${since}) is not before --until (${until})`,
      "give the earlier time to --since",
    );
  }
  const settings = await loadSettings(this.env);
  const db = await openHistory(this, settings);
  if (db === undefined) return;
  const { readHistory } = await late("store/history");
  try {
    const read: ReadPage = (limit, cursor) => readHistory(db, { ...filters, limit, cursor });
    const waits = (filters.state ?? "pending") === "pending" &&
      readHistory(db, { ...filters, state: "pending", limit: 1 }).messages.length > 0;
    const reasons = waits ? await waitingReasons(this, filters) : undefined;
    const limit = flags.limit ?? (flags.json ? Infinity : DEFAULT_SHOWN);
    const look = lookOf(this, flags);
    let shown = 0;
    const print = (stored: WireMessage) => {
      shown++;
      const reason = stored.state === "pending" ? reasons?.get(stored.message_id) : undefined;
      const message = reason === undefined ? stored : { ...stored, waiting_reason: reason };
      this.out(
        flags.json
          ? JSON.stringify(message)
          : messageEntry(message, now, { full: flags.full, look }),
      );
    };
    await (flags.reverse ? newestFirst : oldestFirst)(this, read, limit, print);
    if (shown === 0 && !flags.json) await explainNothing(this, filters);
  } finally {
    db.close();
  }
};
export default history;

/** For people: an empty answer is one, and a misspelt name is the likeliest cause of it. */
async function explainNothing(context: CliContext, filters: HistoryFilters): Promise<void> {
  const filtered = Object.values(filters).some((value) => value !== undefined);
  context.err(filtered ? "no messages match" : "no messages");
  const { repo } = filters;
  if (repo === undefined || RESERVED_SENDERS.includes(repo)) return;
  const { gitaRegistry } = await late("gita");
  try {
    const names = gitaRegistry(context.env).names();
    if (names.includes(repo)) return;
    const like = nearest(repo, names).map((name) => `"${name}"`).join(", ");
    const hint = like === "" ? "see: gita ls" : `did you mean ${like}?`;
    context.err(`hint: no repository "${displaySafe(repo)}" is registered; ${displaySafe(hint)}`);
  } catch {
    // A registry that cannot be read is not what was asked about.
  }
}

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
