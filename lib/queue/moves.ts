/**
 * Every change of a message's state, inside a commit: the transition function decides, the store
 * applies it with the lease as a fence, the attempt is recorded with it.
 */
import { TamqError } from "../base/errors.ts";
import { type MessageEvent, transition, type TransitionRefusal } from "../model/message.ts";
import type { Window } from "../model/ports.ts";
import type { AttemptOutcome, MessageRecord } from "../model/records.ts";
import { backoffMs, type DeliveryPolicy, isCapped } from "../model/retry_schedule.ts";
import { newToken } from "../base/ids.ts";
import { type Context, holderText } from "./context.ts";

const NO_LEASE = { leaseToken: null, leaseExpiresAt: null, leaseRef: null, leaseHolder: null };

/** How an attempt failed. */
export interface Failure {
  readonly outcome: Exclude<AttemptOutcome, "written" | "displayed">;
  readonly reason: string;
  /** `target`: the window takes nothing now; `message`: this message alone cannot go (T-26). */
  readonly scope: "target" | "message";
}

export class Moves {
  readonly #ctx: Context;
  /** Called with each deadline that a move creates, in steady milliseconds. */
  readonly #deadline: (at: number) => void;

  constructor(ctx: Context, deadline: (at: number) => void) {
    this.#ctx = ctx;
    this.#deadline = deadline;
  }

  /** Takes a lease for a window: counts the attempt (T-12) and keeps the policy it is made under. */
  lease(message: MessageRecord, window: Window, policy: DeliveryPolicy): MessageRecord {
    const { store, steady, clock, random } = this.#ctx;
    this.#allowed(message, { type: "lease" });
    const attemptCount = message.attemptCount + 1;
    const token = newToken(random);
    const leaseExpiresAt = steady.now() + Math.ceil(policy.leaseSeconds * 1000);
    const leased = store.messages.update(message, {
      attemptCount,
      // A policy lowered since admission still counts the attempts that were made.
      maxAttempts: Math.max(policy.maxAttempts, attemptCount),
      ackMode: policy.ackMode,
      nextAttemptAt: null,
      leaseToken: token,
      leaseExpiresAt,
      leaseRef: window.endpointRef,
      leaseHolder: holderText(window.broker),
      lastRef: window.endpointRef,
      updatedAt: clock.now(),
    });
    store.attempts.start(message.seq, attemptCount, token, window.endpointRef, clock.now());
    this.#deadline(leaseExpiresAt);
    return leased;
  }

