/** `tamq hub serve`: the hub in the foreground, or as what `--detach` started (K-19, C-05). */
import { type Clock, systemClock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { createLog, type Level, type Log } from "../base/log.ts";
import { openLogFile } from "../base/log_file.ts";
import { ensureStateDir } from "../ipc/state_dir.ts";
import { runHub } from "./server.ts";
import type { HubSettings } from "./settings.ts";

export interface HubServeOptions {
  readonly hub: HubSettings;
  readonly version: string;
  /**
   * `foreground` logs to standard error; `detached` to the hub's log file, and tells its parent on
   * standard output, in one JSON line, that it is ready or why it is not.
   */
  readonly mode: "foreground" | "detached";
  readonly level?: Level;
  readonly json?: boolean;
  /** Listens on this loopback port as well. */
  readonly tcpPort?: number;
  readonly clock?: Clock;
}

/** Returns after an orderly end; the caller exits by `Deno.exit`. Throws the errors of `startHub`. */
export async function serveHub(options: HubServeOptions): Promise<void> {
  const { hub, mode, version, tcpPort, clock = systemClock } = options;
  try {
    ensureStateDir(hub.stateDir);
    using output = logOutput(options, clock);
    const { log } = output;
    logDeath(log);
    await runHub({
      hub,
      version,
      tcpPort,
      log,
      clock,
      onReady: ({ port }) => {
        if (mode === "detached") announce({ ready: true, pid: Deno.pid, port });
      },
    });
  } catch (error) {
    if (mode === "detached") {
      const known = error instanceof TamqError
        ? error
        : new TamqError("UNAVAILABLE", "start_failed", errorText(error), {
          hint: `see ${hub.logFile}`,
        });
      announce({ error: known.toWire() });
    }
    throw error;
  }
}

function logOutput(options: HubServeOptions, clock: Clock): Disposable & { log: Log } {
  const { mode, hub, level = "info", json = false } = options;
  if (mode === "detached") {
    const file = openLogFile(hub.logFile);
    const log = createLog({ clock, level, json, write: file.write });
    return { log, [Symbol.dispose]: () => file.close() };
  }
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

/** A bug that ends the process must leave a word where somebody looks. */
function logDeath(log: Log): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    log.error("hub.crashed", { reason: errorText(event.reason) });
  });
  globalThis.addEventListener("error", (event) => {
    log.error("hub.crashed", { reason: errorText(event.error) });
  });
}

function announce(value: unknown): void {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(value) + "\n"));
  } catch {
    // the parent did not wait
  }
}
