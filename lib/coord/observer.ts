/**
 * Follows the State Hub's change feed (K-01, K-02): pages from the stored cursor on, each page and
 * its cursor in one transaction. A subscription only says that it is time to look; what it carries
 * is not believed. Memory holds a page at a time.
 */
import { type Clock, pause, rfc3339 } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { newId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { probe } from "../base/probe.ts";
import type { Random } from "../base/random.ts";
import type { Change } from "../hub/schema.ts";
import type { TriggerSource } from "../model/trigger.ts";
import type { Subject } from "./gates.ts";
import {
  checkpointSubject,
  messageSubject,
  normalize,
  planSubject,
  taskSubject,
} from "./normalize.ts";
import type { Receipts } from "./receipts.ts";
import type { StateHubClient } from "./statehub_client.ts";
import type { CoordStore } from "./store/store.ts";

const KINDS = ["workplan", "task", "message", "checkpoint"] as const;
const PAGE = 200;
/** The first pause after a failure; doubled with each further one. */
const FIRST_BACKOFF_MS = 1000;
/**
 * Everything is read once more after so many polls (an hour): what a hub left out, or told wrongly,
 * is found then. After an answer that contradicts itself, or another one, at once – but no more often
 * than the second says.
 */
const FULL_LOOK_POLLS = 240;
const FULL_LOOKS_APART_POLLS = 4;
/** Between two openings of the subscription: a hub that ends each at once must not keep us busy. */
const LISTENS_APART_MS = 1000;
/** Between two looks, however often a subscription says that it is time. */
const LOOKS_APART_MS = 20;
/** Failures after which what was told before is not relied on. */
const CONTRADICTIONS = ["answer_invalid", "answer_too_large", "revision_regressed"];

export interface ObserverOptions {
  readonly store: CoordStore;
  /** Also after each failure: the hub may be another one by then (K-19). */
  readonly connect: () => StateHubClient;
  readonly receipts: Receipts;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly pollMs: number;
  /** Something new was observed, or the hub is back: it is time to decide. */
  readonly onObserved: () => void;
}

export interface HubHealth {
  readonly reachable: boolean;
  /** The reason of the last failure in a row. */
  readonly reason: string | null;
  readonly failures: number;
  /** Wall time of the last good look; null before the first. */
  readonly lookedAt: number | null;
}

export class Observer {
  readonly #o: ObserverOptions;
  readonly #ending = new AbortController();
  #client: StateHubClient | undefined;
  #health: HubHealth = { reachable: false, reason: null, failures: 0, lookedAt: null };
  #nudge = Promise.withResolvers<void>();
  #running: Promise<void> = Promise.resolve();
  #subscription: Promise<void> = Promise.resolve();
  #listening = false;
  #listenAt = -Infinity;
  /** Monotonic times of the last full look and of the next. */
  #fullAt = -Infinity;
  #fullDue = -Infinity;

  constructor(options: ObserverOptions) {
    this.#o = options;
    this.#fullDue = options.clock.monotonic() + FULL_LOOK_POLLS * options.pollMs;
  }

  get health(): HubHealth {
    return this.#health;
  }

  /** The connection in use; undefined while the hub is not reachable. */
  get client(): StateHubClient | undefined {
    return this.#health.reachable ? this.#client : undefined;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Looks now rather than at the next poll. */
  nudge(): void {
    this.#nudge.resolve();
  }

  /** What the hub says does not fit together: it is read from the beginning again. */
  doubt(): void {
    const { clock, pollMs } = this.#o;
    const soonest = Math.max(clock.monotonic(), this.#fullAt + FULL_LOOKS_APART_POLLS * pollMs);
    this.#fullDue = Math.min(this.#fullDue, soonest);
    this.nudge();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.#nudge.resolve();
    await this.#running;
    await this.#subscription;
    this.#client?.close();
    this.#client = undefined;
  }

  async #run(): Promise<void> {
    const { clock, pollMs, log } = this.#o;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      this.#nudge = Promise.withResolvers();
      let wait = pollMs;
      try {
        const client = this.#client ??= this.#o.connect();
        const news = await this.look(client, signal);
        if (signal.aborted) return;
        const back = !this.#health.reachable;
        if (this.#health.failures > 0) log.info("hub.reached");
        this.#health = { reachable: true, reason: null, failures: 0, lookedAt: clock.now() };
        const opensIn = this.#listenAt - clock.monotonic();
        if (opensIn <= 0) this.#listen();
        else if (!this.#listening) wait = Math.min(wait, opensIn);
        if (news || back) this.#o.onObserved();
      } catch (error) {
        if (signal.aborted) return;
        const failures = this.#health.failures + 1;
        const reason = error instanceof TamqError ? error.reason : "failed";
        if (CONTRADICTIONS.includes(reason)) this.doubt();
        if (failures === 1 || reason !== this.#health.reason) {
          log.warn("hub.unreachable", { reason, detail: errorText(error).slice(0, 200) });
        }
        this.#health = { ...this.#health, reachable: false, reason, failures };
        // Not beyond four polls: it is to be resumed promptly.
        wait = Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 12), pollMs * 4);
        // Another hub may have been started meanwhile, at another address.
        this.#client?.close();
        this.#client = undefined;
      }
      const ended = clock.monotonic();
      await Promise.race([this.#nudge.promise, pause(clock, wait, this.#waitEnds())]);
      const rest = ended + LOOKS_APART_MS - clock.monotonic();
      if (rest > 0) await pause(clock, rest, signal);
    }
  }

  /** Ends a pause at the nudge as well, so that no timer outlives its use. */
  #waitEnds(): AbortSignal {
    const ends = new AbortController();
    const end = () => ends.abort();
    this.#nudge.promise.then(end);
    return ends.signal;
  }

  /** All that is new since the stored cursor; false when there is nothing. */
  async look(client: StateHubClient, signal?: AbortSignal): Promise<boolean> {
    const { store, log, clock } = this.#o;
    let anew = clock.monotonic() >= this.#fullDue;
    if (anew) await this.#beginAnew(client);
    let news = false;
    for (;;) {
      const cursor = store.cursor();
      let page;
      try {
        page = await client.changes(cursor, { kinds: KINDS, limit: PAGE, signal });
      } catch (error) {
        const reason = error instanceof TamqError ? error.reason : "";
        if (reason === "cursor_expired" || reason === "cursor_invalid") {
          // Once a look: a hub that forgets each place at once would be read for ever.
          if (cursor === undefined || anew) throw error;
          anew = true;
          log.warn("hub.begins_anew", { reason });
          await this.#beginAnew(client);
          continue;
        }
        throw error;
      }
      probe("coord.page", page);
      if (page.changes.length > 0 || page.next_cursor !== cursor) {
        news ||= page.changes.length > 0;
        await store.commit(() => {
          for (const change of page.changes) this.#take(change);
          store.setCursor(page.next_cursor);
        });
      }
      if (!page.has_more || signal?.aborted) return news;
    }
  }

  /** What the hub says from now on is taken as it is (a restored copy, or another hub). */
  async #beginAnew(client: StateHubClient): Promise<void> {
    const { store, clock, pollMs } = this.#o;
    this.#fullAt = clock.monotonic();
    this.#fullDue = this.#fullAt + FULL_LOOK_POLLS * pollMs;
    client.revisions.reset();
    await store.commit(() => {
      store.setCursor(undefined);
      store.triggers.forgetRevisions();
    });
  }

  /** One change, inside the page's transaction; seen again it changes nothing. */
  #take(change: Change): void {
    const { store, clock, random, receipts } = this.#o;
    if (change.kind === "receipt") return;
    // What a worker published through us is known here already (K-11).
    if (change.kind === "checkpoint" && store.leases.knows(change.record.lease_id)) return;
    const source = change.kind as TriggerSource;
    const before = store.triggers.source(source, change.source_id);
    const now = sourceOf(change);
    if (before !== undefined && now.revision < before.revision) return; // an old page, replayed
    store.triggers.putSource(source, change.source_id, now);
    store.triggers.sourceChanged(source, change.source_id, now.priority);
    const observedAt = clock.now();
    const trigger = normalize(change, {
      observedAt: rfc3339(observedAt),
      newId: () => newId(clock, random),
    });
    if (trigger === undefined) return;
    const added = store.triggers.add(trigger, observedAt, now.priority);
    const row = store.triggers.byKey(trigger)!;
    if (!added) return store.triggers.reopen(row.triggerId);
    receipts.write("trigger", "observed", { trigger: row }, { reason: row.reason });
  }

  /**
   * Opens the subscription unless it is open. It has a client of its own: its events may overtake
   * a page, which would look like a hub that goes back in time.
   */
  #listen(): void {
    if (this.#listening) return;
    this.#listening = true;
    const { store, log, connect, clock } = this.#o;
    this.#listenAt = clock.monotonic() + LISTENS_APART_MS;
    this.#subscription = (async () => {
      try {
        using client = connect();
        const options = { kinds: KINDS, signal: this.#ending.signal };
        for await (const event of client.subscribe(store.cursor(), options)) {
          // It begins where the last look ended: what came since is told, too.
          if (event.type !== "connected") this.nudge();
          // Another hub may take its place: the poll finds out, and opens a new one.
          if (event.type === "lost") return;
        }
      } catch (error) {
        const reason = error instanceof TamqError ? error.reason : errorText(error);
        log.debug("hub.subscription_ended", { reason });
      } finally {
        this.#listening = false;
      }
    })();
  }
}

/** What is kept of a record: what gates look at, no text. */
function sourceOf(
  change: Exclude<Change, { kind: "receipt" }>,
): { revision: number; subject: Subject; waitsFor: string[]; priority: number } {
  switch (change.kind) {
    case "task": {
      const { revision, unsatisfied, priority } = change.record;
      return { revision, subject: taskSubject(change.record), waitsFor: unsatisfied, priority };
    }
    case "workplan":
      return plain(change.record.revision, planSubject(change.record));
    case "message":
      return plain(change.record.revision, messageSubject(change.record));
    case "checkpoint":
      return plain(1, checkpointSubject(change.record, undefined));
  }
}

function plain(revision: number, subject: Subject) {
  return { revision, subject, waitsFor: [], priority: 5 };
}
