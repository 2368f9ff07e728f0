/**
 * Looks after held leases: sends what is not sent yet, follows the message until it is shown, keeps
 * the offer alive meanwhile, and ends what nobody answers (K-06, K-07).
 */
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { probe } from "../base/probe.ts";
import type { Steady } from "../base/steady.ts";
import type { CoordinationSettings } from "../model/coordination.ts";
import type { WireEndpoint, WireMessage } from "../protocol/schema.ts";
import type { CoordinationEngineAdapter, WakeRequest, WakeResult } from "./adapter.ts";
import { isAtWork, windowsOf } from "./facts.ts";
import type { Leases } from "./leases.ts";
import type { Receipts } from "./receipts.ts";
import type { LeaseRow, TriggerRow } from "./records.ts";
import type { CoordStore } from "./store/store.ts";
import { triggerOf, type Wakes } from "./wakes.ts";

export interface TenderOptions {
  readonly store: CoordStore;
  readonly leases: Leases;
  readonly adapter: CoordinationEngineAdapter;
  readonly wakes: Pick<Wakes, "coordEndpoint">;
  readonly receipts: Receipts;
  readonly settings: CoordinationSettings;
  readonly steady: Steady;
  readonly log: Log;
  readonly judge: (lease: LeaseRow, trigger: TriggerRow) => "keep" | "stop";
}

/** How often the message of an offered lease is asked for. */
const MESSAGE_MS = 1000;

export class Tender {
  readonly #o: TenderOptions;
  /** Why the last try of a wake failed: told once, however often it is tried. */
  readonly #failed = new Map<string, string>();

  constructor(options: TenderOptions) {
    this.#o = options;
  }

