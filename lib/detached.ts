/** Starting services in sessions of their own, and ending them: message service, hub, engine (L-01, L-02). */
import { type Clock, pause, systemClock, within } from "./base/clock.ts";
import { TamqError, type WireError } from "./base/errors.ts";
import { isAlive, type ProcessIdentity } from "./base/proc.ts";
import { tryLockFile } from "./ipc/lock.ts";
import { ensureStateDir } from "./ipc/state_dir.ts";

/** What a detached child says on standard output, once: that it is ready, or why it is not. */
export interface Ready {
  readonly ready: true;
  readonly pid: number;
  readonly advisory?: string;
}
type Announcement = Ready | { readonly error: WireError };

export interface Launch {
  /** As messages call it, e.g. `service`. */
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** The command that runs it in the foreground. */
  readonly foreground: string;
}

/**
 * Throws the child's own error; `start_failed` when it died without a word; `start_timeout` when it
 * was not ready at `end` and was ended for that: nobody waits for it any more, and one that comes up
 * later would undo a stop.
 */
export async function launchDetached(launch: Launch, clock: Clock, end: number): Promise<Ready> {
  const [program, ...args] = launch.argv;
  const child = new Deno.Command(program!, {
    args,
    env: { ...launch.env },
    cwd: "/", // keeps no file system busy
    stdin: "null",
    stdout: "piped",
    stderr: "null",
    detached: true, // a session of its own: no terminal's hang-up or ^C reaches it
  }).spawn();
  child.unref();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let line: string | undefined;
  try {
    const left = Math.max(0, end - clock.monotonic());
    line = await within<string | undefined>(clock, left, firstLine(reader), () => undefined);
    if (line === undefined) await endChild(child, clock);
  } finally {
    await reader.cancel();
  }
  if (line === undefined) {
    throw new TamqError(
      "UNAVAILABLE",
      "start_timeout",
      `the ${launch.name} was not ready in time and was ended`,
      {
        hint: `try again; if that does not help, run it in the foreground: ${launch.foreground} ` +
          `(log: ${launch.logFile})`,
      },
    );
  }
  const said = parseAnnouncement(line);
  // One that failed takes down what it had built; whoever hears of it finds nothing of it left.
  if (said === undefined || "error" in said) await ended(child, clock);
  if (said === undefined) {
    throw new TamqError(
      "UNAVAILABLE",
      "start_failed",
      `the ${launch.name} ended before it was ready`,
      {
        hint: `run it in the foreground to see why: ${launch.foreground} (log: ${launch.logFile})`,
      },
    );
  }
  if ("error" in said) throw TamqError.fromWire(said.error);
  return said;
}

async function firstLine(reader: ReadableStreamDefaultReader<string>): Promise<string> {
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  return text.split("\n")[0]!;
}

/** How long a child may take to end by itself: a migration's transaction, at most. */
const CHILD_GRACE_MS = 2000;

/** True when the child has ended within the time that it may take. */
function ended(child: Deno.ChildProcess, clock: Clock): Promise<boolean> {
  return within(clock, CHILD_GRACE_MS, child.status.then(() => true), () => false);
}

/** Ends the child, by force when it does not obey; waits until it is gone. */
async function endChild(child: Deno.ChildProcess, clock: Clock): Promise<void> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    try {
      child.kill(signal);
    } catch {
      // it has ended by itself
    }
    if (await ended(child, clock)) return;
  }
}

function parseAnnouncement(line: string): Announcement | undefined {
  try {
    const value = JSON.parse(line);
    if (value?.ready === true || typeof value?.error?.code === "string") return value;
  } catch {
    // not ours
  }
  return undefined;
}

export function startTimeout(name: string, logFile: string, pid?: number): TamqError {
  return new TamqError(
    "UNAVAILABLE",
    "start_timeout",
    pid === undefined
      ? `the ${name} was not ready in time`
      : `the ${name} (process ${pid}) was not ready in time`,
    { hint: `see ${logFile}; end one that hangs with its stop command` },
  );
}

export interface StartOnce {
  readonly stateDir: string;
  readonly launch: Launch;
  /** The reason with which a second one refuses to start, e.g. `hub_running`. */
  readonly runningReason: string;
  /** The pid of the one that runs; undefined when none does. */
  readonly running: () => Promise<number | undefined>;
  readonly clock?: Clock;
  /** For everything, milliseconds. */
  readonly timeoutMs?: number;
}

/** A first start also fills the caches of the runtime; 10 s were too short for one once. */
export const START_MS = 30_000;

/** Makes sure that one runs; however many do this at once, one results (L-02). */
export async function startOnce(
  options: StartOnce,
): Promise<{ started: boolean; pid: number; advisory?: string }> {
  const clock = options.clock ?? systemClock;
  const end = clock.monotonic() + (options.timeoutMs ?? START_MS);
  const { stateDir, launch, runningReason, running } = options;
  ensureStateDir(stateDir);
  for (;;) {
    const pid = await running();
    if (pid !== undefined) return { started: false, pid };
    const lock = await tryLockFile(`${stateDir}/start.lock`);
    if (lock !== undefined) {
      try {
        // Whoever had the start lock before us may have started it since we looked.
        const now = await running();
        if (now !== undefined) return { started: false, pid: now };
        const ready = await launchDetached(launch, clock, end);
        return { started: true, pid: ready.pid, advisory: ready.advisory };
      } catch (error) {
        // Started in a foreground meanwhile, or the one before is still stopping.
        if (!(error instanceof TamqError) || error.reason !== runningReason) throw error;
      } finally {
        lock.close();
      }
    }
    if (clock.monotonic() >= end) throw startTimeout(launch.name, launch.logFile);
    await pause(clock, 25);
  }
}

/** How long one may take beyond its own grace period to be gone. */
const STOP_MARGIN_MS = 2000;

/** Asks that process to end and waits until it is gone. Throws `stop_timeout`. */
export async function endProcess(
  process: ProcessIdentity,
  options: { name: string; graceMs: number; safe: string; clock?: Clock },
): Promise<void> {
  const clock = options.clock ?? systemClock;
  try {
    Deno.kill(process.pid, "SIGTERM");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  // The kernel frees lock and socket with the process: when it is gone, both are free.
  const end = clock.monotonic() + options.graceMs + STOP_MARGIN_MS;
  while (isAlive(process)) {
    if (clock.monotonic() >= end) {
      throw new TamqError(
        "DEADLINE_EXCEEDED",
        "stop_timeout",
        `the ${options.name} (process ${process.pid}) did not end within its grace period`,
        { hint: `end it by force: kill -9 ${process.pid}; ${options.safe}` },
      );
    }
    await pause(clock, 10);
  }
}
