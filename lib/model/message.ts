/**
 * The message state machine (T-11): one total, pure function. The CHECK constraints of the store
 * say the same; a test compares the two.
 */
import { ok, type Outcome, refused } from "../base/outcome.ts";

export const STATES = ["pending", "awaiting_ack", "injected", "acknowledged", "failed"] as const;
export type MessageState = typeof STATES[number];

/** Who caused the message (B-04). */
export const PROVENANCES = ["worker", "operator", "cli", "coordination_engine", "replay"] as const;
export type Provenance = typeof PROVENANCES[number];

export const ACK_MODES = ["injected", "acknowledged"] as const;
/** When a delivery counts as complete (T-14). */
export type AckMode = typeof ACK_MODES[number];

/** What can happen to a message. `capped` tells that the attempt just ended was the last allowed one. */
export type MessageEvent =
  /** A delivery lease is taken; counts an attempt (T-12). */
  | { readonly type: "lease" }
  /** The holder of the lease wrote the message into the terminal. */
  | { readonly type: "written"; readonly ackMode: AckMode; readonly capped: boolean }
  /** The holder of the lease could not write it. */
  | { readonly type: "write_failed"; readonly capped: boolean }
  /** Nobody settled the lease in time; a failed attempt (T-12). */
  | { readonly type: "lease_expired"; readonly capped: boolean }
  /** The acknowledgement did not come in time (T-14). */
  | { readonly type: "ack_timeout"; readonly capped: boolean }
  /** Explicit acknowledgement; wins always (T-15). */
  | { readonly type: "ack" }
  /** An operator or an authorised client starts a failed message over (T-16). */
  | { readonly type: "retry" }
  /** Withdrawn before delivery (T-27). */
  | { readonly type: "cancel" }
  /** Bound to the endpoint that replaced a dead one (T-18). */
  | { readonly type: "rebind" };
export type MessageEventType = MessageEvent["type"];

export const EVENT_TYPES: readonly MessageEventType[] = [
  "lease",
  "written",
  "write_failed",
  "lease_expired",
  "ack_timeout",
  "ack",
  "retry",
  "cancel",
  "rebind",
];

/** The part of a message that decides what may happen next. `leased` only ever holds with `pending`. */
export interface MessageStatus {
  readonly state: MessageState;
  readonly leased: boolean;
}

export interface Transition {
  readonly next: MessageStatus;
  /** The event is allowed but changes nothing (a repeated acknowledgement). */
  readonly noop: boolean;
  /** Why the message is now `failed`; absent otherwise. `cause` stands for the reason of the event. */
  readonly failure?: "cause" | "ack_timeout" | "cancelled";
  readonly attempts: "keep" | "increment" | "reset";
}

export interface TransitionRefusal {
  /** `lease_lost`: the settling party no longer holds the lease. */
  readonly reason: "lease_lost" | "already_leased" | "invalid_state";
  readonly state: MessageState;
  readonly event: MessageEventType;
}

type Result = Outcome<Transition, TransitionRefusal>;

const PENDING: MessageStatus = { state: "pending", leased: false };

function go(state: MessageState, extra: Partial<Transition> = {}): Result {
  return ok({ next: { state, leased: false }, noop: false, attempts: "keep", ...extra });
}

/** The next status, or a typed refusal; total over every (status, event) pair. */
export function transition(from: MessageStatus, event: MessageEvent): Result {
  const no = (reason: TransitionRefusal["reason"]): Result =>
    refused({ reason, state: from.state, event: event.type });
  const leased = from.state === "pending" && from.leased;

  switch (event.type) {
    case "lease":
      if (from.state !== "pending") return no("invalid_state");
      if (leased) return no("already_leased");
      return go("pending", { next: { state: "pending", leased: true }, attempts: "increment" });
    case "written":
      if (!leased) return no("lease_lost");
      return go(event.ackMode === "acknowledged" ? "awaiting_ack" : "injected");
    case "write_failed":
    case "lease_expired":
      if (!leased) return no("lease_lost");
      return event.capped ? go("failed", { failure: "cause" }) : go("pending", { next: PENDING });
    case "ack_timeout":
      if (from.state !== "awaiting_ack") return no("invalid_state");
      return event.capped ? go("failed", { failure: "ack_timeout" }) : go("pending");
    case "ack":
      return go("acknowledged", { noop: from.state === "acknowledged" });
    case "retry":
      return from.state === "failed" ? go("pending", { attempts: "reset" }) : no("invalid_state");
    case "cancel":
      // A leased message may already be on its way into a terminal: it cannot be called back.
      if (from.state !== "pending") return no("invalid_state");
      return leased ? no("already_leased") : go("failed", { failure: "cancelled" });
    case "rebind":
      // Rebinding redelivers nothing and resets nothing (T-18); a lease of the dead endpoint stays
      // until it expires, so that its outcome is still counted. What waits for an acknowledgement or
      // has failed is bound as well: its next delivery must go to an endpoint that lives.
      return ok({
        next: from,
        noop: from.state === "injected" || from.state === "acknowledged",
        attempts: "keep",
      });
  }
}

/** States that no timer and no broker will change any more. */
export function isTerminal(state: MessageState): boolean {
  return state === "injected" || state === "acknowledged" || state === "failed";
}
