/**
 * Stops workers that write to each other without end (B-14): a token bucket for each pair of sender
 * and target. A pair that runs dry is blocked until the operator lifts it; the block is durable, the
 * buckets are not, so that a restart of the service lets through at most one more burst of a pair
 * that was not blocked.
 */
import { TamqError } from "../base/errors.ts";
import type { GuardPolicy, Pair } from "../model/controls.ts";
import type { Context } from "./context.ts";
import { pairText, pairWords } from "./routing.ts";

interface Bucket {
  tokens: number;
  /** Monotonic milliseconds of the last look. */
  at: number;
}

const HOUR_MS = 3_600_000;
/** Pairs remembered at once; full buckets say nothing and go first. */
const MOST_BUCKETS = 4096;

export class StormGuard {
  readonly #ctx: Context;
  readonly #policy: GuardPolicy;
  readonly #buckets = new Map<string, Bucket>();

  constructor(ctx: Context, policy: GuardPolicy) {
    this.#ctx = ctx;
    this.#policy = policy;
  }

  /** Inside a commit: takes one message into account; why it is refused, or undefined. */
  refusal(pair: Pair): TamqError | undefined {
    const { store, clock, log } = this.#ctx;
    const { controls } = store;
    const blocked = controls.isBlocked(pair);
    if (!blocked && this.#take(pair)) return undefined;
    controls.refuse(pair, clock.now());
    if (!blocked) {
      store.receipts.add("storm", clock.now(), {
        sender_repo: pair.sender,
        target_repo: pair.target,
        burst: this.#policy.burst,
        per_hour: this.#policy.perHour,
      });
      log.warn("storm_guard.blocked", { sender: pair.sender, target: pair.target });
    } else log.debug("storm_guard.refused", { sender: pair.sender, target: pair.target });
    const { burst, perHour } = this.#policy;
    return new TamqError(
      "RESOURCE_EXHAUSTED",
      "storm_guard",
      `${pairText(pair)} is blocked: its worker wrote more than ${burst} messages ` +
        `(${perHour} an hour)`,
      { hint: `see what the two are doing, then: tamq unblock ${pairWords(pair)}` },
    );
  }

  /** The operator has looked: a full allowance again. */
  reset(pair: Pair): void {
    this.#buckets.delete(key(pair));
  }

  #take(pair: Pair): boolean {
    const now = this.#ctx.clock.monotonic();
    const { burst } = this.#policy;
    if (this.#buckets.size >= MOST_BUCKETS) this.#tidy(now);
    const bucket = this.#buckets.get(key(pair)) ?? { tokens: burst, at: now };
    bucket.tokens = this.#tokens(bucket, now);
    bucket.at = now;
    this.#buckets.set(key(pair), bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  #tokens({ tokens, at }: Bucket, now: number): number {
    const { burst, perHour } = this.#policy;
    return Math.min(burst, tokens + (now - at) * perHour / HOUR_MS);
  }

  #tidy(now: number): void {
    for (const [name, bucket] of this.#buckets) {
      if (this.#tokens(bucket, now) >= this.#policy.burst) this.#buckets.delete(name);
    }
  }
}

function key({ sender, target }: Pair): string {
  return JSON.stringify([sender, target]);
}
