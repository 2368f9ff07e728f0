/** Randomness that a failure can repeat: the seed is in every message. */
export class Seeded {
  #state: number;
  readonly seed: number;

  /** `TAMQ_SEED` repeats a run. */
  constructor(seed = Number(Deno.env.get("TAMQ_SEED")) || fresh()) {
    this.seed = seed;
    this.#state = seed;
  }

  /** 0 ≤ n < 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** An integer from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!;
  }
}

function fresh(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]! || 1;
}

/** A count that an opt-in longer run sets: `TAMQ_FAULT_<NAME>`. */
export function faultCount(name: string, ordinary: number): number {
  return Number(Deno.env.get(`TAMQ_FAULT_${name}`)) || ordinary;
}
