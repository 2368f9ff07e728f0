/** Starting and stopping the message service from other processes (L-01, L-02, E-05). */
import { type Clock, pause, systemClock } from "./base/clock.ts";
import { TamqError } from "./base/errors.ts";
import { identify, isAlive, listensAt, type ProcessIdentity } from "./base/proc.ts";
import { selfCommand } from "./base/self.ts";
import { call, findSocket } from "./client.ts";
import type { Settings } from "./config.ts";
import { endProcess, launchDetached, START_MS, startTimeout } from "./detached.ts";
import { refuseNetwork } from "./ipc/filesystem.ts";
import { type Holder, serviceRunning, tryLockFile } from "./ipc/lock.ts";
import { ensureStateDir } from "./ipc/state_dir.ts";
import { liveHolder, readHolder } from "./socket.ts";

export interface Started {
  /** False when one was running already. */
  readonly started: boolean;
  readonly pid: number;
  /** What the service wants its operator to know. */
  readonly advisory?: string;
}

export interface StartOptions {
  readonly clock?: Clock;
  /** For everything, milliseconds. */
  readonly timeoutMs?: number;
  /** Further options of `tamq serve`. */
  readonly options?: readonly string[];
  /** The argument vector of the service; for tests. */
  readonly command?: readonly string[];
  /** Further variables for it. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Without it the runtime lets a service that has been busy once keep 100 MB more for young objects
 * (162 MB resident after 10,000 requests against 81 MB, at the same rate).
 */
export const SERVICE_V8_FLAGS = "--optimize-for-size";

const PING_MS = 2000;

/**
 * Makes sure that a service runs, in a session of its own. However many do this at once, one service
 * results. Throws the service's own start-up error; `start_failed` when it died without a word;
 * `start_timeout`; `service_running` when one serves this database elsewhere than at the explicit
 * socket; `socket_lost` when one lives that nobody can reach any more.
 */
export async function startDetached(
  settings: Settings,
  options: StartOptions = {},
): Promise<Started> {
  const clock = options.clock ?? systemClock;
  const end = clock.monotonic() + (options.timeoutMs ?? START_MS);
  if (!settings.allowNetworkState) refuseNetwork(settings.stateDir);
  ensureStateDir(settings.stateDir);
  for (;;) {
    const running = await pingPid(findSocket(settings), clock);
    if (running !== undefined) return { started: false, pid: running };
    const started = await startAlone(settings, options, clock, end);
    if (started !== undefined) return started;
    if (clock.monotonic() >= end) {
      throw startTimeout("service", settings.logFile, liveHolder(settings.stateDir)?.pid);
    }
    await pause(clock, 25);
  }
}

/**
 * Starts a service again that crashed; leaves alone one that runs and one that was stopped. For
 * brokers (E-05). True when a service was started.
 */
export async function restartCrashed(
  settings: Settings,
  options: StartOptions = {},
): Promise<boolean> {
  // A service that stops in order empties the lock file; one that was killed leaves its name there.
  const last = readHolder(settings.stateDir);
  if (last === undefined || isAlive(last)) return false;
  return (await startDetached(settings, options)).started;
}

/** Undefined when somebody else is at it. */
async function startAlone(
  settings: Settings,
  options: StartOptions,
  clock: Clock,
  end: number,
): Promise<Started | undefined> {
  const lock = await tryLockFile(`${settings.stateDir}/start.lock`);
  if (lock === undefined) return undefined;
  try {
    // Whoever had the start lock before us may have started it since we looked.
    const running = await pingPid(findSocket(settings), clock);
    if (running !== undefined) return { started: false, pid: running };
    const holder = liveHolder(settings.stateDir);
    if (holder === undefined) return await launchUnlessBeaten(settings, options, clock, end);
    // It is starting, stopping or stuck. A child would find the lock taken; or, worse, take it just
    // when the holder was stopped and nobody wants a service any more.
    await refuseVain(settings, holder, clock);
    return undefined;
  } finally {
    lock.close();
  }
}

/** Undefined when another one took the lock meanwhile: started in a foreground, most likely. */
async function launchUnlessBeaten(
  ...options: Parameters<typeof launch>
): Promise<Started | undefined> {
  try {
    return await launch(...options);
  } catch (error) {
    if (error instanceof TamqError && error.reason === "service_running") return undefined;
    throw error;
  }
}

/** Throws where it is in vain to wait until the live holder of the lock answers, or is gone. */
async function refuseVain(settings: Settings, holder: Holder, clock: Clock): Promise<void> {
  const elsewhere = settings.socketExplicit && holder.socket !== settings.socket;
  if (elsewhere && await pingPid(holder.socket, clock) !== undefined) {
    throw serviceRunning(settings.stateDir, holder);
  }
  // Twice, since one that closes its socket in order passes through that state.
  if (!socketLost(holder)) return;
  await pause(clock, 100);
  if (!socketLost(holder) || !isAlive(holder)) return;
  throw new TamqError(
    "UNAVAILABLE",
    "socket_lost",
    `the service (process ${holder.pid}) holds ${settings.stateDir} and should be reached on ` +
      `${holder.socket}, but its socket file is gone`,
    { hint: "start it anew, the queue stays: tamq stop; tamq serve --detach" },
  );
}

/** True when that process listens, but on a file that is no longer there. */
function socketLost(holder: Holder): boolean {
  try {
    Deno.lstatSync(holder.socket);
    return false;
  } catch (error) {
    return error instanceof Deno.errors.NotFound && listensAt(holder.socket);
  }
}

/** The pid of the service that answers at `socket`; undefined when none does. */
async function pingPid(socket: string, clock: Clock): Promise<number | undefined> {
  try {
    return (await call(socket, "ping", {}, { clock, timeoutMs: PING_MS })).pid;
  } catch (error) {
    const absent = error instanceof TamqError &&
      (error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED");
    if (absent) return undefined;
    throw error;
  }
}

async function launch(
  settings: Settings,
  options: StartOptions,
  clock: Clock,
  end: number,
): Promise<Started> {
  const { pid, advisory } = await launchDetached(
    {
      name: "service",
      argv: options.command ?? selfCommand([
        "serve",
        "--detached-child",
        ...options.options ?? [],
      ]),
      // The child must see the very paths that we looked at, whatever flags gave them to us.
      env: {
        DENO_V8_FLAGS: Deno.env.get("DENO_V8_FLAGS") ?? SERVICE_V8_FLAGS,
        ...options.env,
        TAMQ_STATE_DIR: settings.stateDir,
        TAMQ_SOCKET: settings.socket,
        ...(settings.configured ? { TAMQ_CONFIG: settings.configFile } : {}),
      },
      logFile: settings.logFile,
      foreground: "tamq serve",
    },
    clock,
    end,
  );
  return { started: true, pid, ...(advisory === undefined ? {} : { advisory }) };
}

/**
 * Asks the service of this state directory to end and waits until it is gone; terminals and queue
 * stay. `stopped` is false when none ran. Throws `stop_timeout` after the grace period.
 */
export async function stopService(
  settings: Settings,
  options: { clock?: Clock } = {},
): Promise<{ stopped: boolean; pid?: number }> {
  const clock = options.clock ?? systemClock;
  const service = await runningService(settings, clock);
  if (service === undefined) return { stopped: false };
  await endProcess(service, {
    name: "service",
    graceMs: settings.graceMs,
    safe: "acknowledged messages survive that",
    clock,
  });
  return { stopped: true, pid: service.pid };
}

/** By the lock file, verified by start time; by asking the socket where that file says nothing. */
async function runningService(
  settings: Settings,
  clock: Clock,
): Promise<ProcessIdentity | undefined> {
  const holder = liveHolder(settings.stateDir);
  if (holder !== undefined) return { pid: holder.pid, start: holder.start };
  if (readHolder(settings.stateDir) !== undefined) return undefined; // it crashed
  const pid = await pingPid(settings.socket, clock);
  return pid === undefined ? undefined : identify(pid);
}
