/** The end of attempts: as their brokers report them, or as a service finds them at its start. */
import type { Window } from "../model/ports.ts";
import type { MessageRecord } from "../model/records.ts";
import type { Settlement } from "../protocol/schema.ts";
import { type Context, holderAlive, REATTACH_GRACE_MS } from "./context.ts";
import type { Moves } from "./moves.ts";

/**
 * Inside a commit. False when no lease has that very token at that window any more: then nothing
 * is changed (T-12).
 */
export function settleLease(
  ctx: Context,
  moves: Moves,
  window: Window,
  settlement: Settlement,
): boolean {
  const message = ctx.store.messages.byLease(settlement.lease_token);
  if (message === undefined) return false;
  if (message.leaseRef !== window.endpointRef || message.targetRepo !== window.repo) return false;
  const policy = ctx.policyFor(window);
  const { outcome, reason } = settlement;
  if (outcome === "written" || outcome === "displayed") {
    moves.written(message, outcome, policy, reason ?? null);
  } else {
    // Not told: the whole target waits, which keeps the order of messages (T-26).
    const scope = settlement.scope ?? "target";
    moves.failed(message, { outcome, reason: reason ?? outcome, scope }, policy);
  }
  return true;
}

/**
 * Inside the first commit of a service: brings what an earlier one left into reach of this clock,
 * ends the attempts of brokers that are gone, and returns the leases whose brokers live.
 */
export function adoptFormerWork(ctx: Context, moves: Moves): MessageRecord[] {
  const { store, steady, clock } = ctx;
  const policy = ctx.policyFor(undefined);
  const now = steady.now();
  const after = (seconds: number) => now + Math.ceil(seconds * 1000);
  // Stored deadlines count on the former service's clock. None may lie further ahead than a fresh
  // one would (the wall clock may have been set back meanwhile), and no lease ends before its
  // broker had time to attach again.
  const retryTo = after(Math.max(...policy.backoffSeconds));
  const leaseFrom = now + REATTACH_GRACE_MS;
  store.messages.clampDeadlines({
    now,
    leaseFrom,
    leaseTo: Math.max(leaseFrom, after(policy.leaseSeconds)),
    retryTo,
    ackTo: after(policy.ackSeconds),
  });
  store.endpoints.clampBackoff(retryTo);
  store.endpoints.allDisconnected(clock.now());
  return store.messages.leases().filter((message) => {
    if (holderAlive(ctx, message.leaseHolder!)) return true;
    const failure = { outcome: "failed", reason: "broker_lost", scope: "target" } as const;
    moves.failed(message, failure, ctx.policyFor({ repo: message.targetRepo }));
    return false;
  });
}
