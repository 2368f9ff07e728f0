/** Stopping in order and in time (L-03). */
import { type Clock, within } from "../base/clock.ts";
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * Calls `first` at the first signal that asks for an end, `again` at each further one. Returns the
 * function that restores the signals. SIGHUP counts: the terminal of a foreground service is gone.
 */
export function onStopSignals(
  first: (signal: string) => void,
  again: (signal: string) => void,
): () => void {
  let asked = false;
  const listeners = STOP_SIGNALS.map((signal) => {
    const listener = () => {
      if (asked) return again(signal);
      asked = true;
      first(signal);
    };
    Deno.addSignalListener(signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) Deno.removeSignalListener(signal, listener);
  };
}

/** One step of a shutdown; its name is for the log. */
export interface Step {
  readonly name: string;
  readonly run: () => void | Promise<void>;
}

/**
 * Runs every step, in order, within `graceMs` altogether. A step that fails or is late is logged
 * and left behind: the ones after it (closing the socket, freeing the lock) matter all the more.
 * Aborting `hurry` ends the patience at once. True when every step ended well.
 */
export async function runInOrder(
  steps: readonly Step[],
  options: { clock: Clock; log: Log; graceMs: number; hurry?: AbortSignal },
): Promise<boolean> {
  const { clock, log, graceMs, hurry } = options;
  const end = clock.monotonic() + graceMs;
  let clean = true;
  for (const step of steps) {
    const left = hurry?.aborted ? 0 : Math.max(0, end - clock.monotonic());
    try {
      const work = Promise.resolve(step.run());
      await within(clock, left, interruptible(work, hurry), () => {
        throw new Error("it took longer than the grace period allows");
      });
    } catch (error) {
      clean = false;
      log.error("shutdown.step_failed", { step: step.name, reason: errorText(error) });
    }
  }
  return clean;
}

function interruptible(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Error("interrupted by a second signal"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
