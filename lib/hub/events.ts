/**
 * The change feed as server-sent events. A stream holds a place in the feed and no queue: what a
 * slow reader has not taken yet stays in the database, so a reader costs the same whatever it does.
 */
import type { Clock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { kindsOf } from "./handlers.ts";
import type { HubStore } from "./store/hub_store.ts";

export interface EventOptions {
  readonly store: HubStore;
  readonly clock: Clock;
  readonly maxStreams?: number;
  /** A comment after this much silence tells either side that the other still lives. */
  readonly heartbeatMs?: number;
}

/** Changes in one read of the database. */
const PAGE = 50;
const encoder = new TextEncoder();

export class EventStreams {
  readonly #options: EventOptions;
  readonly #open = new Set<() => void>();

  constructor(options: EventOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#open.size;
  }

  /**
   * A stream from `cursor` on, without one from the beginning. Throws `cursor_invalid`,
   * `cursor_expired`, `too_many_streams`.
   */
  open(query: { cursor?: string; kinds?: string }): ReadableStream<Uint8Array> {
    const { store, maxStreams = 64 } = this.#options;
    if (this.#open.size >= maxStreams) {
      throw new TamqError(
        "RESOURCE_EXHAUSTED",
        "too_many_streams",
        `${maxStreams} event streams are open already`,
        { hint: "close one, or poll the change feed instead" },
      );
    }
    const kinds = kindsOf(query);
    let cursor = query.cursor;
    store.changes(cursor, kinds, 1); // a wrong cursor is an answer, not a stream that breaks
    let wake = () => {};
    let ended = false;
    let cancelled = false;
    const end = () => {
      ended = true;
      stopListening();
      this.#open.delete(end);
      wake();
    };
    const stopListening = store.onChange(() => wake());
    this.#open.add(end);
    return new ReadableStream({
      start: (controller) => controller.enqueue(encoder.encode(": tamq state hub\n\n")),
      // Called when the reader has room for more; waits for the next change in between.
      pull: async (controller) => {
        while (!ended) {
          const page = store.changes(cursor, kinds, PAGE);
          cursor = page.next_cursor;
          if (page.changes.length > 0) {
            const lines = page.changes.map((change) =>
              `id: ${change.cursor}\nevent: change\ndata: ${JSON.stringify(change)}\n\n`
            );
            controller.enqueue(encoder.encode(lines.join("")));
            return;
          }
          const changed = await this.#nextChange((fn) => wake = fn);
          if (ended) break;
          if (!changed) {
            controller.enqueue(encoder.encode(": alive\n\n"));
            return;
          }
        }
        if (!cancelled) controller.close();
      },
      cancel: () => {
        cancelled = true;
        end();
      },
    });
  }

  /** Ends every stream; readers come back with the last id they saw. */
  close(): void {
    for (const end of [...this.#open]) end();
  }

  /** True at a change, false when only time has passed. */
  #nextChange(onWake: (fn: () => void) => void): Promise<boolean> {
    const { clock, heartbeatMs = 15_000 } = this.#options;
    return new Promise((resolve) => {
      const cancel = clock.after(heartbeatMs, () => resolve(false));
      onWake(() => {
        cancel();
        resolve(true);
      });
    });
  }
}
