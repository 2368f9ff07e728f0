/** The message service process: wires lock, database, queue and socket, and takes them down again. */
import { Adoption } from "./adoption.ts";
import { Attachments } from "./attachments.ts";
import { type Clock, systemClock } from "./base/clock.ts";
import { errorText, TamqError } from "./base/errors.ts";
import { newToken } from "./base/ids.ts";
import { createLog, type Level, type Log } from "./base/log.ts";
import { openLogFile } from "./base/log_file.ts";
import { ancestry, identify } from "./base/proc.ts";
import { type Random, systemRandom } from "./base/random.ts";
import { brokerProcesses } from "./broker_process.ts";
import type { Settings } from "./config.ts";
import { configVersion } from "./config_keys.ts";
import { CoordLink } from "./coord_link.ts";
import { EventFeed } from "./event_feed.ts";
import { gateEvent, predecessorOf, tellingCommit, tellingStore } from "./event_store.ts";
import { createHandlers, type ServiceIdentity } from "./handlers.ts";
import { historyAdvisory } from "./history_advisory.ts";
import { refuseNetwork } from "./ipc/filesystem.ts";
import { openOrwell, type Orwell, orwellSink } from "./ipc/orwell.ts";
import { ensureStateDir } from "./ipc/state_dir.ts";
import type { PolicyProfile } from "./model/policy.ts";
import type { Registry } from "./model/ports.ts";
import { deliveryPolicy, windowRule } from "./model/window_policy.ts";
import { Queue } from "./queue.ts";
import {
  bindSocket,
  onStopSignals,
  readHolder,
  runInOrder,
  type ServiceLock,
  serviceRunning,
  SocketServer,
  type Step,
  tryServiceLock,
} from "./socket.ts";
import { GroupCommit } from "./sqlite/group_commit.ts";
import { schemaVersion } from "./sqlite/migrator.ts";
import { serviceStatus } from "./status.ts";
import { openStore } from "./store/store.ts";
import { WindowStreams } from "./window_streams.ts";

export interface ServiceOptions {
  readonly settings: Settings;
  readonly registry: Registry;
  /** The package's version. */
  readonly version: string;
  /**
   * `foreground` logs to standard error; `detached` to the log file, and tells its parent on
   * standard output, in one JSON line, that it is ready or why it is not.
   */
  readonly mode: "foreground" | "detached";
  readonly level?: Level;
  readonly json?: boolean;
  /** Turns `--orwell` on, if this profile admits it (C-06). */
  readonly orwell?: PolicyProfile;
  readonly clock?: Clock;
  readonly random?: Random;
  /** See {@link GroupCommit}; for benches. */
  readonly maxBatch?: number;
  /** Instead of what `mode` says; for tests. */
  readonly log?: Log;
}

/**
 * Runs the service until a signal ends it; returns after the orderly shutdown of L-03, or when the
 * grace period is over. The caller then exits the process by `Deno.exit`. Throws when it cannot
 * start: `service_running`, `state_dir_…`, `socket_…`, store errors.
 */
export async function runService(options: ServiceOptions): Promise<void> {
  const { settings, mode } = options;
  try {
    if (!settings.allowNetworkState) refuseNetwork(settings.stateDir);
    const tightened = ensureStateDir(settings.stateDir) !== undefined;
    using output = logOutput(options);
    if (tightened) output.log.warn("state_dir.tightened", { mode: "0700" });
    logDeath(output.log);
    const sink = orwellSink(settings.stateDir);
    using orwell = options.orwell && openOrwell(options.orwell, sink, options.clock ?? systemClock);
    if (orwell !== undefined) output.log.warn("orwell.active", { sink });
    await new Service(options, output.log, orwell).run();
  } catch (error) {
    if (mode === "detached") {
      const known = error instanceof TamqError
        ? error
        : new TamqError("UNAVAILABLE", "start_failed", errorText(error), {
          hint: `see ${settings.logFile}`,
        });
      announce({ error: known.toWire() });
    }
    throw error;
  }
}

class Service {
  readonly #options: ServiceOptions;
  readonly #log: Log;
  readonly #orwell: Orwell | undefined;
  readonly #clock: Clock;
  readonly #random: Random;
  /** How to take down what stands, in the order of building. */
  readonly #standing: Step[] = [];

  constructor(options: ServiceOptions, log: Log, orwell: Orwell | undefined) {
    this.#options = options;
    this.#orwell = orwell;
    this.#log = log;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
  }

