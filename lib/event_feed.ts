/**
 * The events of this run of the service, for `watch`. One bounded ring that every reader reads at its
 * own pace: a slow one costs nothing and loses, visibly, what has been overwritten meanwhile. Nothing
 * here is durable; what makes a restart seamless is the shutdown receipt, which says how many events
 * its service had, so that a reader who has seen them all knows that none is missing.
 */
import { type Clock, rfc3339 } from "./base/clock.ts";
import { TamqError } from "./base/errors.ts";
import type { ReceiptData } from "./model/records.ts";
import type { WatchEvent, WatchFrame } from "./protocol/events.ts";
import type { RequestOf, ResponseOf } from "./protocol/operations.ts";
import type { Channel, Reply } from "./socket.ts";

/** About 1 MB when full; a reader that falls back further hears of a gap. */
const KEPT = 4096;

/** An event before it has its place in the order; `time` in milliseconds. Few of them are ever sent. */
export type Happening = WatchEvent extends infer E
  ? E extends WatchEvent ? Omit<E, "cursor" | "time"> & { readonly time: number } : never
  : never;

/** How an earlier service ended. */
export interface Predecessor {
  readonly serviceId: string;
  /** Events that it had altogether. */
  readonly events: number;
}

export class EventFeed {
  readonly serviceId: string;
  readonly #clock: Pick<Clock, "now">;
  readonly #kept: number;
  readonly #ring: Happening[] = [];
  /** Events so far; the number of the latest one. */
  #count = 0;
  /** Of commits that have run and whose answer is not out yet. */
  #underWay = 0;
  #staged: Happening[] | undefined;
  #closed = false;
  /** Resolved at the next event; there is one only while somebody waits. */
  #more: PromiseWithResolvers<void> | undefined;
  /** Set by the service at its start, when the one before said how it ended. */
  predecessor: Predecessor | undefined;

  constructor(serviceId: string, clock: Pick<Clock, "now">, kept = KEPT) {
    this.serviceId = serviceId;
    this.#clock = clock;
    this.#kept = kept;
  }

  /** The time that goes into an event. */
  now(): number {
    return this.#clock.now();
  }

  /**
   * Runs the work of one commit. What it adds is told only when the commit is on disk, in the order
   * of commits; if the work or the commit fails, never.
   */
  inside<T>(run: (work: () => T) => Promise<T>, work: () => T): Promise<T> {
    let staged: Happening[] = [];
    const answer = run(() => {
      const mine: Happening[] = [];
      this.#staged = mine;
      try {
        const result = work();
        this.#underWay += mine.length;
        staged = mine;
        return result;
      } finally {
        this.#staged = undefined;
      }
    });
    return answer.then((result) => {
      this.#underWay -= staged.length;
      for (const event of staged) this.#publish(event);
      return result;
    }, (error) => {
      this.#underWay -= staged.length;
      throw error;
    });
  }

  /** Inside a commit, with it; otherwise at once. */
  add(event: Happening): void {
    if (this.#staged !== undefined) this.#staged.push(event);
    else this.#publish(event);
  }

  /** Inside the commit of the shutdown receipt: what the next service must know. */
  lastWords(): ReceiptData {
    const events = this.#count + this.#underWay + (this.#staged?.length ?? 0) + 1;
    return { service_id: this.serviceId, events };
  }

  /** Nothing more comes; readers get what is left and a goodbye. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** The `watch` operation. Throws `invalid_cursor`. */
  watch(fields: RequestOf<"watch">): Reply {
    const start = fields.cursor === undefined ? this.#now() : this.#from(fields.cursor);
    const repos = fields.repos === undefined ? undefined : new Set(fields.repos);
    const result: ResponseOf<"watch"> = {
      cursor: this.#cursor(start.position),
      service_id: this.serviceId,
    };
    return {
      result,
      lasting: true,
      stream: (channel) => this.#run(channel, start, repos),
    };
  }

  async #run(channel: Channel, start: Start, repos: ReadonlySet<string> | undefined) {
    void this.#untilGone(channel);
    let position = start.position;
    if (start.gap !== undefined) await channel.send(start.gap);
    while (!channel.closed) {
      const first = this.#count - this.#ring.length;
      if (position < first) {
        await channel.send(this.#gap("overflow", first, first - position));
        position = Math.max(position, first);
      } else if (position < this.#count) {
        const event = this.#ring[position - first]!;
        position++;
        if (concerns(event, repos)) {
          const frame = this.#frame(event, position);
          await channel.send(frame);
        }
      } else if (this.#closed) {
        const frame: WatchFrame = { type: "closing", reason: "shutting_down" };
        await channel.send(frame);
        break;
      } else await (this.#more ??= Promise.withResolvers()).promise;
    }
    channel.close();
  }

  /** Whoever watches says nothing more: what is read is the end of the connection. */
  async #untilGone(channel: Channel): Promise<void> {
    try {
      for await (const _ of channel.frames()) { /* nothing is expected */ }
    } catch {
      // no frame: not our concern
    }
    channel.close();
    this.#wake();
  }

  #wake(): void {
    this.#more?.resolve();
    this.#more = undefined;
  }

  #publish(event: Happening): void {
    this.#ring.push(event);
    this.#count++;
    // In lumps: taking one off the front each time would move all of them.
    if (this.#ring.length >= 2 * this.#kept) this.#ring.splice(0, this.#ring.length - this.#kept);
    this.#wake();
  }

  #now(): Start {
    return { position: this.#count };
  }

  #from(cursor: string): Start {
    const found = /^([0-9a-z]{1,64})\.(\d{1,15})$/.exec(cursor);
    if (found === null) throw invalidCursor();
    const [, service, number] = found;
    const position = Number(number);
    if (service === this.serviceId) {
      if (position > this.#count) throw invalidCursor();
      return { position };
    }
    // Of another service. When it was the last one, and said all that it had to say, nothing is
    // missing: everything since is in our own ring, from its beginning.
    const { predecessor } = this;
    const same = predecessor?.serviceId === service ? predecessor : undefined;
    if (same !== undefined && position >= same.events) return { position: 0 };
    const missed = same === undefined ? null : same.events - position;
    return { position: 0, gap: this.#gap("restarted", 0, missed) };
  }

  #frame(event: Happening, position: number): WatchFrame {
    return { ...event, time: rfc3339(event.time), cursor: this.#cursor(position) } as WatchFrame;
  }

  #gap(change: "overflow" | "restarted", position: number, missed: number | null): WatchFrame {
    return {
      type: "gap",
      change,
      cursor: this.#cursor(position),
      time: rfc3339(this.now()),
      missed,
    };
  }

  #cursor(position: number): string {
    return `${this.serviceId}.${position}`;
  }
}

interface Start {
  readonly position: number;
  readonly gap?: WatchFrame;
}

/** Whether the reader asked for it; what has no repository concerns everybody. */
function concerns(event: Happening, repos: ReadonlySet<string> | undefined): boolean {
  if (repos === undefined) return true;
  const named = "repo" in event
    ? [event.repo]
    : "target_repo" in event
    ? [event.sender_repo, event.target_repo].filter((name) => name !== null)
    : [];
  return named.length === 0 || named.some((name) => repos.has(name));
}

function invalidCursor(): TamqError {
  return new TamqError("INVALID_ARGUMENT", "invalid_cursor", "the cursor is none of this service", {
    hint: "pass the cursor of an event as it came, or none to begin now",
  });
}
