/** Message ids as people give them: whole, or a beginning that is unique. */
import { rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import type { HistoryFilters } from "../model/history.ts";
import type { WireMessage } from "../protocol/schema.ts";

/** Reads one page of history, newest first: from the service, or from the database. */
export type ReadPage = (filters: HistoryFilters) => Promise<Page> | Page;

interface Page {
  readonly messages: readonly Pick<WireMessage, "message_id">[];
  readonly next_cursor: string | null;
}

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
/** Fewer characters leave hours or days of messages to search. */
const LEAST = 6;
const WHOLE = 26;
/** Id and time of admission are read from the clock one after the other; it may be set between. */
const MARGIN_MS = 5000;
/** With six characters 17 minutes of messages are searched: bounded, however busy they were. */
const MOST_PAGES = 20;
const PAGE = 500;
/** RFC 3339 has years of four digits. */
const LATEST_MS = Date.parse("9999-01-01T00:00:00Z");

/** Whether `text` could be the beginning of an id, and is none itself. */
export function isBeginning(text: string): boolean {
  return text.length >= LEAST && text.length < WHOLE &&
    [...text].every((char) => ALPHABET.includes(char));
}

/**
 * The id that begins with `text`; `text` itself when there is none, so that who looks it up says so.
 * An id begins with its time, so a few pages of history hold all candidates. Throws `ambiguous_id`,
 * which names some of them.
 */
export async function wholeId(text: string, read: ReadPage): Promise<string> {
  if (!isBeginning(text)) return text;
  const [from, to] = timeSpan(text);
  if (to > LATEST_MS) return text;
  const found: string[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page = await read({
      since: rfc3339(Math.max(0, from - MARGIN_MS)),
      until: rfc3339(to + MARGIN_MS),
      limit: PAGE,
      cursor,
    });
    for (const { message_id } of page.messages) {
      if (message_id.startsWith(text)) found.push(message_id);
    }
    if (found.length > 3 || page.next_cursor === null) break;
    cursor = page.next_cursor;
    if (pages === MOST_PAGES - 1) throw ambiguous(text, found);
  }
  if (found.length > 1) throw ambiguous(text, found);
  return found[0] ?? text;
}

/** Milliseconds since the epoch that ids with this beginning were made in, first and last. */
function timeSpan(text: string): readonly [number, number] {
  // The first character carries 3 bits, the others 5; the first 48 of all are the time.
  const bits = text.length * 5 - 2;
  let value = 0n;
  for (const char of text) value = (value << 5n) | BigInt(ALPHABET.indexOf(char));
  if (bits >= 48) {
    const ms = value >> BigInt(bits - 48);
    return [Number(ms), Number(ms)];
  }
  const rest = BigInt(48 - bits);
  return [Number(value << rest), Number((value + 1n) << rest) - 1];
}

function ambiguous(text: string, found: readonly string[]): TamqError {
  const some = found.slice(0, 3).join(", ");
  return new TamqError(
    "INVALID_ARGUMENT",
    "ambiguous_id",
    `several messages have an id that begins with "${text}"`,
    { hint: `give more of it${some === "" ? "" : `: ${some}${found.length > 3 ? ", ..." : ""}`}` },
  );
}
