/**
 * What happens in the service, over its restarts: for commands that look on. Nothing is polled: the
 * service pushes, and while it is away the kernel tells when another one writes its lock.
 */
import { type Clock, pause, rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { findSocket, openWatch, type Watch } from "../client.ts";
import type { Settings } from "../config.ts";
import { liveHolder } from "../ipc/lock.ts";
import { LockWatch } from "../ipc/lock_watch.ts";
import type { WatchEvent } from "../protocol/events.ts";

/** What the connection itself does; made here, not by the service. */
export interface ConnectionEvent {
  readonly type: "connection";
  readonly change: "connected" | "lost" | "resumed";
  /** Where the stream goes on; null before anything was seen. */
  readonly cursor: string | null;
  readonly time: string;
}

export interface EventOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  /** Ends it. */
  readonly signal: AbortSignal;
  readonly cursor?: string;
  readonly repos?: readonly string[];
}

/** A service that has written its lock answers soon; how often it is tried, and how long. */
const TRY_MS = 50;
const TRY_MOST_MS = 1000;
const STARTS_WITHIN_MS = 15_000;
/** How often it is looked where the kernel cannot watch the directory. */
const UNWATCHED_MS = 5000;

/**
 * Throws what the first connection meets (`service_unavailable`, `invalid_cursor`, …); from then on
 * it waits for the service to come back. Ends when `signal` aborts.
 */
export async function* serviceEvents(
  options: EventOptions,
): AsyncGenerator<WatchEvent | ConnectionEvent> {
  const { settings, clock, signal } = options;
  let news = new AbortController();
  const lock = new LockWatch(settings.stateDir, () => news.abort());
  const onEnd = () => news.abort();
  signal.addEventListener("abort", onEnd);
  let cursor = options.cursor;
  const tell = (change: ConnectionEvent["change"]): ConnectionEvent => ({
    type: "connection",
    change,
    cursor: cursor ?? null,
    time: rfc3339(clock.now()),
  });
  try {
    let watch: Watch;
    try {
      watch = await open(options, cursor);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    let came: ConnectionEvent["change"] = "connected";
    for (;;) {
      using _ = { [Symbol.dispose]: watch.close };
      cursor ??= watch.response.cursor;
      signal.addEventListener("abort", watch.close);
      if (signal.aborted) return;
      yield tell(came);
      for await (const frame of watch.frames) {
        if (frame.type === "closing") break;
        cursor = frame.cursor;
        yield frame;
      }
      signal.removeEventListener("abort", watch.close);
      if (signal.aborted) return;
      yield tell("lost");
      const next = await comeBack();
      if (next === undefined) return;
      watch = next;
      came = "resumed";
    }
  } finally {
    signal.removeEventListener("abort", onEnd);
    await lock.close();
  }

  /** The next connection; undefined when it is over. */
  async function comeBack(): Promise<Watch | undefined> {
    for (;;) {
      news = new AbortController();
      const blind = lock.arm() !== undefined;
      const until = clock.monotonic() + STARTS_WITHIN_MS;
      // The lock is written a moment before the socket is there.
      for (let wait = TRY_MS; !signal.aborted; wait = Math.min(2 * wait, TRY_MOST_MS)) {
        try {
          return await open(options, cursor);
        } catch (error) {
          if (signal.aborted) return undefined;
          if (!(error instanceof TamqError) || error.code !== "UNAVAILABLE") throw error;
        }
        if (liveHolder(settings.stateDir) === undefined || clock.monotonic() > until) break;
        await pause(clock, wait, signal);
      }
      if (signal.aborted) return undefined;
      await pause(clock, blind ? UNWATCHED_MS : 0x7fffffff, news.signal);
      if (signal.aborted) return undefined;
    }
  }
}

async function open({ settings, clock, signal, repos }: EventOptions, cursor: string | undefined) {
  const request = { cursor, repos: repos === undefined ? undefined : [...repos] };
  try {
    return await openWatch(findSocket(settings), request, { clock, signal });
  } catch (error) {
    if (!(error instanceof TamqError) || error.reason !== "unknown_op") throw error;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "service_older",
      "the running service is older than this program and cannot be watched",
      { hint: "bring service and windows up to date, in place: tamq upgrade", cause: error },
    );
  }
}
