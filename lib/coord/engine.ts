/** The coordination engine process: wires everything and takes it down again (K-08, K-21, L-02, L-03). */
import { type Clock, pause, systemClock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { newToken } from "../base/ids.ts";
import type { Level, Log } from "../base/log.ts";
import { ancestry, identify } from "../base/proc.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { announce, announceFailure, logDeath, serviceLog } from "../base/service.ts";
import { Steady } from "../base/steady.ts";
import { findSocket } from "../client.ts";
import type { Env, Settings } from "../config.ts";
import { configVersion } from "../config_keys.ts";
import { refuseNetwork } from "../ipc/filesystem.ts";
import { openOrwell, type Orwell, orwellSink } from "../ipc/orwell.ts";
import { ensureStateDir } from "../ipc/state_dir.ts";
import { type PolicyProfile, selectProfile } from "../model/policy.ts";
import type { Registry } from "../model/ports.ts";
import {
  bindSocket,
  liveHolder,
  onStopSignals,
  readHolder,
  runInOrder,
  SocketServer,
  type Step,
  tryServiceLock,
} from "../socket.ts";
import { sizeAdvisory } from "../sqlite/size.ts";
import { CoordinationEngineAdapter } from "./adapter.ts";
import { Approvals } from "./approvals.ts";
import { connectHub } from "./connect.ts";
import { Endpoints } from "./endpoints.ts";
import { createEngineHandlers } from "./handlers.ts";
import { Leases } from "./leases.ts";
import { Observer } from "./observer.ts";
import { Projector } from "./projector.ts";
import { Receipts, type Rules } from "./receipts.ts";
import { engineStatus } from "./status.ts";
import { engineSettings } from "./settings.ts";
import { CoordStore, SCHEMA_VERSION } from "./store/store.ts";
import { Waker } from "./waker.ts";
import { Wakes } from "./wakes.ts";
import { Callers } from "./windows.ts";

export interface EngineOptions {
  readonly settings: Settings;
  readonly registry: Registry;
  readonly version: string;
  readonly mode: "foreground" | "detached";
  /** Whether that process is a broker, by its argument vector. */
  readonly isBroker: (pid: number) => boolean;
  readonly env?: Env;
  readonly level?: Level;
  readonly json?: boolean;
  /** Turns `--orwell` on, if this profile admits it (C-06). */
  readonly orwell?: PolicyProfile;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * Runs the engine until a signal ends it; the caller then exits by `Deno.exit`. Throws when it
 * cannot start: `engine_running`, `policy_…`, `state_dir_…`, `socket_…`, store errors.
 */
export async function runEngine(options: EngineOptions): Promise<void> {
  const { settings, mode, clock = systemClock } = options;
  const paths = engineSettings(settings);
  try {
    ensureStateDir(settings.stateDir);
    if (!settings.allowNetworkState) refuseNetwork(settings.stateDir);
    ensureStateDir(paths.stateDir);
    using output = serviceLog({ ...options, logFile: paths.logFile, clock });
    const { log } = output;
    logDeath(log, "engine.crashed");
    const sink = orwellSink(paths.stateDir);
    using orwell = options.orwell && openOrwell(options.orwell, sink, clock);
    if (orwell !== undefined) log.warn("orwell.active", { sink });
    const hurry = new AbortController();
    const asked = Promise.withResolvers<string>();
    const ignore = onStopSignals(asked.resolve, () => hurry.abort());
    const standing: Step[] = [];
    const stop = { clock, log, graceMs: settings.graceMs };
    try {
      await build(options, clock, log, orwell, standing);
    } catch (error) {
      await runInOrder(standing.reverse(), stop);
      ignore();
      throw error;
    }
    log.info("engine.ready", { pid: Deno.pid, socket: paths.socket, schema: SCHEMA_VERSION });
    if (mode === "detached") announce({ ready: true, pid: Deno.pid });
    const signal = await asked.promise;
    log.info("engine.stopping", { signal });
    const clean = await runInOrder(standing.reverse(), { ...stop, hurry: hurry.signal });
    log.info("engine.stopped", { clean });
    ignore();
  } catch (error) {
    if (mode === "detached") announceFailure(error, paths.logFile);
    throw error;
  }
}

async function build(
  options: EngineOptions,
  clock: Clock,
  log: Log,
  orwell: Orwell | undefined,
  standing: Step[],
): Promise<void> {
  const { settings, registry, env = Deno.env.get, random = systemRandom } = options;
  const paths = engineSettings(settings);
  const { coordination } = settings;
  // Validated before anything is touched (K-13).
  const rules: Rules = {
    profile: selectProfile(settings.policyProfile, settings.profiles),
    configVersion: configVersion(settings),
  };
  const identity = { engineId: newToken(random), version: options.version, pid: Deno.pid };
  const lock = await alone(options, identity.engineId);
  standing.push({ name: "free the lock", run: () => lock.release() });
  const { store, migration } = await CoordStore.open({
    path: paths.database,
    clock,
    busyTimeoutMs: settings.busyTimeoutMs,
  });
  if (migration.from !== migration.to) {
    log.info("database.migrated", { from: migration.from, to: migration.to });
  }
  const advisory = sizeAdvisory("coordination data", "tamq coord purge", store.bytes());
  if (advisory !== undefined) log.warn("database.large", { advisory });
  const receipts = new Receipts({ sink: store.journal, rules, clock, random });
  standing.push(
    { name: "close the database", run: () => store.close() },
    {
      name: "leave a receipt",
      run: () => store.commit(() => receipts.write("shutdown", "stopped", {})),
    },
  );

  const steady = new Steady(clock);
  const processes = { identify, ancestry };
  const now = steady.now();
  await store.commit(() => {
    // Nobody could renew while no engine ran, whatever the wall clock did meanwhile (K-06, K-07).
    store.leases.startAnew(now + coordination.leaseSeconds * 1000, now);
    store.triggers.clampDue(now, now + (coordination.backoffSeconds.at(-1) ?? 0) * 1000);
    receipts.write("configuration", "started", {});
  });
  const leases = new Leases({
    store,
    steady,
    clock,
    random,
    receipts,
    rules,
    settings: coordination,
  });
  const cut = new AbortController();
  const { signal } = cut;
  const adapter = new CoordinationEngineAdapter({
    socket: () => findSocket(settings),
    clock,
    orwell,
    signal,
  });
  const endpoints = new Endpoints({ store, registry, processes, receipts, clock, random, log });
  const callers = new Callers({
    processes,
    endpoints: () => adapter.endpoints(),
    isBroker: options.isBroker,
  });
  const hub = () => observer.client;
  const projector = new Projector({ store, hub, clock, log, signal });
  const loop = new Loop({
    clock,
    steady,
    log,
    idleMs: coordination.renewSeconds * 1000,
    anyOpen: () => store.triggers.anyOpen(),
    waker: new Waker({
      store,
      leases,
      adapter,
      registry,
      identify,
      receipts,
      rules,
      settings: coordination,
      steady,
      clock,
      log,
      wakes: new Wakes({
        store,
        hub,
        registry,
        rules,
        settings: coordination,
        coordEndpoint: (id) => endpoints.idOf(id),
        signal,
        // Loaded with the first prompt: 100 ms and 20 MB that an idle engine does not need.
        holdsSecret: async (text) => (await import("./secrets.ts")).holdsSecret(text),
      }),
      onSourceGone: () => observer.doubt(),
      onEndpoints: async (live) => {
        callers.remember(live);
        await endpoints.discover(live);
      },
    }),
    after: () => void projector.run(),
  });
  const observer = new Observer({
    store,
    // Observer, wakes and projection each try again in their own time.
    connect: () => connectHub(settings, env, { orwell, backoffMs: [] }),
    receipts,
    clock,
    random,
    log,
    pollMs: coordination.pollSeconds * 1000,
    onObserved: () => loop.hubReached(store),
  });
  const approvals = new Approvals({ store, clock, random, receipts, settings: coordination });

  const bound = await bindSocket(paths.socket, clock);
  const server = new SocketServer({
    bound,
    path: paths.socket,
    clock,
    log,
    orwell,
    handle: createEngineHandlers({
      identity,
      store,
      leases,
      callers,
      endpoints,
      approvals,
      onChange: () => loop.nudge(),
      servicePid: () => liveHolder(settings.stateDir)?.pid,
      status: () => {
        loop.nudge(); // what it last saw of the service may be old: the next answer is of now
        return engineStatus({
          identity,
          paths,
          store,
          rules,
          hub: observer.health,
          endpoints: loop.endpoints,
          registry,
        });
      },
    }),
  });
  // Taken down in the reverse order (L-03): no new request, no new wake, then what is under way.
  standing.push(
    { name: "cut connections", run: () => server.abandon() },
    { name: "stop publishing", run: () => projector.stop() },
    { name: "stop observing", run: () => observer.stop() },
    { name: "stop deciding", run: () => loop.stop() },
    { name: "finish requests", run: () => server.drained(settings.graceMs / 2) },
    { name: "close the socket", run: () => server.stop() },
    {
      name: "lose patience soon",
      // Whoever does not answer must not use up the time of the other steps; a wake that is cut is
      // found again under its lease.
      run: () => {
        clock.after(PATIENCE_MS, () => cut.abort(shuttingDown()));
      },
    },
  );
  server.start();
  loop.start();
  observer.start();
}

/** At the end, for what service and hub are being asked. */
const PATIENCE_MS = 1000;

function shuttingDown(): TamqError {
  return new TamqError("UNAVAILABLE", "shutting_down", "the engine is shutting down");
}

/** One engine a state directory (L-02). */
async function alone({ settings, version }: EngineOptions, engineId: string) {
  const { stateDir, socket } = engineSettings(settings);
  const lock = await tryServiceLock(stateDir);
  if (lock === undefined) {
    const holder = readHolder(stateDir);
    throw new TamqError(
      "ALREADY_EXISTS",
      "engine_running",
      holder === undefined
        ? `another coordination engine is starting on ${stateDir}`
        : `a coordination engine (process ${holder.pid}) already serves ${stateDir}`,
      { hint: "use that one, or stop it first: tamq coord stop" },
    );
  }
  try {
    const start = identify(Deno.pid)?.start ?? "";
    lock.publish({ pid: Deno.pid, start, socket, service_id: engineId, version });
  } catch (error) {
    lock.release();
    throw error;
  }
  return lock;
}

interface LoopOptions {
  readonly waker: Waker;
  readonly clock: Clock;
  readonly steady: Steady;
  readonly log: Log;
  /** With nothing due, windows and registry are looked at so often… */
  readonly idleMs: number;
  /** …while this says that they could matter to something. */
  readonly anyOpen: () => boolean;
  readonly after: () => void;
}

/** However many things become due at once, turns keep this distance. */
const TURN_MS = 20;
/** With no trigger that is open. */
const EMPTY_MS = 60_000;
/** While the message service does not answer. */
const DOWN_MS = 1000;

/** Turn after turn, one at a time; sooner when something happens. */
class Loop {
  readonly #o: LoopOptions;
  readonly #ending = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: LoopOptions) {
    this.#o = options;
  }

  get endpoints() {
    return this.#o.waker.endpoints;
  }

  start(): void {
    this.#running = this.#run();
  }

  nudge(): void {
    this.#wake.abort();
  }

  /** What waited for the hub alone is decided now. */
  hubReached(store: CoordStore): void {
    this.nudge();
    // At most looks there are none: a commit each time would be a write to the disk for nothing.
    if (!store.triggers.waitFor("hub_unreachable")) return;
    store.commit(() => store.triggers.lookAgain(["hub_unreachable"])).then(
      () => this.nudge(),
      (error) => this.#o.log.error("engine.turn_failed", { reason: errorText(error) }),
    );
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.nudge();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { waker, clock, steady, log, idleMs, anyOpen, after } = this.#o;
    while (!this.#ending.signal.aborted) {
      this.#wake = new AbortController();
      let more = false;
      try {
        more = await waker.turn();
      } catch (error) {
        log.error("engine.turn_failed", { reason: errorText(error) });
      }
      after();
      if (this.#ending.signal.aborted) return;
      const due = more ? 0 : (waker.nextDue() ?? Infinity) - steady.now();
      const least = waker.endpoints === undefined ? DOWN_MS : TURN_MS;
      // A window that comes or goes is told by the service; the looks are for what it cannot tell.
      const wait = anyOpen() ? Math.min(Math.max(due, least), idleMs) : EMPTY_MS;
      await pause(clock, wait, this.#wake.signal);
    }
  }
}
