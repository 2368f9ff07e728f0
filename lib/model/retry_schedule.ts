/** When to try a delivery again (T-13). */

/** Seconds between attempts; the last one repeats. */
export const DEFAULT_BACKOFF_SECONDS: readonly number[] = [5, 15, 60, 300];
export const DEFAULT_MAX_ATTEMPTS = 4;

/** How messages are delivered to an endpoint; kept with the endpoint, recorded in receipts. */
export interface DeliveryPolicy {
  readonly ackMode: "injected" | "acknowledged";
  /** 1 to 9. */
  readonly maxAttempts: number;
  readonly backoffSeconds: readonly number[];
  /** A broker must settle a lease within this time; longer than the slowest bounded write. */
  readonly leaseSeconds: number;
  /** After `written`, how long an explicit acknowledgement may take. */
  readonly ackSeconds: number;
  /** How long a closed gate may hold a message back before that counts as one failed attempt. */
  readonly readySeconds: number;
}

export const DEFAULT_POLICY: DeliveryPolicy = {
  ackMode: "injected",
  maxAttempts: DEFAULT_MAX_ATTEMPTS,
  backoffSeconds: DEFAULT_BACKOFF_SECONDS,
  leaseSeconds: 30,
  ackSeconds: 30,
  readySeconds: 3600,
};

/** Milliseconds to wait after attempt number `attempt` (1-based) failed. */
export function backoffMs(policy: Pick<DeliveryPolicy, "backoffSeconds">, attempt: number): number {
  const steps = policy.backoffSeconds;
  const index = Math.min(Math.max(1, attempt), steps.length) - 1;
  return (steps[index] ?? 0) * 1000;
}

/** True when attempt number `attempt` (1-based) was the last one the policy allows. */
export function isCapped(policy: Pick<DeliveryPolicy, "maxAttempts">, attempt: number): boolean {
  return attempt >= policy.maxAttempts;
}
