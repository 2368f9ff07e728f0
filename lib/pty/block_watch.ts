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
  /** Monotonic milliseconds. */
  #due = Infinity;

  constructor(clock: Clock, onLong: (target: string) => void) {
    this.#clock = clock;
    this.#onLong = onLong;
  }

  /** Call with the block that is open now, the same object while it is the same block. */
  look(block: { readonly target: string } | undefined): void {
    if (block === this.#block) return;
    this.#block = block;
    this.#tellIn(block === undefined ? Infinity : LONG_MS);
  }

  /** For who takes over (B-17): milliseconds until it is told, null when there is nothing to tell. */
  save(): number | null {
    return this.#due === Infinity ? null : this.#due - this.#clock.monotonic();
  }
  /** `block` is the one that is open, and `ms` what was saved of it. */
  restore(block: { readonly target: string } | undefined, ms: number | null): void {
    this.#block = block;
    this.#tellIn(ms ?? Infinity);
  }

  #tellIn(ms: number): void {
    this.#cancel();
    this.#due = this.#clock.monotonic() + ms;
    const block = this.#block;
    if (block === undefined || ms === Infinity) return this.#forget();
    this.#cancel = this.#clock.after(Math.max(0, ms), () => {
      this.#forget();
      this.#onLong(block.target);
    });
  }

  #forget(): void {
    this.#cancel = () => {};
    this.#due = Infinity;
  }
}
