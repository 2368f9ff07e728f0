/** How the engine observes, wakes and retries (K-17). */
import { DEFAULT_BACKOFF_SECONDS, DEFAULT_MAX_ATTEMPTS } from "./retry_schedule.ts";

export interface CoordinationSettings {
  readonly pollSeconds: number;
  /** From `injected` on; a wake that waits for a busy agent does not count (K-07). */
  readonly wakeAckSeconds: number;
  readonly renewSeconds: number;
  /** How long a lease lasts without a renewal. */
  readonly leaseSeconds: number;
  /** After each lease that ended without a result; the last one repeats. */
  readonly backoffSeconds: readonly number[];
  /** 0 to 9; 0: nobody is ever woken. */
  readonly maxAttempts: number;
  /** 0 to 9; how often a gated trigger is looked at again by itself (K-05). */
  readonly safetyGatedMaxAttempts: number;
  /** How long an approval holds. */
  readonly approvalSeconds: number;
  /** Where the last template sends a perspective entry; undefined: that template is left out. */
  readonly hallOfHelix?: string;
}

export const DEFAULT_COORDINATION: CoordinationSettings = Object.freeze({
  pollSeconds: 15,
  wakeAckSeconds: 30,
  renewSeconds: 10,
  leaseSeconds: 120,
  backoffSeconds: DEFAULT_BACKOFF_SECONDS,
  maxAttempts: DEFAULT_MAX_ATTEMPTS,
  safetyGatedMaxAttempts: 0,
  approvalSeconds: 3600,
});
