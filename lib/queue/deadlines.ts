/**
 * One timer for whatever comes due next: leases, acknowledgements, retries, gates that stay
 * closed, brokers that died while holding a lease (T-12 to T-14, T-19).
 */
import { errorText } from "../base/errors.ts";
import type { Attached } from "../attachments.ts";
import { type Context, holderAlive, targetOf } from "./context.ts";
import type { Moves } from "./moves.ts";
import { heldBack } from "./waiting.ts";

/** After a failed commit everything due is tried again. */
const RETRY_MS = 1000;
/** How often the holder of a lease without a connection is looked for. */
const ORPHAN_CHECK_MS = 1000;
/** Work of one transaction, so that a long outage does not end in a long pause. */
const BATCH = 200;

export class Deadlines {
  readonly #ctx: Context;
  readonly #moves: Moves;
  readonly #pump: () => void;
  #cancel: (() => void) | undefined;
  #armedFor = Infinity;
  #ticking = false;
  #stopped = true;
  /** Holders of leases that have no connection, by lease token. */
  readonly #orphans = new Map<string, string>();
  /** When a closed gate next makes a message fail, in steady milliseconds. */
  readonly #readyDue = new Map<Attached, number>();

  constructor(ctx: Context, moves: Moves, pump: () => void) {
    this.#ctx = ctx;
    this.#moves = moves;
    this.#pump = pump;
  }

  start(): void {
    this.#stopped = false;
    this.#rearm();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedFor = Infinity;
  }

  /** Something comes due at `at` (steady milliseconds). */
  consider(at: number): void {
    if (this.#stopped || at >= this.#armedFor) return;
    this.#cancel?.();
    this.#armedFor = at;
    this.#cancel = this.#ctx.clock.after(Math.max(0, at - this.#ctx.steady.now()), () => {
      this.#cancel = undefined;
      this.#armedFor = Infinity;
      this.#tick();
    });
  }

  /** A lease's holder has no connection: once its process is gone the attempt has failed. */
  watchHolder(token: string, holder: string): void {
    this.#orphans.set(token, holder);
    this.consider(this.#ctx.steady.now() + ORPHAN_CHECK_MS);
  }

  /** The holder is back. */
  unwatchHolder(token: string): void {
    this.#orphans.delete(token);
  }

  gateClosed(attached: Attached): void {
    const policy = this.#ctx.policyFor(attached.window);
    const due = attached.gate.since + Math.ceil(policy.readySeconds * 1000);
    this.#readyDue.set(attached, due);
    this.consider(due);
  }

  gateGone(attached: Attached): void {
    this.#readyDue.delete(attached);
  }

  #tick(): void {
    if (this.#stopped || this.#ticking) return;
    this.#ticking = true;
    this.#ctx.commit.run(() => this.#settleDue()).then(
      ({ more, expired }) => {
        this.#ticking = false;
        for (const token of expired) this.#silence(token);
        this.#pump();
        if (more) this.#tick();
        else this.#rearm();
      },
      (error) => {
        this.#ticking = false;
        this.#ctx.log.warn("deadlines not settled", { error: errorText(error) });
        this.consider(this.#ctx.steady.now() + RETRY_MS);
      },
    );
  }

  #settleDue(): { more: boolean; expired: string[] } {
    const { store, steady, policyFor, attachments } = this.#ctx;
    const now = steady.now();
    const expired: string[] = [];
    const leases = store.messages.expiredLeases(now, BATCH);
    for (const message of leases) {
      const window = attachments.find(message.leaseRef!, message.targetRepo)?.window;
      expired.push(message.leaseToken!);
      const alive = holderAlive(this.#ctx, message.leaseHolder!);
      this.#moves.failed(
        message,
        alive
          ? { outcome: "expired", reason: "lease_expired", scope: "target" }
          : { outcome: "failed", reason: "broker_lost", scope: "target" },
        policyFor(window ?? { repo: message.targetRepo }),
      );
    }
    for (const [token, holder] of this.#orphans) {
      if (holderAlive(this.#ctx, holder)) continue;
      const message = store.messages.byLease(token);
      if (message !== undefined) this.brokerLost(message);
      expired.push(token);
    }
    const acks = store.messages.overdueAcks(now, BATCH);
    for (const message of acks) this.#moves.ackTimeout(message);
    const waiting = this.#notReady(now);
    return { more: [leases.length, acks.length, waiting].includes(BATCH), expired };
  }

  /** The process that held the lease is gone; whether it wrote anything is unknown. */
  brokerLost(message: Parameters<Moves["failed"]>[0]): void {
    this.#moves.failed(
      message,
      { outcome: "failed", reason: "broker_lost", scope: "target" },
      this.#ctx.policyFor({ repo: message.targetRepo }),
    );
  }

  #notReady(now: number): number {
    const { store, policyFor, valve } = this.#ctx;
    let most = 0;
    for (const [attached, due] of this.#readyDue) {
      if (due > now) continue;
      const policy = policyFor(attached.window);
      const bound = Math.ceil(policy.readySeconds * 1000);
      const target = targetOf(this.#ctx, attached.window);
      // While everything is paused, and for what a window holds back, no gate is to blame.
      const waiting = valve.paused ? [] : store.messages.waiting(target, now - bound, BATCH)
        .filter((message) => !heldBack(this.#ctx, attached.window, message));
      for (const message of waiting) this.#moves.notReady(message, attached.window, policy);
      most = Math.max(most, waiting.length);
      const waits = attached.window.mode === "hold" || valve.paused;
      const oldest = waits ? now : store.messages.oldestEligible(target) ?? now;
      this.#readyDue.set(attached, Math.min(oldest, now) + bound);
    }
    return most;
  }

  /** The broker let a lease run out: nothing more for it until it speaks (T-25). */
  #silence(token: string): void {
    this.#orphans.delete(token);
    for (const attached of this.#ctx.attachments.all()) {
      if (attached.outstanding?.leaseToken !== token) continue;
      // One that attached since the lease was taken has spoken, and may never have seen it.
      attached.silent = !attached.outstanding.adopted;
      attached.outstanding = undefined;
    }
  }

  #rearm(): void {
    const { store, steady } = this.#ctx;
    const now = steady.now();
    const due = [
      store.messages.nextDeadline(now),
      store.endpoints.nextBackoffEnd(now),
      this.#orphans.size > 0 ? now + ORPHAN_CHECK_MS : undefined,
      ...this.#readyDue.values(),
    ].filter((at) => at !== undefined);
    if (due.length > 0) this.consider(Math.min(...due));
  }
}
