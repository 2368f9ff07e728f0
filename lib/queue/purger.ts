/**
 * Purging in small pieces: each piece is a short transaction, and between two of them
 * whatever else the process does gets its turn. Receipt and removal are in the same transactions:
 * whenever a purge ends, by its end or by a crash, its receipt tells exactly what is gone.
 */
import { type Clock, pause, rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import {
  join,
  NOTHING,
  type Portion,
  type PurgeChoice,
  purgeChoice,
  type PurgeSurveyor,
} from "../model/purge.ts";
import type { QueueStore, ReceiptData } from "../model/records.ts";
import type { RequestOf, ResponseOf } from "../protocol/operations.ts";
import type { Commit } from "./context.ts";

/** Messages looked at in one statement of a plan; about 5 ms. */
const SURVEYED = 4000;
/** Messages looked at and removed in one transaction at most; about 10 ms. */
const LOOKED_AT = 2000;
const REMOVED = 250;
/** Below it the empty tables would count as messages. */
const SCALED_FROM = 1_000_000;
/** Pages given back in one transaction; each may have to be moved first. */
const PAGES = 64;

export interface PurgePlan {
  readonly messages: number;
  /** Estimated. */
  readonly bytes: number;
  readonly oldestAt: number | null;
  readonly newestAt: number | null;
  /** Of the whole history as it is now. */
  readonly historyBytes: number;
  /** Bound on the sequence that brings the size down; undefined when no size was asked for. */
  readonly through: number | undefined;
}

/** What a receipt of a purge says; filters as they were asked for, times in milliseconds. */
interface PurgeReceipt extends Record<string, string | number | boolean | null> {
  before: number | null;
  repo: string | null;
  state: string | null;
  through: number | null;
  max_bytes: number | null;
  settled_before: number | null;
  messages: number;
  bytes: number;
  oldest_at: number | null;
  newest_at: number | null;
  /** Where the next piece begins; null when every message has been looked at. */
  position: number | null;
  /** Of the whole history when it began. */
  history_bytes: number;
  finished: boolean;
}

/**
 * Counts what `choice` takes, and finds how far a bound on the size reaches. Yields between pieces,
 * for the caller to let others go on.
 */
export function* planPurge(
  purge: PurgeSurveyor,
  choice: PurgeChoice,
  maxBytes: number | undefined,
): Generator<void, PurgePlan> {
  const historyBytes = purge.historyBytes();
  const spared: { after: number; last: number; portion: Portion }[] = [];
  let chosen = NOTHING;
  let weight = 0; // of all messages, live ones too
  for (let after = 0;;) {
    const part = purge.survey(choice, after, SURVEYED);
    if (part === undefined) break;
    chosen = join(chosen, part.chosen);
    if (part.spared.count > 0) spared.push({ after, last: part.last, portion: part.spared });
    weight += part.weight;
    after = part.last;
    yield;
  }
  // Long messages fill their pages badly: then what they really take tells more.
  const scale = weight < SCALED_FROM ? 1 : historyBytes / weight;
  let through: number | undefined;
  if (maxBytes !== undefined) {
    through = 0;
    // What is over, in weight: all messages together weigh what the history has in bytes.
    const bearable = historyBytes === 0 ? weight : weight * maxBytes / historyBytes;
    let excess = weight - chosen.weight - bearable;
    // The oldest of the others go until the rest fits.
    for (const { after, last, portion } of spared) {
      if (excess <= 0) break;
      if (portion.weight <= excess) {
        chosen = join(chosen, portion);
        through = last;
      } else {
        const share = purge.reach(choice, after, SURVEYED, excess);
        chosen = join(chosen, share.portion);
        through = share.last;
      }
      excess -= portion.weight;
      yield;
    }
  }
  return {
    messages: chosen.count,
    bytes: Math.round(chosen.weight * scale),
    oldestAt: chosen.oldestAt,
    newestAt: chosen.newestAt,
    historyBytes,
    through,
  };
}

export interface PurgerOptions {
  readonly store: Pick<QueueStore, "purge" | "receipts">;
  readonly commit: Commit;
  readonly clock: Clock;
}

export class Purger {
  readonly #options: PurgerOptions;
  #stopped = false;
  /** The piece that was handed in last, done or not. */
  #latest: Promise<unknown> = Promise.resolve();

  constructor(options: PurgerOptions) {
    this.#options = options;
  }

  /** No further piece is begun; what was done stays, with its receipt. */
  stop(): void {
    this.#stopped = true;
  }

  async plan(choice: PurgeChoice, maxBytes: number | undefined): Promise<PurgePlan> {
    const work = planPurge(this.#options.store.purge, choice, maxBytes);
    for (;;) {
      const { done, value } = await this.#alone(() => work.next());
      if (done) return value;
      await this.#breathe(0);
    }
  }

  /** Opens the receipt of a purge; nothing is removed yet. */
  async begin(choice: PurgeChoice, maxBytes: number | undefined): Promise<number> {
    const { store, commit, clock } = this.#options;
    const planned = maxBytes !== undefined && choice.through === undefined
      ? (await this.plan(choice, maxBytes)).through
      : choice.through;
    const receipt: PurgeReceipt = {
      before: choice.before ?? null,
      repo: choice.repo ?? null,
      state: choice.state ?? null,
      through: planned ?? null,
      max_bytes: maxBytes ?? null,
      settled_before: choice.settledBefore ?? null,
      messages: 0,
      bytes: 0,
      oldest_at: null,
      newest_at: null,
      position: 0,
      history_bytes: store.purge.historyBytes(),
      finished: false,
    };
    return await commit.run(() => store.receipts.add("purge", clock.now(), receipt));
  }

  /**
   * Goes on with a purge for about `ms` milliseconds. Throws `unknown_receipt`, and `shutting_down`
   * when the service stops meanwhile.
   */
  async goOn(receipt: number, ms: number): Promise<ResponseOf<"purge">> {
    const { store, commit, clock } = this.#options;
    const end = clock.monotonic() + ms;
    for (;;) {
      if (this.#stopped) {
        throw new TamqError("UNAVAILABLE", "shutting_down", "the message service is stopping", {
          hint: "what was purged is in the receipt; start the service and purge again",
        });
      }
      const began = clock.monotonic();
      const progress = await this.#alone(() => commit.run(() => this.#piece(receipt)));
      if (progress.done) store.purge.emptyLog();
      if (progress.done || clock.monotonic() >= end) return progress;
      await this.#breathe(clock.monotonic() - began);
    }
  }

  /** One transaction: some messages, or when all are looked at, some pages. */
  #piece(id: number): ResponseOf<"purge"> {
    const { purge, receipts } = this.#options.store;
    const receipt = receipts.get("purge", id) as PurgeReceipt | undefined;
    if (receipt === undefined) {
      throw new TamqError("NOT_FOUND", "unknown_receipt", `no purge has the receipt ${id}`, {
        hint: "begin a new one: tamq purge",
      });
    }
    const { messages, bytes, finished, position } = receipt;
    if (finished) return this.#answer(id, receipt);
    if (position === null) {
      if (purge.giveBack(PAGES) > 0) return this.#answer(id, receipt);
      // What has come in meanwhile hides part of it; the estimate is the least there was.
      const freed = receipt.history_bytes - purge.historyBytes();
      const last = { ...receipt, bytes: Math.max(receipt.bytes, freed), finished: true };
      receipts.replace(id, last);
      return this.#answer(id, last);
    }
    const step = purge.remove(choiceOf(receipt), position, LOOKED_AT, REMOVED);
    const removed = join(step.removed, {
      count: messages,
      weight: bytes,
      oldestAt: receipt.oldest_at,
      newestAt: receipt.newest_at,
    });
    const now: PurgeReceipt = {
      ...receipt,
      messages: removed.count,
      bytes: removed.weight,
      oldest_at: removed.oldestAt,
      newest_at: removed.newestAt,
      position: step.next ?? null,
    };
    receipts.replace(id, now satisfies ReceiptData);
    return this.#answer(id, now);
  }

  #answer(id: number, receipt: PurgeReceipt): ResponseOf<"purge"> {
    return {
      messages: receipt.messages,
      bytes: receipt.bytes,
      oldest_at: timeOrNull(receipt.oldest_at),
      newest_at: timeOrNull(receipt.newest_at),
      history_bytes: this.#options.store.purge.historyBytes(),
      through: receipt.through === null ? null : String(receipt.through),
      receipt_id: id,
      done: receipt.finished,
    };
  }

  /**
   * One piece at a time, and others' turn between any two: many purges and counts at once hold up
   * the rest no more than one does.
   */
  #alone<T>(piece: () => T | Promise<T>): Promise<T> {
    const result = this.#latest.then(piece);
    const turn = () => this.#breathe(0);
    this.#latest = result.then(turn, turn);
    return result;
  }

  /** A turn of the event loop, and as long a rest as the work took: half the time is for others. */
  #breathe(worked: number): Promise<void> {
    return pause(this.#options.clock, Math.min(worked, 50));
  }
}

