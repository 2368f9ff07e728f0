/** Lines of our logs, text or JSON, read back (C-05). */
import type { Level } from "../../base/log.ts";
import { LEVELS, type LogSource } from "../parameters.ts";

export interface LogLine {
  /** RFC 3339 in UTC; empty where a line has none and nothing stands before it. */
  readonly time: string;
  readonly level: Level;
  readonly source: LogSource;
  /** What happened, e.g. `service.ready`; `unreadable` for a line that none of ours wrote. */
  readonly event: string;
  /** Everything else on the line, as text. */
  readonly fields: Readonly<Record<string, string>>;
}

/** `before` lends its time and level to a line that has none. */
export function parseLogLine(
  text: string,
  source: LogSource,
  before: LogLine | undefined,
): LogLine {
  const found = text.startsWith("{") ? fromJson(text) : fromText(text);
  if (found === undefined) {
    const { time = "", level = "info" as const } = before ?? {};
    return { time, level, source, event: "unreadable", fields: { text } };
  }
  // A broker names its window in every line.
  const ofWindow = source === "service" && found.fields.window !== undefined;
  return { ...found, source: ofWindow ? "window" : source };
}

type Parsed = Omit<LogLine, "source">;

function fromJson(text: string): Parsed | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { time, level, event, ...rest } = value as Record<string, unknown>;
  if (typeof time !== "string" || typeof event !== "string") return undefined;
  if (!LEVELS.includes(level as Level)) return undefined;
  const fields = Object.entries(rest).map(([name, one]) => [name, String(one)]);
  return { time, level: level as Level, event, fields: Object.fromEntries(fields) };
}

const LINE = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) (debug|info|warn|error) +(.+?)((?: [A-Za-z_]\w*=.*)?)$/s;
const FIELD = / ([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|\S*)/gy;

function fromText(text: string): Parsed | undefined {
  const match = LINE.exec(text);
  if (match === null) return undefined;
  const [, time, level, event, rest] = match;
  const fields: Record<string, string> = {};
  for (const [, name, value] of rest!.matchAll(FIELD)) fields[name!] = unquoted(value!);
  return { time: time!, level: level as Level, event: event!, fields };
}

function unquoted(value: string): string {
  if (!value.startsWith('"')) return value;
  try {
    return String(JSON.parse(value));
  } catch {
    return value;
  }
}
