/**
 * The asciicast v2 format of recordings (B-15): a header line, then one event a line. Pure text in,
 * pure text out; what stands here is what asciinema reads.
 */

/** What a header of ours says: nothing of the environment but TERM and SHELL. */
export interface CastHeader {
  readonly width: number;
  readonly height: number;
  /** Seconds since the epoch. */
  readonly timestamp?: number;
  readonly title?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** `o` output, `i` input, `r` resize to `COLSxROWS`, `m` marker. */
export type CastCode = "o" | "i" | "r" | "m";

export interface CastEvent {
  /** Seconds since the recording began; never less than the event before. */
  readonly time: number;
  /** Other letters are kept: readers pass over what they do not know. */
  readonly code: string;
  readonly data: string;
}

export function headerLine(header: CastHeader): string {
  return JSON.stringify({ version: 2, ...header }) + "\n";
}

/** @param seconds since the recording began; written with microseconds. */
export function eventLine(seconds: number, code: CastCode, data: string): string {
  return `[${seconds.toFixed(6)}, "${code}", ${JSON.stringify(data)}]\n`;
}

/** Throws an `Error` that says what is wrong with the line. */
export function parseHeader(line: string): CastHeader {
  const value = json(line);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error("the header is no JSON object");
  }
  const { version, width, height, timestamp, title, env } = value as Record<string, unknown>;
  if (version !== 2) throw new Error("the header is not of asciicast version 2");
  if (!isSize(width) || !isSize(height)) throw new Error("the header has no width and height");
  if (timestamp !== undefined && !isTime(timestamp)) throw new Error("the timestamp is no time");
  if (title !== undefined && typeof title !== "string") throw new Error("the title is no text");
  if (env !== undefined && !isTexts(env)) throw new Error("env holds something other than texts");
  return {
    width,
    height,
    ...(timestamp === undefined ? {} : { timestamp }),
    ...(title === undefined ? {} : { title }),
    ...(env === undefined ? {} : { env }),
  };
}

/** Throws an `Error` that says what is wrong; `after` is the time of the event before. */
export function parseEvent(line: string, after = 0): CastEvent {
  const value = json(line);
  if (!Array.isArray(value) || value.length !== 3) throw new Error("no event of three parts");
  const [time, code, data] = value as unknown[];
  if (!isTime(time)) throw new Error("the event has no time");
  if (time < after) throw new Error("the event is earlier than the one before");
  if (typeof code !== "string" || code.length !== 1) throw new Error("the event has no code");
  if (typeof data !== "string") throw new Error("the event has no text");
  if (code === "r" && parseSize(data) === undefined) throw new Error("no size like 80x24");
  return { time, code, data };
}

export function parseSize(data: string): { columns: number; rows: number } | undefined {
  const match = /^(\d{1,5})x(\d{1,5})$/.exec(data);
  return match ? { columns: Number(match[1]), rows: Number(match[2]) } : undefined;
}

function json(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error("no JSON");
  }
}

function isSize(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 100_000;
}
function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
function isTexts(value: unknown): value is Record<string, string> {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.values(value).every((one) => typeof one === "string");
}