function choiceOf(receipt: PurgeReceipt): PurgeChoice {
  const { before, repo, state, through, settled_before: settledBefore } = receipt;
  const choice = { before, repo, state, through, settledBefore };
  return Object.fromEntries(Object.entries(choice).filter(([, value]) => value !== null));
}

/** How long one `purge` operation works before it answers, milliseconds. */
const TURN_MS = 500;

/** The `purge` operation over a purger: the service's, or one that works without a service. */
export async function purgeOperation(
  purger: Purger,
  request: RequestOf<"purge">,
): Promise<ResponseOf<"purge">> {
  const { execute = false, max_bytes: maxBytes, receipt_id: receipt } = request;
  if (execute && receipt !== undefined) return await purger.goOn(receipt, TURN_MS);
  const choice = purgeChoice(request);
  const { before, repo, state, through } = choice;
  if ([before, repo, state, through, maxBytes].every((filter) => filter === undefined)) {
    throw new TamqError("INVALID_ARGUMENT", "no_filter", "a purge without any filter", {
      hint: "give at least one of before, max_bytes, repo, state",
    });
  }
  if (execute) return await purger.goOn(await purger.begin(choice, maxBytes), TURN_MS);
  const plan = await purger.plan(choice, maxBytes);
  return {
    messages: plan.messages,
    bytes: plan.bytes,
    oldest_at: timeOrNull(plan.oldestAt),
    newest_at: timeOrNull(plan.newestAt),
    history_bytes: plan.historyBytes,
    through: plan.through === undefined ? null : String(plan.through),
    receipt_id: null,
    done: true,
  };
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : rfc3339(ms);
}
