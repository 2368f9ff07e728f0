/** Purging history: what is chosen, and the store as the purger sees it. */
import { parseCursor, parseTime } from "./filters.ts";
import type { MessageState } from "./message.ts";

/** States of messages that a purge may take: nothing is left to happen to them. */
export const PURGEABLE = ["injected", "acknowledged", "failed"] as const satisfies MessageState[];
export type PurgeableState = typeof PURGEABLE[number];

/** What `tamq purge` means without filters: 365 days, 100 MB (decimal, as the text says MB). */
export const DEFAULT_BEFORE = "365d";
export const DEFAULT_MAX_BYTES = 100_000_000;

/**
 * Each filter chooses; a message that any of them chooses is purged. Live messages are chosen by
 * none. Times are wall time in milliseconds.
 */
export interface PurgeChoice {
  /** Admitted before this moment. */
  readonly before?: number;
  /** From or to this repository. */
  readonly repo?: string;
  readonly state?: PurgeableState;
  /** Admitted no later than this one, by sequence: what a bound on the size comes down to. */
  readonly through?: number;
  /** Restricts what the others choose to messages that have not changed since. */
  readonly settledBefore?: number;
}

/** The filters of `purge` as they cross the socket. */
export interface PurgeFilters {
  readonly before?: string;
  readonly repo?: string;
  readonly state?: PurgeableState;
  readonly through?: string;
  readonly settled_before?: string;
}

/** Throws `invalid_time` or `invalid_cursor`. */
export function purgeChoice(filters: PurgeFilters): PurgeChoice {
  return {
    before: parseTime("before", filters.before),
    repo: filters.repo,
    state: filters.state,
    through: parseCursor("through", filters.through),
    settledBefore: parseTime("settled_before", filters.settled_before),
  };
}

/** A number of messages. */
export interface Portion {
  readonly count: number;
  /** About the bytes they take in the database, with indexes and attempts. */
  readonly weight: number;
  readonly oldestAt: number | null;
  readonly newestAt: number | null;
}

/** A run of messages in order of admission. */
export interface Survey {
  /** Sequence of the last one. */
  readonly last: number;
  readonly weight: number;
  readonly chosen: Portion;
  /** Purgeable, but not chosen. */
  readonly spared: Portion;
}

/** The message that a purged idempotency key stood for. */
export interface PurgedMessage {
  readonly messageId: string;
  readonly state: MessageState;
  readonly endpointRef: number | null;
  readonly endpointId: string | null;
  /** The first half of the request's digest. */
  readonly requestDigest: Uint8Array;
}

export interface Reach {
  readonly portion: Portion;
  /** Sequence of the last one; `after` when there is none. */
  readonly last: number;
}

export interface PurgeStep {
  readonly removed: Portion;
  /** Where to go on; undefined when no message is left to look at. */
  readonly next: number | undefined;
}

/** What counting needs. */
export interface PurgeSurveyor {
  /** Bytes in use by messages and all that belongs to them; kept keys and free pages left out. */
  historyBytes(): number;
  /** The next `limit` messages after sequence `after`; undefined when there are none. */
  survey(choice: PurgeChoice, after: number, limit: number): Survey | undefined;
  /** The first of the spared messages after `after` that together reach `weight`, or all there are. */
  reach(choice: PurgeChoice, after: number, limit: number, weight: number): Reach;
}

export interface PurgeStore extends PurgeSurveyor {
  /** The message that was sent with this key and has been purged since (T-10). */
  byKey(clientId: string, idempotencyKey: string): PurgedMessage | undefined;
  /**
   * Inside a commit: looks at the next `look` messages after `after` and removes at most `limit` of
   * them, keeping their keys.
   */
  remove(choice: PurgeChoice, after: number, look: number, limit: number): PurgeStep;
  /** Inside a commit: gives up to `pages` free pages back to the disk; how many are left to give. */
  giveBack(pages: number): number;
  /** Whether the file keeps the bookkeeping for that; one made before schema 2 does not. */
  canGiveBack(): boolean;
  /** Outside of commits: moves the log into the database and empties it, unless a reader needs it. */
  emptyLog(): void;
  /** Outside of commits, with nobody else around: writes the whole file anew, as small as it gets. */
  rebuild(): void;
}

export const NOTHING: Portion = { count: 0, weight: 0, oldestAt: null, newestAt: null };

/** Both together. */
export function join(a: Portion, b: Portion): Portion {
  const pick = (of: (...values: number[]) => number, one: number | null, two: number | null) =>
    one === null || two === null ? one ?? two : of(one, two);
  return {
    count: a.count + b.count,
    weight: a.weight + b.weight,
    oldestAt: pick(Math.min, a.oldestAt, b.oldestAt),
    newestAt: pick(Math.max, a.newestAt, b.newestAt),
  };
}
