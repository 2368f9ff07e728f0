/** Recordings of windows as files: found, read and checked line by line, removed (B-15). */
import { errorText, TamqError } from "./base/errors.ts";
import {
  type CastEvent,
  type CastHeader,
  eventLine,
  headerLine,
  parseEvent,
  parseHeader,
} from "./model/asciicast.ts";

const CAST = ".cast";
/** A line of ours holds at most one read of 64 KiB, each byte of it at most six characters. */
const MAX_LINE = 1 << 20;
const CHUNK = 64 * 1024;

export interface RecordingInfo {
  /** The file's name without its ending. */
  readonly id: string;
  readonly path: string;
  readonly repo: string;
  /** Milliseconds since the epoch. */
  readonly started: number;
  /** Of the last event; null when nothing was shown. */
  readonly seconds: number | null;
  readonly bytes: number;
  /** It is still being written. */
  readonly active: boolean;
}

/** The oldest first; files that are no recordings are left out. */
export async function listRecordings(dir: string): Promise<RecordingInfo[]> {
  let names: string[];
  try {
    names = [...Deno.readDirSync(dir)].map(({ name }) => name).filter((name) =>
      name.endsWith(CAST)
    );
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
  const found: RecordingInfo[] = [];
  for (const name of names.sort()) {
    const info = await describe(`${dir}/${name}`, name.slice(0, -CAST.length));
    if (info !== undefined) found.push(info);
  }
  return found;
}

async function describe(path: string, id: string): Promise<RecordingInfo | undefined> {
  try {
    if (!Deno.lstatSync(path).isFile) return undefined;
    using file = Deno.openSync(path, { read: true });
    const bytes = file.statSync().size;
    const lines = readLines(file);
    const header = parseHeader((await lines.next()).value ?? "");
    const started = (header.timestamp ?? 0) * 1000;
    const [seconds, active] = [lastTime(file, bytes), !file.tryLockSync(false)];
    return { id, path, repo: header.title ?? "", started, seconds, bytes, active };
  } catch {
    return undefined;
  }
}

/** Time of the last whole event near the end. */
function lastTime(file: Deno.FsFile, bytes: number): number | null {
  const tail = new Uint8Array(Math.min(bytes, MAX_LINE));
  file.seekSync(bytes - tail.length, Deno.SeekMode.Start);
  let length = 0;
  for (let n; length < tail.length && (n = file.readSync(tail.subarray(length))) !== null;) {
    length += n;
  }
  const lines = new TextDecoder().decode(tail.subarray(0, length)).split("\n");
  for (const line of lines.reverse()) {
    try {
      return parseEvent(line).time;
    } catch { /* a line cut short, the empty end, the header */ }
  }
  return null;
}

/**
 * The recording whose id is or begins with `id`, or the newest of the repository `id`. Throws
 * `recording_unknown` and `recording_ambiguous`.
 */
export async function findRecording(dir: string, id: string): Promise<RecordingInfo> {
  const all = await listRecordings(dir);
  const exact = all.find((one) => one.id === id);
  const newest = all.findLast((one) => one.repo === id);
  const like = all.filter((one) => one.id.startsWith(id));
  const found = exact ?? newest ?? (like.length === 1 ? like[0] : undefined);
  if (found !== undefined) return found;
  if (like.length > 1) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "recording_ambiguous",
      `${like.length} recordings begin with "${id}"`,
      { hint: "write more of the id: tamq record list" },
    );
  }
  throw new TamqError("NOT_FOUND", "recording_unknown", `there is no recording "${id}"`, {
    hint: "see which there are: tamq record list",
  });
}

/** A recording being read: its header, then its events. */
export interface Cast {
  readonly header: CastHeader;
  readonly events: AsyncIterable<CastEvent>;
}

/**
 * Reads and checks. Throws `recording_invalid` with file and line number, from here or from the
 * events. A last line without its end is left out: its writer was killed, or is writing it.
 */
export async function readCast(path: string): Promise<Cast> {
  const header = await firstOf(checkedLines(path, parseHeader));
  return { header, events: eventsOf(path) };
}

async function firstOf<T>(values: AsyncGenerator<T>): Promise<T> {
  for await (const value of values) return value;
  throw new Error("never empty: the first line is parsed whatever it is");
}

async function* eventsOf(path: string): AsyncGenerator<CastEvent> {
  let after: number | undefined;
  const parse = (line: string) => after === undefined ? undefined : parseEvent(line, after);
  for await (const event of checkedLines(path, parse)) {
    if (event !== undefined) yield event;
    after = event?.time ?? 0;
  }
}

/** Each line as `parse` has it; the file is open only while it is gone through. */
async function* checkedLines<T>(path: string, parse: (line: string) => T): AsyncGenerator<T> {
  let number = 0;
  try {
    using file = await Deno.open(path);
    for await (const line of readLines(file)) {
      number++;
      yield parse(line);
    }
    if (number === 0) parse("");
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) {
      throw new TamqError("NOT_FOUND", "file_unreadable", `there is no file ${path}`, {
        hint: "check the path",
        cause,
      });
    }
    throw invalid(path, Math.max(1, number), errorText(cause));
  }
}

function invalid(path: string, line: number, why: string): TamqError {
  return new TamqError(
    "INVALID_ARGUMENT",
    "recording_invalid",
    `${path}, line ${line}: ${why}`,
    { hint: "it is no asciicast of version 2, or was changed since" },
  );
}

/** Whole lines without their ends; throws for bytes that are no UTF-8 and for lines without end. */
async function* readLines(file: Deno.FsFile): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const chunk = new Uint8Array(CHUNK);
  let text = "";
  for (let n; (n = await file.read(chunk)) !== null;) {
    text += decoder.decode(chunk.subarray(0, n), { stream: true });
    const parts = text.split("\n");
    text = parts.pop()!;
    if (text.length > MAX_LINE) throw new Error("a line is too long");
    yield* parts;
  }
}

/** The recording anew, checked, line by line. */
export async function* castLines(cast: Cast): AsyncGenerator<string> {
  yield headerLine(cast.header);
  for await (const { time, code, data } of cast.events) {
    yield eventLine(time, code as Parameters<typeof eventLine>[1], data);
  }
}
