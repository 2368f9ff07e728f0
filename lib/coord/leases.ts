/**
 * Leases: who may work on a trigger, until when, and what becomes of the trigger afterwards (K-06,
 * K-07). Every method runs inside a transaction of the store; none awaits.
 */
import { rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { newId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import type { Steady } from "../base/steady.ts";
import type { Clock } from "../base/clock.ts";
import { type Checkpoint, isGate } from "../model/checkpoint.ts";
import { type LeaseEvent, type LeaseRefusal, leaseTransition } from "../model/coord_lease.ts";
import type { CoordinationSettings } from "../model/coordination.ts";
import { backoffMs } from "../model/retry_schedule.ts";
import { BLOCK_GATES } from "./gates.ts";
import type { Receipts, Rules } from "./receipts.ts";
import type { LeaseRow, TriggerRow } from "./records.ts";
import type { CoordStore } from "./store/store.ts";
import { NEVER } from "./store/triggers.ts";

export interface LeaseOptions {
  readonly store: Pick<CoordStore, "triggers" | "leases" | "journal">;
  readonly steady: Pick<Steady, "now">;
  readonly clock: Pick<Clock, "now">;
  readonly random: Random;
  readonly receipts: Receipts;
  readonly rules: Rules;
  readonly settings: CoordinationSettings;
}

/** Names a lease and its term; the worker gives it back with every word (K-06). */
export interface Handle {
  readonly leaseId: string;
  readonly token: number;
}

/** `LEASE.TOKEN`, as prompts and commands write it. */
export function writeHandle({ leaseId, token }: Handle): string {
  return `${leaseId}.${token}`;
}

export function readHandle(text: string): Handle {
  const match = /^([0-9a-z]{26})\.(\d{1,15})$/.exec(text);
  if (match !== null) return { leaseId: match[1]!, token: Number(match[2]) };
  throw new TamqError("INVALID_ARGUMENT", "lease_invalid", "that is no lease", {
    hint: "give it as the wake message spells it: letters and digits, a point, a number",
  });
}

export class Leases {
  readonly #o: LeaseOptions;

  constructor(options: LeaseOptions) {
    this.#o = options;
  }

  /**
   * A new term for that trigger, `offered`; undefined when one is held already. `prompt` gets the
   * handle that the worker is to name.
   */
  claim(
    triggerId: string,
    resumed: boolean,
    prompt: (handle: string) => string,
  ): LeaseRow | undefined {
    const { store, steady, clock, random, rules, settings, receipts } = this.#o;
    const trigger = store.triggers.get(triggerId);
    // Read inside the transaction: another engine may have been faster (K-06).
    if (trigger?.state !== "waiting" || store.leases.heldOf(triggerId)) return undefined;
    const now = steady.now();
    const handle = { leaseId: newId(clock, random), token: store.leases.nextFencingToken() };
    store.leases.insert({
      leaseId: handle.leaseId,
      triggerId,
      fencingToken: handle.token,
      targetRepo: trigger.targetRepo,
      targetAgent: trigger.targetAgent,
      attempt: store.leases.ofTrigger(triggerId).length + 1,
      acquiredAt: now,
      expiresAt: now + settings.leaseSeconds * 1000,
      policyProfile: rules.profile.name,
      policyVersion: rules.profile.version,
      configVersion: rules.configVersion,
      prompt: prompt(writeHandle(handle)),
      resumed,
    });
    store.triggers.update({ ...trigger, state: "leased", decision: "actionable", dueAt: NEVER });
    const lease = store.leases.get(handle.leaseId)!;
    receipts.write("lease", "offered", { trigger, lease }, { max_attempts: settings.maxAttempts });
    return lease;
  }

  /** The held lease of exactly that term; throws `unknown_lease` or `lease_lost`. */
  require({ leaseId, token }: Handle): LeaseRow {
    const lease = this.#o.store.leases.get(leaseId);
    if (lease === undefined) {
      throw new TamqError("NOT_FOUND", "unknown_lease", `there is no lease "${leaseId}"`, {
        hint: "give it as the wake message spells it",
      });
    }
    if (lease.fencingToken !== token) throw lost(lease, "it has another term");
    return lease;
  }

  /** The worker's word on its lease. Throws `unknown_lease`, `lease_lost`, `not_acknowledged` …. */
  worker(handle: Handle, event: LeaseEvent & { type: "acknowledge" | "renew" | "release" }) {
    const lease = this.require(handle);
    if (lease.held && this.#o.steady.now() >= lease.expiresAt) {
      this.expire(lease);
      return refusedAs(lost(lease, "it has expired"));
    }
    if (lease.state === "offered" && event.type === "renew") {
      return refusedAs(
        new TamqError(
          "FAILED_PRECONDITION",
          "not_acknowledged",
          "the lease is not acknowledged yet",
          { hint: `first: tamq coord ack ${writeHandle(handle)}` },
        ),
      );
    }
    return this.apply(lease, event);
  }

  /** Where the worker stands (K-11); one that only a person can unblock shuts a gate. */
  checkpoint(handle: Handle, given: Omit<Checkpoint, "lease_id" | "recorded_at">) {
    const { store, steady, clock, random, receipts } = this.#o;
    const lease = this.require(handle);
    if (lease.held && steady.now() >= lease.expiresAt) {
      this.expire(lease);
      return refusedAs(lost(lease, "it has expired"));
    }
    const done = this.apply(lease, { type: "checkpoint" });
    if (!done.ok) return done;
    const trigger = store.triggers.get(lease.triggerId)!;
    const record: Checkpoint = {
      lease_id: lease.leaseId,
      ...given,
      ...(trigger.source === "task" && { task_id: trigger.sourceId }),
      recorded_at: rfc3339(clock.now()),
    };
    const checkpointId = newId(clock, random);
    store.journal.addCheckpoint({
      checkpointId,
      leaseId: lease.leaseId,
      triggerId: lease.triggerId,
      source: trigger.source,
      sourceId: trigger.sourceId,
      repo: trigger.targetRepo,
      record: JSON.stringify(record),
      createdAt: steady.now(),
    });
    receipts.write("checkpoint", "recorded", { trigger, lease: done.lease }, {
      checkpoint_id: checkpointId,
      reason: given.blocked_reason ?? undefined,
    });
    if (isGate(given.blocked_reason)) {
      const gate = BLOCK_GATES[given.blocked_reason!]!;
      const gates = trigger.gates.includes(gate) ? trigger.gates : [...trigger.gates, gate];
      store.triggers.update({ ...trigger, gates });
      receipts.write("gate", "gated", { trigger, lease: done.lease }, {
        gate,
        reason: `blocked_${given.blocked_reason}`,
      });
    }
    return done;
  }

  /** Nobody renewed it in time. */
  expire(lease: LeaseRow): void {
    this.apply(lease, { type: "expire", capped: this.#capped(lease) });
  }

  /** Its wake cannot be delivered. */
  undeliverable(lease: LeaseRow): void {
    this.apply(lease, { type: "undeliverable", capped: this.#capped(lease) });
  }

  /** Whether the trigger may get no further lease after this one. */
  #capped(lease: LeaseRow): boolean {
    const trigger = this.#o.store.triggers.get(lease.triggerId);
    return (trigger?.attempts ?? 0) + 1 >= this.#o.settings.maxAttempts;
  }

  /** One transition, with its receipt and what it means for the trigger. */
  apply(lease: LeaseRow, event: LeaseEvent): Applied {
    const { store, steady, receipts, settings } = this.#o;
    const result = leaseTransition({ state: lease.state, held: lease.held }, event);
    if (!result.ok) return refusedAs(refusal(lease, result.error));
    if (result.value.noop) return { ok: true, lease, noop: true };
    const now = steady.now();
    const after: LeaseRow = {
      ...lease,
      ...result.value.next,
      expiresAt: result.value.next.held ? now + settings.leaseSeconds * 1000 : lease.expiresAt,
      lastCheckpointAt: event.type === "checkpoint" ? now : lease.lastCheckpointAt,
    };
    if (!store.leases.move(lease, after)) return refusedAs(lost(lease, "it has changed meanwhile"));
    const trigger = store.triggers.get(lease.triggerId)!;
    // An offer that is kept alive, or a renewal of the same state, is nothing new to tell.
    const quiet = event.type === "renew" && after.state === lease.state;
    if (!quiet) {
      receipts.write("lease", after.state, { trigger, lease: after }, { reason: event.type });
    }
    if (!after.held) this.#ended(trigger, after, event);
    return { ok: true, lease: after, noop: false };
  }

  #ended(trigger: TriggerRow, lease: LeaseRow, event: LeaseEvent): void {
    const { store, steady, receipts, settings } = this.#o;
    const now = steady.now();
    const end = (change: Partial<TriggerRow>) => store.triggers.update({ ...trigger, ...change });
    switch (lease.state) {
      case "completed":
        end({ state: "done", decision: "lease_completed" });
        receipts.write("completion", "completed", { trigger, lease });
        return;
      case "stopped": {
        const exhausted = event.type === "expire" || event.type === "undeliverable";
        const reason = exhausted
          ? "attempts_exhausted"
          : event.type === "release"
          ? "stopped_by_worker"
          : "stopped";
        if (event.type === "stop") {
          // A gate shut, or the source asks for nothing any more: the next look says which.
          end({ state: "waiting", dueAt: 0 });
        } else {
          end({ state: "stopped", decision: reason, attempts: trigger.attempts + 1 });
        }
        receipts.write("stop", "stopped", { trigger, lease }, { reason });
        return;
      }
      case "retry_wait": {
        const attempts = trigger.attempts + 1;
        const dueAt = now + backoffMs(settings, attempts);
        end({ state: "waiting", decision: "retry_wait", attempts, dueAt });
        receipts.write("retry", "retry_wait", { trigger, lease }, {
          reason: event.type,
          next_attempt_at: rfc3339(dueAt),
          max_attempts: settings.maxAttempts,
        });
        return;
      }
      default:
        this.#yielded(trigger, now, end);
    }
  }

  /** Let go with a checkpoint: whether anybody is to go on from there, and when. */
  #yielded(
    trigger: TriggerRow,
    now: number,
    end: (change: Partial<TriggerRow>) => void,
  ): void {
    const { store, settings } = this.#o;
    const row = store.journal.latestCheckpoint(
      trigger.source,
      trigger.sourceId,
      trigger.targetRepo,
    );
    const checkpoint = row && JSON.parse(row.record) as Checkpoint;
    const blocked = checkpoint?.blocked_reason ?? null;
    if (isGate(blocked)) return end({ state: "waiting", dueAt: 0, decision: `blocked_${blocked}` });
    if (blocked === "dependency") {
      return end({ state: "waiting", dueAt: NEVER, decision: "blocked_dependency" });
    }
    if (blocked === "unavailable") {
      const wait = (settings.backoffSeconds.at(-1) ?? 0) * 1000;
      return end({ state: "waiting", dueAt: now + wait, decision: "blocked_unavailable" });
    }
    if (checkpoint?.next_action === undefined) return end({ state: "done", decision: "released" });
    end({ state: "waiting", dueAt: now + backoffMs(settings, 1), decision: "released" });
  }
}

export type Applied =
  | { readonly ok: true; readonly lease: LeaseRow; readonly noop: boolean }
  | { readonly ok: false; readonly error: TamqError };

/** Returned and not thrown, so that what was done on the way (an expiry) is committed. */
function refusedAs(error: TamqError): Applied {
  return { ok: false, error };
}

function lost(lease: LeaseRow, why: string): TamqError {
  return new TamqError(
    "FAILED_PRECONDITION",
    "lease_lost",
    `lease ${lease.leaseId} is over: ${why}`,
    { hint: "stop this work; somebody else may have it now" },
  );
}

function refusal(lease: LeaseRow, { reason, state, event }: LeaseRefusal): TamqError {
  if (reason === "lease_lost") return lost(lease, `it is ${state}`);
  const hint = reason === "not_acknowledged"
    ? `first: tamq coord ack ${writeHandle({ leaseId: lease.leaseId, token: lease.fencingToken })}`
    : event === "release"
    ? "publish a checkpoint first: tamq coord checkpoint"
    : undefined;
  return new TamqError(
    "FAILED_PRECONDITION",
    reason,
    `lease ${lease.leaseId} is ${state}; that does not go with ${event}`,
    { hint },
  );
}
