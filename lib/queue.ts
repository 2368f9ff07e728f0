/**
 * The durable queue as the service uses it: admission, dispatch, settlement (T-06 to T-19, T-25,
 * T-26). Results have the shapes of the operation table; failures are TamqErrors.
 */
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import type { Random } from "./base/random.ts";
import type { Attached, Attachments, Owner } from "./attachments.ts";
import type { DeliveryPort, Processes, Registry, Window } from "./model/ports.ts";
import type { DeliveryPolicy } from "./model/retry_schedule.ts";
import type { RequestOf, ResponseOf } from "./protocol/operations.ts";
import type { Settlement } from "./protocol/schema.ts";

/** Runs synchronous database work in the next group commit; resolves once it is durable. */
export interface Commit {
  run<T>(work: () => T): Promise<T>;
  /** Resolves when everything handed in so far is answered. */
  drain(): Promise<void>;
}

/** Where a request comes from, as the kernel vouches for it; never from the request's text (B-04). */
export interface Origin {
  /** The window to which the peer's process belongs. */
  readonly owner?: Owner;
  /** A spool of a broker that is gone, whose owner the caller has proved by other means (B-13). */
  readonly adopted?: { readonly repo: string; readonly endpointRef?: number };
}

/** What an attach handshake says of its endpoint (E-01, E-03). */
export interface EndpointFacts {
  readonly endpointId: string;
  /** Start identity of the tmux server: a reused pid is another generation. */
  readonly generation: string;
  readonly session: string;
  readonly protocol: string;
  readonly capabilities: readonly string[];
}

export interface QueueOptions {
  readonly store: unknown;
  readonly commit: Commit;
  readonly attachments: Attachments;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The policy of a window; of no window in particular when undefined. */
  readonly policyFor: (window: Window | undefined) => DeliveryPolicy;
  /** Tells dead brokers and tmux servers from living ones; the kernel when absent. */
  readonly processes?: Pick<Processes, "identify">;
}

// Signatures only; the next commit fills them in.
export declare class Queue {
  constructor(options: QueueOptions);
  /** Adopts what an earlier service left, then dispatches and keeps the deadline timer. */
  start(): Promise<void>;
  /** No new leases; waits for the last commit, marks endpoints disconnected, writes a `shutdown` receipt (L-03). */
  stop(): Promise<void>;
  /** The reference by which windows name their endpoint; the same for the same tmux server. */
  registerEndpoint(facts: EndpointFacts): Promise<number>;
  send(request: RequestOf<"send">, origin: Origin): Promise<ResponseOf<"send">>;
  message(id: string): ResponseOf<"message">;
  history(filters: RequestOf<"history">): ResponseOf<"history">;
  ack(id: string): Promise<ResponseOf<"ack">>;
  retry(id: string, origin: Origin): Promise<ResponseOf<"retry">>;
  cancel(id: string): Promise<ResponseOf<"cancel">>;
  /** Settles `outstanding` first, then takes the window in; its gate counts as closed until told. */
  attach(window: Window, port: DeliveryPort, outstanding?: Settlement): Promise<Attached>;
  setGate(attached: Attached, open: boolean, reason?: string): void;
  settle(
    attached: Attached,
    settlement: Settlement,
  ): Promise<{ accepted: boolean; reason?: string }>;
  /** The window's connection ended. Safe to call more than once. */
  detach(attached: Attached): Promise<void>;
  summary(): { states: Record<string, number>; activeLeases: number };
}
