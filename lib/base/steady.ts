import type { Clock } from "./clock.ts";

/**
 * Milliseconds since the Unix epoch as they would be if nobody had touched the wall clock since
 * this service started. Every stored deadline is in this time: NTP steps, administrators and
 * summer-time accidents neither expire a lease early nor keep one for ever.
 */
export class Steady {
  readonly #clock: Clock;
  readonly #offset: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offset = clock.now() - clock.monotonic();
  }

  now(): number {
    return Math.floor(this.#offset + this.#clock.monotonic());
  }
}
