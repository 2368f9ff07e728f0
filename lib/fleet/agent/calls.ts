/** Executions that run right now, so that a stop can wait for their end (G-11, G-19). */
import { type Clock, within } from "../../base/clock.ts";

export interface ActiveCall {
  readonly executionId: string;
  /** `TENANT/TASK`. */
  readonly task: string;
}

export class ActiveCalls {
  readonly #active = new Set<ActiveCall>();
  #waiting: (() => void)[] = [];

  /** Runs `work` as a registered call. */
  async run<T>(call: ActiveCall, work: () => Promise<T>): Promise<T> {
    this.#active.add(call);
    try {
      return await work();
    } finally {
      this.#active.delete(call);
      for (const wake of this.#waiting.splice(0)) wake();
    }
  }

  of(task: string): ActiveCall[] {
    return [...this.#active].filter((call) => call.task === task);
  }

  get size(): number {
    return this.#active.size;
  }

  /** True once no call of the task runs; false when `ms` milliseconds were not enough. */
  async ended(task: string, clock: Clock, ms: number): Promise<boolean> {
    const until = clock.monotonic() + ms;
    while (this.of(task).length > 0) {
      const left = until - clock.monotonic();
      if (left <= 0) return false;
      const change = new Promise<void>((resolve) => this.#waiting.push(resolve));
      await within(clock, left, change, () => {});
    }
    return true;
  }
}
