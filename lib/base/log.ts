import type { Clock } from "./clock.ts";
import { rfc3339 } from "./clock.ts";
import { displaySafe } from "./display.ts";

export type Level = "debug" | "info" | "warn" | "error";
const ORDER: Record<Level, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/**
 * What may stand in a log line. There is no field type for a body, a token or terminal output,
 * and callers pass identifiers, counts and reasons only (C-05).
 */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** A levelled logger; one line an event, text or JSON (C-05). */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

export interface LogOptions {
  clock: Pick<Clock, "now">;
  level: Level;
  json: boolean;
  /** On every line, after the event's own. */
  fields?: LogFields;
  /** Receives one line with its line feed. */
  write: (line: string) => void;
}

export function createLog(options: LogOptions): Log {
  const at = (level: Level) => (event: string, own: LogFields = {}) => {
    if (ORDER[level] < ORDER[options.level]) return;
    const fields = options.fields === undefined ? own : { ...own, ...options.fields };
    const time = rfc3339(options.clock.now());
    if (options.json) {
      options.write(JSON.stringify({ time, level, event, ...fields }) + "\n");
      return;
    }
    let line = `${time} ${level.padEnd(5)} ${event}`;
    for (const [key, value] of Object.entries(fields)) {
      if (value === undefined) continue;
      const text = displaySafe(String(value));
      line += ` ${key}=${/[\s"]/.test(text) ? JSON.stringify(text) : text}`;
    }
    options.write(line + "\n");
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
