/** The hub process: wires lock, database, routes and listeners, and takes them down again (K-19, K-21). */
import { type Clock, rfc3339, systemClock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { newId, newToken } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { identify } from "../base/proc.ts";
import { type Random, systemRandom } from "../base/random.ts";
import type { Orwell } from "../ipc/orwell.ts";
import { ensureStateDir } from "../ipc/state_dir.ts";
import {
  onStopSignals,
  readHolder,
  runInOrder,
  type ServiceLock,
  type Step,
  tryServiceLock,
} from "../socket.ts";
import { Door, type DoorOptions, onError } from "./door.ts";
import { EventStreams } from "./events.ts";
import { TcpGuard } from "./guard.ts";
import { createHandlers } from "./handlers.ts";
import { HubApp } from "./http.ts";
import { ProofKey } from "./proof.ts";
import type { HubSettings } from "./settings.ts";
import { HubStore } from "./store/hub_store.ts";
import { sizeAdvisory } from "../sqlite/size.ts";
import { ensureToken } from "./token.ts";

export interface HubOptions {
  readonly hub: HubSettings;
  readonly version: string;
  readonly log: Log;
  readonly orwell?: Orwell;
  readonly windowOf: DoorOptions["windowOf"];
  /** Listens on this loopback port as well; 0 takes a free one. */
  readonly tcpPort?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  /** How many requests and event streams may be open; for tests. */
  readonly limits?: { readonly requests?: number; readonly streams?: number };
}

export interface RunningHub {
  readonly hubId: string;
  readonly socket: string;
  /** The loopback port, with `tcpPort`. */
  readonly port: number | undefined;
  /** Stops in order within the grace period; true when every step ended well. */
  stop(hurry?: AbortSignal): Promise<boolean>;
}

/**
 * Starts a hub. Throws `hub_running`, `state_dir_…`, `socket_…`, `port_unusable`,
 * `token_unreadable`, `peer_check_unavailable`, or a store error; then nothing is left standing.
 */
export async function startHub(options: HubOptions): Promise<RunningHub> {
  const standing: Step[] = [];
  const clock = options.clock ?? systemClock;
  const { hub, log } = options;
  const take = (hurry?: AbortSignal) =>
    runInOrder(standing.splice(0).reverse(), { clock, log, graceMs: hub.graceMs, hurry });
  try {
    const { hubId, port } = await build(options, clock, standing);
    log.info("hub.ready", { pid: Deno.pid, socket: hub.socket, port, hub_id: hubId });
    return { hubId, socket: hub.socket, port, stop: take };
  } catch (error) {
    await take();
    throw error;
  }
}

/** Runs a hub until a signal ends it; the caller then exits by `Deno.exit`. Throws as `startHub`. */
export async function runHub(
  options: HubOptions & { onReady?: (hub: RunningHub) => void },
): Promise<void> {
  const hurry = new AbortController();
  const asked = Promise.withResolvers<string>();
  const ignore = onStopSignals(asked.resolve, () => hurry.abort());
  try {
    const running = await startHub(options);
    options.onReady?.(running);
    const signal = await asked.promise;
    options.log.info("hub.stopping", { signal });
    const clean = await running.stop(hurry.signal);
    options.log.info("hub.stopped", { clean });
  } finally {
    ignore();
  }
}

async function build(
  options: HubOptions,
  clock: Clock,
  standing: Step[],
): Promise<{ hubId: string; port: number | undefined }> {
  const { hub, log, random = systemRandom, version } = options;
  ensureStateDir(hub.stateDir);
  const lock = await alone(options, random);
  standing.push({ name: "free the lock", run: () => lock.release() });
  const { database: path, busyTimeoutMs } = hub;
  const store = await HubStore.open({ path, clock, random, busyTimeoutMs });
  standing.push(
    { name: "close the database", run: () => store.close() },
    { name: "leave a receipt", run: () => leaveReceipt(store, clock, random) },
  );

  const advisory = sizeAdvisory("State Hub data", "tamq hub purge", store.bytes());
  if (advisory !== undefined) log.warn("database.large", { advisory });

  const events = new EventStreams({ store, clock, maxStreams: options.limits?.streams });
  const handlers = createHandlers(store, { version, startedAt: clock.now() });
  const app = new HubApp({
    handlers,
    events,
    clock,
    log,
    orwell: options.orwell,
    maxRequests: options.limits?.requests,
  });
  const door = await Door.open({
    path: hub.socket,
    clock,
    log,
    windowOf: options.windowOf,
    handle: (request, guard) => app.handle(request, guard),
  });
  standing.push({ name: "close the socket", run: () => door.close() });
  const port = options.tcpPort === undefined
    ? undefined
    : await listenTcp(app, options.tcpPort, hub.tokenFile, clock, random, standing);
  // First of all in the reverse order: new requests are refused, streams end.
  standing.push({
    name: "end requests",
    run: () => {
      app.stop();
      events.close();
    },
  });
  return { hubId: store.hubId, port };
}

/** The last word of an orderly end (L-03). */
async function leaveReceipt(store: HubStore, clock: Clock, random: Random): Promise<void> {
  const id = newId(clock, random);
  const receipt = {
    receipt_id: id,
    idempotency_key: id,
    kind: "shutdown",
    status: "stopped",
    recorded_at: rfc3339(clock.now()),
  };
  await store.mutate({
    key: id,
    digest: "",
    kind: "receipt",
    idOf: () => id,
    work: () => store.journal.addReceipt(receipt),
    again: () => store.journal.receipt(id),
  });
}

/** One hub a database (L-02). */
async function alone({ hub, version }: HubOptions, random: Random): Promise<ServiceLock> {
  const lock = await tryServiceLock(hub.stateDir);
  if (lock === undefined) {
    const holder = readHolder(hub.stateDir);
    throw new TamqError(
      "ALREADY_EXISTS",
      "hub_running",
      holder === undefined
        ? `another hub is starting on ${hub.stateDir}`
        : `a hub (process ${holder.pid}) already serves ${hub.stateDir} on ${holder.socket}`,
      { hint: "use that one, or end it first" },
    );
  }
  try {
    lock.publish({
      pid: Deno.pid,
      start: identify(Deno.pid)?.start ?? "",
      socket: hub.socket,
      service_id: newToken(random),
      version,
    });
  } catch (error) {
    lock.release();
    throw error;
  }
  return lock;
}

async function listenTcp(
  app: HubApp,
  wanted: number,
  tokenFile: string,
  clock: Clock,
  random: Random,
  standing: Step[],
): Promise<number> {
  const token = ensureToken(tokenFile, random);
  let port = wanted;
  const guard = new TcpGuard({
    token,
    key: await ProofKey.of(token),
    port: () => port,
    clock,
  });
  let server: Deno.HttpServer<Deno.NetAddr>;
  try {
    server = Deno.serve(
      // An address, not a name: what "localhost" means is decided elsewhere.
      { hostname: "127.0.0.1", port: wanted, onListen() {}, onError },
      (request) => app.handle(request, guard),
    );
  } catch (cause) {
    throw new TamqError(
      "UNAVAILABLE",
      "port_unusable",
      `cannot listen on 127.0.0.1:${wanted}: ${errorText(cause)}`,
      { hint: "choose another port with --tcp PORT", cause },
    );
  }
  port = server.addr.port;
  standing.push({ name: "close the port", run: () => server.shutdown() });
  return port;
}
