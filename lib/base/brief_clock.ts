/** The clock of commands that end soon. */
import { type Clock, systemClock } from "./clock.ts";

/**
 * The first `setTimeout` of a process costs 5 ms (the runtime loads its timers); a time-out signal
 * costs 0.3. Such timers do not keep the process alive, and one that is cancelled only falls silent:
 * for a few deadlines that is right, for a service it is not.
 */
export const briefClock: Clock = {
  now: systemClock.now,
  monotonic: systemClock.monotonic,
  after(ms, fn) {
    const signal = AbortSignal.timeout(Math.min(Math.max(0, Math.ceil(ms)), 0x7fffffff));
    signal.addEventListener("abort", fn);
    return () => signal.removeEventListener("abort", fn);
  },
};
