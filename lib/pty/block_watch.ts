/**
 * Tells once of each block that stays open for long (B-02): whoever wrote it may not know that an
 * empty line sends it.
 */
import type { Clock } from "../base/clock.ts";

/** A block is printed within seconds; an agent's long answer within some more. Milliseconds. */
const LONG_MS = 30_000;

export class BlockWatch {
  readonly #clock: Clock;
  readonly #onLong: (target: string) => void;
  #block: { readonly target: string } | undefined;
  #cancel = () => {};

  constructor(clock: Clock, onLong: (target: string) => void) {
    this.#clock = clock;
    this.#onLong = onLong;
  }

  /** Call with the block that is open now, the same object while it is the same block. */
  look(block: { readonly target: string } | undefined): void {
    if (block === this.#block) return;
    this.#cancel();
    this.#cancel = () => {};
    this.#block = block;
    if (block !== undefined) {
      this.#cancel = this.#clock.after(LONG_MS, () => this.#onLong(block.target));
    }
  }
}
