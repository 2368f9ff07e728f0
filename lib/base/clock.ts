/**
 * The only place that reads a clock or sets a timer. Everything else gets a {@link Clock},
 * so that tests own time.
 */
export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. May jump; stored and shown, never trusted for intervals. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonic(): number;
  /** Calls `fn` once after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, fn: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, fn) {
    // setTimeout fires at once for a delay over 2^31-1: a far deadline must not become a busy loop.
    const id = setTimeout(fn, Math.min(Math.max(0, ms), 0x7fffffff));
    return () => clearTimeout(id);
  },
};

/** Resolves after `ms` milliseconds, or at once when `signal` aborts. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal?.addEventListener("abort", done);
  });
}

/** Resolves once events that wait (input, output, timers) have been served: for loops that never wait. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** `work`, or a call to `onTimeout` (whose result or throw is the result) after `ms` milliseconds. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  onTimeout: () => T | never,
): Promise<T> {
  let cancel = () => {};
  const late = new Promise<"late">((resolve) => {
    cancel = clock.after(ms, () => resolve("late"));
  });
  try {
    const first = await Promise.race([work.then((value) => ({ value })), late]);
    return first === "late" ? onTimeout() : first.value;
  } finally {
    cancel();
  }
}

/** Whether the calendar has that day, `YYYY-MM-DD`: `Date` takes February 30th for March 1st. */
export function isDay(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && rfc3339(ms).startsWith(text);
}

/** RFC 3339 in UTC with milliseconds, for machines. */
export function rfc3339(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