  /** The holder of the lease wrote or displayed it. */
  written(
    message: MessageRecord,
    outcome: "written" | "displayed",
    policy: DeliveryPolicy,
    reason: string | null,
  ): MessageRecord {
    const { store, steady, clock } = this.#ctx;
    const next = this.#allowed(message, {
      type: "written",
      // The mode that the envelope was made under: a policy changed meanwhile applies to the next.
      ackMode: message.ackMode,
      capped: message.attemptCount >= message.maxAttempts,
    });
    const ackDeadlineAt = next.state === "awaiting_ack"
      ? steady.now() + Math.ceil(policy.ackSeconds * 1000)
      : null;
    store.attempts.end(message.seq, clock.now(), outcome, reason);
    store.endpoints.clearBackoff(message.leaseRef!, message.targetRepo);
    if (ackDeadlineAt !== null) this.#deadline(ackDeadlineAt);
    return store.messages.update(message, {
      ...NO_LEASE,
      state: next.state,
      ackDeadlineAt,
      injectedAt: clock.now(),
      updatedAt: clock.now(),
    });
  }

  /**
   * The lease was taken, but the service died before its broker was told: the attempt counts (T-12),
   * certainly nothing was written, and the message is due at once, before younger ones (T-26).
   */
  notReceived(message: MessageRecord): MessageRecord {
    const failure = { outcome: "interrupted", reason: "not_received", scope: "message" } as const;
    return this.failed(message, failure, { backoffSeconds: [0] });
  }

  /** The attempt under way failed; back to the queue by the schedule, or failed at the cap. */
  failed(
    message: MessageRecord,
    failure: Failure,
    policy: Pick<DeliveryPolicy, "backoffSeconds">,
  ): MessageRecord {
    const { store, steady, clock } = this.#ctx;
    const capped = isCapped(message, message.attemptCount);
    const next = this.#allowed(message, {
      type: failure.outcome === "expired" ? "lease_expired" : "write_failed",
      capped,
    });
    const until = steady.now() + Math.ceil(backoffMs(policy, message.attemptCount));
    store.attempts.end(message.seq, clock.now(), failure.outcome, failure.reason);
    if (failure.scope === "target") {
      store.endpoints.setBackoff(message.leaseRef!, message.targetRepo, until);
    }
    this.#deadline(until);
    return store.messages.update(message, {
      ...NO_LEASE,
      state: next.state,
      lastFailureReason: failure.reason,
      updatedAt: clock.now(),
      ...(next.state === "pending" ? { nextAttemptAt: until, eligibleAt: until } : {}),
    });
  }

  /** A gate stayed closed too long: one attempt, begun and failed (T-13). */
  notReady(message: MessageRecord, window: Window, policy: DeliveryPolicy): MessageRecord {
    const leased = this.lease(message, window, policy);
    // The gate holds the target back already; a backoff on top would outlast its opening.
    const failure: Failure = { outcome: "failed", reason: "ready_timeout", scope: "message" };
    return this.failed(leased, failure, policy);
  }

  /** Nobody acknowledged in time: the same message again at once, or failed at the cap (T-14). */
  ackTimeout(message: MessageRecord): MessageRecord {
    const { store, steady, clock } = this.#ctx;
    const capped = isCapped(message, message.attemptCount);
    const next = this.#allowed(message, { type: "ack_timeout", capped });
    return store.messages.update(message, {
      state: next.state,
      ackDeadlineAt: null,
      lastFailureReason: "ack_timeout",
      eligibleAt: steady.now(),
      updatedAt: clock.now(),
    });
  }

  /** An explicit acknowledgement wins always and cancels what is outstanding (T-15). */
  ack(message: MessageRecord): MessageRecord {
    const { store, clock } = this.#ctx;
    const outcome = transition(status(message), { type: "ack" });
    if (!outcome.ok) throw refusal(message, outcome.error);
    if (outcome.value.noop) return message;
    if (message.leaseToken !== null) {
      store.attempts.end(message.seq, clock.now(), "interrupted", "acknowledged");
    }
    return store.messages.update(message, {
      ...NO_LEASE,
      state: outcome.value.next.state,
      ackDeadlineAt: null,
      nextAttemptAt: null,
      acknowledgedAt: clock.now(),
      updatedAt: clock.now(),
    });
  }

  /** A failed message starts over (T-16). */
  retry(message: MessageRecord): MessageRecord {
    const { store, steady, clock } = this.#ctx;
    const next = this.#allowed(message, { type: "retry" });
    return store.messages.update(message, {
      state: next.state,
      attemptCount: 0,
      eligibleAt: steady.now(),
      updatedAt: clock.now(),
    });
  }

  /** Withdraws a message that nobody is delivering (T-27). */
  cancel(message: MessageRecord): MessageRecord {
    const { store, clock } = this.#ctx;
    const next = this.#allowed(message, { type: "cancel" });
    return store.messages.update(message, {
      state: next.state,
      nextAttemptAt: null,
      lastFailureReason: "cancelled",
      updatedAt: clock.now(),
    });
  }

  /** Binds to the endpoint that replaced a dead one; resets and redelivers nothing (T-18). */
  rebind(message: MessageRecord, endpointRef: number): MessageRecord {
    const { store, clock } = this.#ctx;
    const outcome = transition(status(message), { type: "rebind" });
    if (!outcome.ok) throw refusal(message, outcome.error);
    if (outcome.value.noop) return message;
    return store.messages.update(message, { endpointRef, updatedAt: clock.now() });
  }

  #allowed(message: MessageRecord, event: MessageEvent) {
    const outcome = transition(status(message), event);
    if (!outcome.ok) throw refusal(message, outcome.error);
    return outcome.value.next;
  }
}

export function status(message: MessageRecord) {
  return { state: message.state, leased: message.leaseToken !== null };
}

function refusal(message: MessageRecord, error: TransitionRefusal): TamqError {
  const said = {
    lease_lost: "its delivery lease is over",
    already_leased: "it is being delivered right now",
    invalid_state: `it is ${message.state}`,
  }[error.reason];
  const code = error.reason === "lease_lost" ? "ABORTED" : "FAILED_PRECONDITION";
  return new TamqError(code, error.reason, `cannot ${error.event} ${message.messageId}: ${said}`, {
    hint: "read its present state with: tamq message " + message.messageId,
  });
}
