/** Turn after turn, at an interval or sooner when asked, until it is stopped. */
import { type Clock, pause } from "../base/clock.ts";

export interface TurnsOptions {
  readonly clock: Clock;
  /** Between two turns when nothing happens, milliseconds. */
  readonly everyMs: number;
  /** One turn; deals with its own errors. */
  readonly turn: () => Promise<void>;
}

export class Turns {
  readonly #o: TurnsOptions;
  readonly #ending = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: TurnsOptions) {
    this.#o = options;
  }

  /** Asked to stop: a turn under way may leave the rest undone. */
  get ending(): boolean {
    return this.#ending.signal.aborted;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** The next turn comes at once. */
  nudge(): void {
    this.#wake.abort();
  }

  /** Resolves when the turn under way is over. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.nudge();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, everyMs, turn } = this.#o;
    while (!this.ending) {
      this.#wake = new AbortController();
      await turn();
      if (this.ending) return;
      await pause(clock, everyMs, this.#wake.signal);
    }
  }
}