  async run(): Promise<void> {
    const { settings } = this.#options;
    const hurry = new AbortController();
    const asked = Promise.withResolvers<string>();
    // From the start: a signal during a long migration is obeyed as soon as that is over.
    const ignore = onStopSignals(asked.resolve, () => hurry.abort());
    const stop = { clock: this.#clock, log: this.#log, graceMs: settings.graceMs };
    try {
      await this.#start();
    } catch (error) {
      await runInOrder(this.#standing.reverse(), stop);
      ignore();
      throw error;
    }
    const signal = await asked.promise;
    this.#log.info("service.stopping", { signal });
    const clean = await runInOrder(this.#standing.reverse(), { ...stop, hurry: hurry.signal });
    this.#log.info("service.stopped", { clean });
    ignore();
  }

  async #start(): Promise<void> {
    const { settings, registry, mode } = this.#options;
    const clock = this.#clock;
    const log = this.#log;
    const identity: ServiceIdentity = {
      serviceId: newToken(this.#random),
      version: this.#options.version,
      pid: Deno.pid,
      startedAt: clock.now(),
    };
    const lock = await this.#alone(identity);
    this.#standing.push({ name: "free the lock", run: () => lock.release() });

    const { busyTimeoutMs, database } = settings;
    const { db, store, migration } = await openStore(database, {
      busyTimeoutMs,
      clock,
      stamp: { config_version: configVersion(settings) },
    });
    this.#standing.push({ name: "close the database", run: () => db.close() });
    if (migration.from !== migration.to) {
      log.info("database.migrated", { from: migration.from, to: migration.to });
    }

    const processes = { identify, ancestry };
    const attachments = new Attachments(processes);
    const { maxBatch } = this.#options;
    const commit = new GroupCommit(db, { path: database, clock, busyTimeoutMs, maxBatch });
    const events = new EventFeed(identity.serviceId, clock);
    events.predecessor = predecessorOf(store);
    const policyFor = (window: { repo: string; command?: readonly string[] } | undefined) =>
      window === undefined ? settings.delivery : deliveryPolicy(
        settings.delivery,
        windowRule(settings.windows, window.repo, window.command).delivery,
      );
    const queue = new Queue({
      store: tellingStore(store, events),
      commit: tellingCommit(commit, events),
      lastWords: () => events.lastWords(),
      attachments,
      registry,
      clock,
      random: this.#random,
      log,
      policyFor,
      guard: settings.guard,
      routing: settings.routing,
      processes,
    });
    const adoption = new Adoption({ dir: settings.spoolDir, queue, clock, log });
    const isBroker = brokerProcesses(clock);
    const windows = new WindowStreams({
      isBroker,
      queue,
      attachments,
      registry,
      processes,
      clock,
      log,
      serviceId: identity.serviceId,
      ackMode: (repo, command) => policyFor({ repo, command }).ackMode,
      onEnded: (window) => adoption.brokerLeft(window.broker),
      onChanged: () => link.nudge(),
      onGate: (window, gate) => events.add(gateEvent(window, gate, events.now())),
    });

    const bound = await bindSocket(settings.socket, clock);
    const status = () =>
      serviceStatus({
        identity,
        socket: settings.socket,
        connections: () => server.connections,
        database,
        schemaVersion: () => {
          commit.checkPresence();
          return schemaVersion(db);
        },
        registry,
        queue,
        endpoints: () => windows.endpoints(),
      });
    const handle = createHandlers({
      identity,
      queue,
      attachments,
      processes,
      windows,
      events,
      isBroker,
      status,
      onStray: (broker) => adoption.brokerLeft(broker),
    });
    const server = new SocketServer({
      bound,
      path: settings.socket,
      handle,
      clock,
      log,
      orwell: this.#orwell,
    });
    const link = new CoordLink({
      settings,
      serviceId: identity.serviceId,
      endpoints: () => windows.endpoints(),
      clock,
      log,
    });
    // Taken down in the reverse order (L-03): no new request, then what is under way, then the
    // queue with its last transaction and its receipt, then what does not end by itself.
    this.#standing.push(
      { name: "cut connections", run: () => server.abandon() },
      { name: "take leave of watchers", run: () => leaveWatchers(events, server) },
      { name: "stop the queue", run: () => queue.stop() },
      { name: "stop adopting spools", run: () => adoption.stop() },
      { name: "finish requests", run: () => server.drained(settings.graceMs / 2) },
      { name: "leave the engine", run: () => link.stop() },
      { name: "close the socket", run: () => server.stop() },
    );
    await queue.start();
    await adoption.run();
    server.start();
    link.start();

    const advisory = historyAdvisory(db);
    log.info("service.ready", {
      pid: identity.pid,
      socket: settings.socket,
      service_id: identity.serviceId,
      schema: migration.to,
    });
    if (advisory !== undefined && mode === "foreground") this.#tell(advisory);
    if (mode === "detached") announce({ ready: true, pid: identity.pid, advisory });
  }

  /** The lock that keeps two services off one database (L-02). */
  async #alone(identity: ServiceIdentity): Promise<ServiceLock> {
    const { settings } = this.#options;
    const lock = await tryServiceLock(settings.stateDir);
    if (lock === undefined) throw serviceRunning(settings.stateDir, readHolder(settings.stateDir));
    try {
      lock.publish({
        pid: identity.pid,
        start: identify(identity.pid)?.start ?? "",
        socket: settings.socket,
        service_id: identity.serviceId,
        version: identity.version,
      });
    } catch (error) {
      lock.release();
      throw error;
    }
    return lock;
  }

  #tell(text: string): void {
    Deno.stderr.writeSync(new TextEncoder().encode(text + "\n"));
  }
}

/** A watcher that does not read its last events in time is cut off. */
const LEAVE_MS = 500;

async function leaveWatchers(events: EventFeed, server: SocketServer): Promise<void> {
  events.close();
  await server.ended(LEAVE_MS);
}

function logOutput(options: ServiceOptions): Disposable & { log: Log } {
  const { mode, settings, level = "info", json = false, clock = systemClock } = options;
  if (options.log !== undefined) return { log: options.log, [Symbol.dispose]() {} };
  if (mode === "foreground") {
    const encoder = new TextEncoder();
    const write = (line: string) => {
      try {
        Deno.stderr.writeSync(encoder.encode(line));
      } catch {
        // the terminal is gone; the signal about that comes by itself
      }
    };
    return { log: createLog({ clock, level, json, write }), [Symbol.dispose]() {} };
  }
  const file = openLogFile(settings.logFile);
  const log = createLog({ clock, level, json, write: file.write });
  return { log, [Symbol.dispose]: () => file.close() };
}

/** A bug that ends the process must leave a word where somebody looks: a detached one has no terminal. */
function logDeath(log: Log): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    log.error("service.crashed", { reason: errorText(event.reason) });
  });
  globalThis.addEventListener("error", (event) => {
    log.error("service.crashed", { reason: errorText(event.error) });
  });
}

function announce(value: unknown): void {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(value) + "\n"));
  } catch {
    // the parent did not wait
  }
}
