/** What both fleet processes do about their log, their lock, their signals and their end (L-02, L-03). */
import { type Clock, systemClock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { newToken } from "../base/ids.ts";
import type { Level, Log } from "../base/log.ts";
import { identify } from "../base/proc.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { logDeath, serviceLog } from "../base/service.ts";
import type { Settings } from "../config.ts";
import { refuseNetwork } from "../ipc/filesystem.ts";
import { ensureStateDir } from "../ipc/state_dir.ts";
import { onStopSignals, readHolder, runInOrder, type Step, tryServiceLock } from "../socket.ts";

export interface FleetProcessOptions {
  readonly settings: Settings;
  readonly version: string;
  /** HOST:PORT to listen on. */
  readonly listen: string;
  /** Directory of certificate, key, authority and revocation list. */
  readonly tls: string;
  readonly level?: Level;
  readonly json?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface FleetParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Of this process. */
  readonly instance: string;
  readonly stateDir: string;
  /** Ends the process from within. */
  readonly end: (why: string) => void;
  /** Taken down in the reverse order of the list. */
  readonly standing: Step[];
}

/** Where a fleet process keeps its lock and its database. */
export function fleetDir(settings: Settings, role: "dispatcher" | "agent"): string {
  return `${settings.stateDir}/fleet/${role}`;
}

/**
 * Runs a fleet process in the foreground until a signal or `end`; the caller then exits. Throws when
 * it cannot start: `fleet_running`, `fleet_credentials`, `fleet_runtime`, `address_unusable`, store
 * errors.
 */
export async function runFleetProcess(
  options: FleetProcessOptions,
  role: "dispatcher" | "agent",
  build: (parts: FleetParts) => Promise<{ port: number }>,
): Promise<void> {
  const { settings, clock = systemClock, random = systemRandom, version } = options;
  const stateDir = fleetDir(settings, role);
  ensureStateDir(settings.stateDir);
  if (!settings.allowNetworkState) refuseNetwork(settings.stateDir);
  ensureStateDir(`${settings.stateDir}/fleet`);
  ensureStateDir(stateDir);
  const logFile = `${stateDir}/${role}.log`;
  using output = serviceLog({ ...options, mode: "foreground", logFile, clock });
  const { log } = output;
  logDeath(log, "fleet.crashed");
  const asked = Promise.withResolvers<string>();
  const hurry = new AbortController();
  const ignore = onStopSignals(asked.resolve, () => hurry.abort());
  const standing: Step[] = [];
  const stop = { clock, log, graceMs: settings.graceMs };
  const instance = newToken(random);
  try {
    const lock = await alone(stateDir, role);
    standing.push({ name: "free the lock", run: () => lock.release() });
    const start = identify(Deno.pid)?.start ?? "";
    lock.publish({ pid: Deno.pid, start, socket: options.listen, service_id: instance, version });
    const end = asked.resolve;
    const { port } = await build({ clock, random, log, instance, stateDir, end, standing });
    log.info("fleet.ready", { role, pid: Deno.pid, port });
  } catch (error) {
    await runInOrder(standing.reverse(), stop);
    ignore();
    throw error;
  }
  log.info("fleet.stopping", { why: await asked.promise });
  const clean = await runInOrder(standing.reverse(), { ...stop, hurry: hurry.signal });
  log.info("fleet.stopped", { clean });
  ignore();
}

async function alone(stateDir: string, role: string) {
  const lock = await tryServiceLock(stateDir);
  if (lock !== undefined) return lock;
  const holder = readHolder(stateDir);
  throw new TamqError(
    "ALREADY_EXISTS",
    "fleet_running",
    `${stateDir}: ${role} is running already${holder ? ` (process ${holder.pid})` : ""}`,
    { hint: "end that one first, or give this one another TAMQ_STATE_DIR" },
  );
}
