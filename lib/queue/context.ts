/** What the rooms of the queue share. */
import type { Attachments, Owner } from "../attachments.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ProcessIdentity } from "../base/proc.ts";
import type { Random } from "../base/random.ts";
import type { RoutingPolicy } from "../model/controls.ts";
import type { Place, Processes, Registry, Window } from "../model/ports.ts";
import type { QueueStore, ReceiptData, Target } from "../model/records.ts";
import type { DeliveryPolicy } from "../model/retry_schedule.ts";
import type { Steady } from "./steady.ts";

/** Runs synchronous database work in the next group commit. */
export interface Commit {
  /** Resolves with the result once it is durable; rejects with a TamqError when it is not. */
  run<T>(work: () => T): Promise<T>;
  /** Resolves when everything handed in so far is answered. */
  drain(): Promise<void>;
}

/** Where a request comes from, as the kernel vouches for it; never from the request's text (B-04). */
export interface Origin {
  /** The window to which the peer's process belongs. */
  readonly owner?: Owner;
  /** A spool of a broker that is gone, whose repository the caller has proved by other means (B-13). */
  readonly adopted?: {
    readonly repo: string;
    readonly endpointRef?: number;
    readonly place?: Place;
  };
}

export interface Context {
  readonly store: QueueStore;
  readonly commit: Commit;
  readonly attachments: Attachments;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly steady: Steady;
  readonly random: Random;
  readonly log: Log;
  readonly policyFor: (
    window: Pick<Window, "repo"> & Partial<Pick<Window, "command">> | undefined,
  ) => DeliveryPolicy;
  readonly processes: Pick<Processes, "identify">;
  readonly routing: RoutingPolicy;
  /** Nothing is handed out while it is shut; the durable word for it is in the store. */
  readonly valve: { paused: boolean };
  readonly lastWords?: () => ReceiptData;
}

/** How long brokers get to attach again, after a restart of the service or a lost connection. */
export const REATTACH_GRACE_MS = 5000;

/** A window's part of the queue right now. */
export function targetOf(ctx: Pick<Context, "attachments">, window: Window): Target {
  const liveRefs = ctx.attachments.byRepo(window.repo).map((other) => other.window.endpointRef);
  return { repo: window.repo, ref: window.endpointRef, liveRefs };
}

export function holderText(process: ProcessIdentity): string {
  return `${process.pid} ${process.start}`;
}

/** Whether the process that took a lease still lives. */
export function holderAlive(ctx: Pick<Context, "processes">, holder: string): boolean {
  const space = holder.indexOf(" ");
  const found = ctx.processes.identify(Number(holder.slice(0, space)));
  return found?.start === holder.slice(space + 1);
}
