/** What every service process does about its log and about whoever started it (C-05, L-01). */
import type { Clock } from "./clock.ts";
import { errorText, TamqError } from "./errors.ts";
import { createLog, type Level, type Log } from "./log.ts";
import { openLogFile } from "./log_file.ts";

export interface ServiceLogOptions {
  /**
   * `foreground` logs to standard error; `detached` to the log file, and tells its parent on
   * standard output, in one JSON line, that it is ready or why it is not.
   */
  readonly mode: "foreground" | "detached";
  readonly logFile: string;
  readonly level?: Level;
  readonly json?: boolean;
  readonly clock: Clock;
}

/** The log of a service; disposing closes its file. */
export function serviceLog(options: ServiceLogOptions): Disposable & { readonly log: Log } {
  const { mode, logFile, level = "info", json = false, clock } = options;
  if (mode === "detached") {
    const file = openLogFile(logFile);
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
export function logDeath(log: Log, event: string): void {
  globalThis.addEventListener("unhandledrejection", ({ reason }) => {
    log.error(event, { reason: errorText(reason) });
  });
  globalThis.addEventListener("error", ({ error }) => {
    log.error(event, { reason: errorText(error) });
  });
}

/** The one line that a detached child says to its parent. */
export function announce(value: unknown): void {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(value) + "\n"));
  } catch {
    // the parent did not wait
  }
}

/** Why a detached child could not start, in the form of {@link announce}. */
export function announceFailure(error: unknown, logFile: string): void {
  const known = error instanceof TamqError
    ? error
    : new TamqError("UNAVAILABLE", "start_failed", errorText(error), { hint: `see ${logFile}` });
  announce({ error: known.toWire() });
}