  /** `endpoints` undefined: the message service does not answer; nothing can be told of it then. */
  async tend(endpoints: readonly WireEndpoint[] | undefined): Promise<void> {
    for (const lease of this.#o.store.leases.held()) {
      try {
        if (lease.state === "offered") await this.#offered(lease, endpoints);
        else await this.#worked(lease, endpoints);
      } catch (error) {
        // The next turn looks again; the lease's own time runs on.
        this.#o.log.warn("lease.untended", {
          lease: lease.leaseId,
          reason: error instanceof TamqError ? error.reason : errorText(error),
        });
      }
    }
  }

  nextDue(): number | undefined {
    const { store, steady, settings } = this.#o;
    const now = steady.now();
    const times = store.leases.held().map((lease) => {
      if (lease.state !== "offered") {
        return Math.min(lease.expiresAt, now + settings.renewSeconds * 1000);
      }
      if (lease.shownAt === null) return now + MESSAGE_MS;
      return lease.shownAt + settings.wakeAckSeconds * 1000;
    });
    return times.length === 0 ? undefined : Math.min(...times);
  }

  async #offered(
    lease: LeaseRow,
    endpoints: readonly WireEndpoint[] | undefined,
  ): Promise<void> {
    const { store, leases, adapter, steady, settings, judge } = this.#o;
    const now = steady.now();
    // Where the transport cannot be asked, nobody knows whether the worker was told: a new lease
    // might wake it twice. The offer is kept until that is known.
    if (endpoints === undefined) return await this.#keep(lease);
    const trigger = store.triggers.get(lease.triggerId)!;
    const message = await this.#messageOf(lease);
    if (message === undefined) {
      if (judge(lease, trigger) === "stop") {
        await store.commit(() => leases.apply(lease, { type: "stop" }));
      } else if (lease.messageId !== null) {
        await store.commit(() => leases.undeliverable(lease)); // purged, or another database
      } else if (now >= lease.expiresAt) {
        await store.commit(() => leases.undeliverable(lease));
      } else await this.send(lease, endpoints);
      return;
    }
    switch (message.state) {
      case "pending":
      case "awaiting_ack":
        if (message.state === "pending" && judge(lease, trigger) === "stop") {
          if (await adapter.cancel(message.message_id)) {
            await store.commit(() => leases.apply(lease, { type: "stop" }));
          }
          return;
        }
        await this.#rebind(lease, message, endpoints);
        return await this.#keep(lease);
      case "injected":
      case "acknowledged": {
        const shownAt = lease.shownAt ?? now;
        if (lease.shownAt === null) {
          await store.commit(() => {
            store.leases.message(lease.leaseId, message.state, shownAt);
            this.#o.receipts.write("wake", message.state, { trigger, lease });
          });
        }
        if (now - shownAt >= settings.wakeAckSeconds * 1000) {
          await store.commit(() => leases.expire(lease));
        } else await this.#keep(lease);
        return;
      }
      case "failed":
        await store.commit(() => {
          store.leases.message(lease.leaseId, message.state, lease.shownAt);
          leases.undeliverable(lease);
        });
    }
  }

  /** The wake's message; undefined when the transport has none. */
  async #messageOf(lease: LeaseRow): Promise<WireMessage | undefined> {
    const { adapter, store } = this.#o;
    if (lease.messageId === null) {
      // The answer to an earlier send may have been lost with the process that waited for it.
      const found = await adapter.find(lease.leaseId, lease.triggerId);
      if (found !== undefined) {
        await store.commit(() => this.#sent(lease, found.endpoint_id ?? "", found));
      }
      return found;
    }
    try {
      return await adapter.message(lease.messageId);
    } catch (error) {
      if (error instanceof TamqError && error.reason === "unknown_message") return undefined;
      throw error;
    }
  }

  /** Before half of its time is over, so that it never expires while it waits (K-07). */
  async #keep(lease: LeaseRow): Promise<void> {
    const { store, leases, steady, settings } = this.#o;
    if (lease.expiresAt - steady.now() > settings.leaseSeconds * 500) return;
    await store.commit(() => leases.apply(lease, { type: "renew" }));
  }

  /** Its endpoint is gone and one other has the repository: the identical wake moves it (T-18). */
  async #rebind(
    lease: LeaseRow,
    message: WireMessage,
    endpoints: readonly WireEndpoint[],
  ): Promise<void> {
    if (message.state !== "pending" || lease.endpointId === null) return;
    const live = windowsOf(endpoints, lease.targetRepo, lease.targetAgent);
    if (live.length !== 1 || live[0]!.endpoint.endpoint_id === lease.endpointId) return;
    await this.send(lease, endpoints);
  }

  /** Sends the stored prompt; the same lease gives the same message however often it is sent. */
  async send(lease: LeaseRow, endpoints: readonly WireEndpoint[]): Promise<void> {
    const { store, adapter, receipts, log } = this.#o;
    const trigger = store.triggers.get(lease.triggerId)!;
    const live = windowsOf(endpoints, lease.targetRepo, lease.targetAgent);
    const request: WakeRequest = {
      lease_id: lease.leaseId,
      target_repo: lease.targetRepo,
      ...(lease.targetAgent !== null && { target_agent: lease.targetAgent }),
      trigger: triggerOf(trigger),
      prompt: lease.prompt,
    };
    let result: WakeResult;
    try {
      probe("coord.sending", lease);
      // Named, since an agent may have been asked for that runs in one of several windows. Where
      // another window has come meanwhile nobody is chosen (T-05).
      const named = live.length === 1 ? live[0]!.endpoint.endpoint_id : undefined;
      result = await adapter.wakeMessage(request, named);
      probe("coord.sent", lease);
    } catch (error) {
      const reason = error instanceof TamqError ? error.reason : "failed";
      if (this.#failed.get(lease.leaseId) === reason) return;
      if (this.#failed.size >= 1000) this.#failed.clear();
      this.#failed.set(lease.leaseId, reason);
      log.warn("wake.failed", { lease: lease.leaseId, reason });
      await store.commit(() => receipts.write("wake", "failed", { trigger, lease }, { reason }));
      return;
    }
    await store.commit(() => {
      if (result.message === undefined) {
        receipts.write("wake", "unavailable", { trigger, lease });
        return this.#o.leases.undeliverable(store.leases.get(lease.leaseId)!);
      }
      this.#sent(lease, result.ack.session_id, result.message);
      const capability = lease.resumed ? "resumed" : "started";
      receipts.write("wake", "accepted", { trigger, lease: store.leases.get(lease.leaseId) }, {
        reason: capability,
      });
    });
    log.info("wake.accepted", { lease: lease.leaseId, repo: lease.targetRepo });
  }

  #sent(
    lease: LeaseRow,
    endpointId: string,
    message: { message_id: string; state: string },
  ): void {
    const { store, wakes } = this.#o;
    store.leases.sent(lease.leaseId, {
      endpointId,
      coordEndpointId: wakes.coordEndpoint(endpointId) ?? endpointId,
      messageId: message.message_id,
      state: message.state,
    });
  }

  async #worked(
    lease: LeaseRow,
    endpoints: readonly WireEndpoint[] | undefined,
  ): Promise<void> {
    const { store, leases, steady, settings, judge } = this.#o;
    const trigger = store.triggers.get(lease.triggerId)!;
    if (judge(lease, trigger) === "stop") {
      await store.commit(() => leases.apply(lease, { type: "stop" }));
      return;
    }
    const now = steady.now();
    const window = windowsOf(endpoints ?? [], lease.targetRepo, lease.targetAgent)
      .find(({ endpoint }) => endpoint.endpoint_id === lease.endpointId);
    const age = settings.leaseSeconds * 1000 - (lease.expiresAt - now);
    if (window !== undefined && isAtWork(window.attachment)) {
      if (age >= settings.renewSeconds * 1000) {
        await store.commit(() => leases.apply(lease, { type: "renew" }));
      }
      return;
    }
    if (now >= lease.expiresAt) await store.commit(() => leases.expire(lease));
  }
}
