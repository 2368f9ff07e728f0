import type { Clock } from "../../lib/base/clock.ts";

/** A clock that stands still until a test moves it; timers fire inside `advance`, in due order. */
export class FakeClock implements Clock {
  #now: number;
  #monotonic = 0;
  #timers: { due: number; order: number; fn: () => void }[] = [];
  #order = 0;

  constructor(now = Date.UTC(2030, 0, 1)) {
    this.#now = now;
  }
  now(): number {
    return this.#now;
  }
  monotonic(): number {
    return this.#monotonic;
  }
  after(ms: number, fn: () => void): () => void {
    const timer = { due: this.#monotonic + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }
  /** Moves both clocks forward by `ms`, firing what comes due on the way. */
  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (;;) {
      const next = this.#timers.filter((timer) => timer.due <= end)
        .sort((a, b) => a.due - b.due || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now += Math.max(0, next.due - this.#monotonic);
      this.#monotonic = Math.max(this.#monotonic, next.due);
      next.fn();
    }
    this.#now += end - this.#monotonic;
    this.#monotonic = end;
  }
  /** Moves the wall clock alone, as an administrator or NTP would. */
  jump(ms: number): void {
    this.#now += ms;
  }
  /** What was set never fires: the process that set it is gone. */
  dropTimers(): void {
    this.#timers = [];
  }
  /** Milliseconds until the next timer fires; Infinity when none ever does. */
  get nextDue(): number {
    return Math.min(Infinity, ...this.#timers.map((timer) => timer.due - this.#monotonic));
  }
  /** How many timers are set. */
  get timers(): number {
    return this.#timers.length;
  }
}
