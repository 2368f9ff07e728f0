/** The engine's parts in this process: real database, real State Hub, a scripted transport, a still clock. */
import { silentLog } from "../../lib/base/log.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { Steady } from "../../lib/base/steady.ts";
import { TamqError } from "../../lib/base/errors.ts";
import type { CoordinationEngineAdapter, WakeRequest } from "../../lib/coord/adapter.ts";
import { Leases } from "../../lib/coord/leases.ts";
import { Observer } from "../../lib/coord/observer.ts";
import { Receipts, type Rules } from "../../lib/coord/receipts.ts";
import { holdsSecret } from "../../lib/coord/secrets.ts";
import type { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { CoordStore } from "../../lib/coord/store/store.ts";
import { Waker } from "../../lib/coord/waker.ts";
import { Wakes } from "../../lib/coord/wakes.ts";
import { type CoordinationSettings, DEFAULT_COORDINATION } from "../../lib/model/coordination.ts";
import { DEFAULT_PROFILE } from "../../lib/model/policy.ts";
import type { WireEndpoint, WireMessage } from "../../lib/protocol/schema.ts";
import { FakeClock } from "./clock.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { withHub } from "./hub.ts";

interface Sent {
  readonly message_id: string;
  readonly request: WakeRequest;
  state: WireMessage["state"];
  endpoint_id: string;
  times: number;
}

/** A transport that does what the test says; it keeps its promises about keys. */
export class FakeTransport {
  readonly sent = new Map<string, Sent>();
  live: WireEndpoint[] = [];
  /** Thrown by the next calls. */
  down = false;
  /** The next send is admitted and its answer lost. */
  loseAnswer = false;
  cancelLoses = false;

  open(repo: string, options: { endpoint?: string; path?: string; busy?: string } = {}): void {
    const { endpoint = `tmux-amq-${Deno.pid}`, path = `/repos/${repo}`, busy } = options;
    this.live.push({
      endpoint_id: endpoint,
      tmux_session: "s",
      protocol: "0.1",
      capabilities: [],
      repos: [repo],
      attachments: [{
        repo,
        path,
        command: ["cat"],
        mode: "trigger",
        gate: { open: busy === undefined, reason: busy ?? null },
        broker_pid: Deno.pid,
        window_id: "@1",
        attached_at: "2030-01-01T00:00:00.000Z",
      }],
    });
  }

  #check(): void {
    if (this.down) throw new TamqError("UNAVAILABLE", "service_unavailable", "down");
  }

  endpoints(): Promise<WireEndpoint[]> {
    return Promise.resolve().then(() => (this.#check(), this.live));
  }

  async wakeMessage(request: WakeRequest, endpointId?: string) {
    await Promise.resolve();
    this.#check();
    const ack = { lease_id: request.lease_id, session_id: "", accepted_at: "" };
    const live = this.live.filter(({ repos }) => repos.includes(request.target_repo));
    if (live.length > 1 && endpointId === undefined) {
      throw new TamqError("FAILED_PRECONDITION", "ambiguous_endpoint", "several");
    }
    const found = this.live.find((one) =>
      one.repos.includes(request.target_repo) &&
      (endpointId === undefined || one.endpoint_id === endpointId)
    );
    if (found === undefined) return { ack: { ...ack, capability: "unavailable" as const } };
    let sent = this.sent.get(request.lease_id);
    if (sent === undefined) {
      const message_id = `m${this.sent.size + 1}`;
      const endpoint_id = found.endpoint_id;
      sent = { message_id, request, state: "pending", endpoint_id, times: 0 };
      this.sent.set(request.lease_id, sent);
    } else if (sent.request.prompt !== request.prompt) throw new Error("another prompt");
    sent.times++;
    if (this.loseAnswer) {
      this.loseAnswer = false;
      throw new TamqError("UNAVAILABLE", "connection_lost", "lost");
    }
    return {
      ack: { ...ack, session_id: found.endpoint_id, capability: "started" as const },
      message: { message_id: sent.message_id, state: sent.state },
    };
  }

  #wire(sent: Sent): WireMessage {
    const { message_id, state, endpoint_id } = sent;
    return { message_id, state, endpoint_id } as WireMessage;
  }

  async message(id: string): Promise<WireMessage> {
    await Promise.resolve();
    this.#check();
    const sent = [...this.sent.values()].find(({ message_id }) => message_id === id);
    if (sent === undefined) throw new TamqError("NOT_FOUND", "unknown_message", id);
    return this.#wire(sent);
  }

  async find(leaseId: string): Promise<WireMessage | undefined> {
    await Promise.resolve();
    this.#check();
    const sent = this.sent.get(leaseId);
    return sent && this.#wire(sent);
  }

  async cancel(id: string): Promise<boolean> {
    await Promise.resolve();
    this.#check();
    if (this.cancelLoses) return false;
    for (const sent of this.sent.values()) if (sent.message_id === id) sent.state = "failed";
    return true;
  }

  /** Every message so far, in order. */
  get all(): Sent[] {
    return [...this.sent.values()];
  }
}

export interface CoordRig {
  readonly dir: string;
  readonly clock: FakeClock;
  readonly steady: Steady;
  readonly store: CoordStore;
  readonly leases: Leases;
  readonly waker: Waker;
  readonly observer: Observer;
  readonly hub: StateHubClient;
  readonly transport: FakeTransport;
  readonly registry: FakeRegistry;
  readonly receipts: Receipts;
  /** Observes, then decides until nothing more is due. */
  step(): Promise<void>;
  task(id: string, more?: Record<string, unknown>): Promise<void>;
  edit(id: string, body: Record<string, unknown>): Promise<void>;
  receiptsOf(sourceId: string): Record<string, unknown>[];
}

const REPOS = { alpha: "/repos/alpha", beta: "/repos/beta" };

export async function withCoord(
  body: (rig: CoordRig) => Promise<void>,
  options: { settings?: Partial<CoordinationSettings>; rules?: Partial<Rules> } = {},
): Promise<void> {
  await withHub(async ({ dir, client }) => {
    const clock = new FakeClock();
    const random = systemRandom;
    const settings = { ...DEFAULT_COORDINATION, ...options.settings };
    const rules: Rules = { profile: DEFAULT_PROFILE, configVersion: "c0", ...options.rules };
    const path = `${dir}/coord.sqlite3`;
    const { store } = await CoordStore.open({ path, clock, busyTimeoutMs: 1000 });
    const steady = new Steady(clock);
    const receipts = new Receipts({ sink: store.journal, rules, clock, random });
    const leases = new Leases({ store, steady, clock, random, receipts, rules, settings });
    const registry = new FakeRegistry({ ...REPOS });
    const transport = new FakeTransport();
    const adapter = transport as unknown as CoordinationEngineAdapter;
    const observer = new Observer({
      store,
      connect: () => client,
      receipts,
      clock,
      random,
      log: silentLog,
      pollMs: 15_000,
      onObserved() {},
    });
    const waker = new Waker({
      store,
      leases,
      adapter,
      registry,
      identify: (pid) => ({ pid, start: "s" }),
      receipts,
      rules,
      settings,
      steady,
      clock,
      log: silentLog,
      wakes: new Wakes({
        store,
        hub: () => client,
        registry,
        rules,
        settings,
        holdsSecret,
        coordEndpoint: () => "e".repeat(26),
      }),
      onSourceGone: () => observer.doubt(),
      onEndpoints: () => Promise.resolve(),
    });
    try {
      await body({
        dir,
        clock,
        steady,
        store,
        leases,
        waker,
        observer,
        hub: client,
        transport,
        registry,
        receipts,
        async step() {
          await observer.look(client);
          while (await waker.turn()) { /* the rest */ }
        },
        async task(id, more = {}) {
          await client.call("createTask", {
            body: { task_id: id, title: `Do ${id}`, repo: "alpha", status: "ready", ...more },
          });
        },
        async edit(id, change) {
          await client.call("editTask", { params: { task_id: id }, ifMatch: "*", body: change });
        },
        receiptsOf: (id) =>
          store.triggers.ofSource(id).flatMap((row) =>
            store.journal.receiptsOf(row.triggerId) as unknown as Record<string, unknown>[]
          ),
      });
    } finally {
      await store.close();
    }
  });
}
