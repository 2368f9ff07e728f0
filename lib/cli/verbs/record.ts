/** `tamq record list|play|export|remove` (B-15): recordings are files, no service is needed. */
import { pause, rfc3339 } from "../../base/clock.ts";
import { displaySafe } from "../../base/display.ts";
import { TamqError } from "../../base/errors.ts";
import { loadSettings } from "../../config.ts";
import {
  castLines,
  findRecording,
  listRecordings,
  readCast,
  type RecordingInfo,
} from "../../recordings.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../errors.ts";
import { PlayFilter } from "../played.ts";
import { lookOf, table } from "../layout.ts";
import { relativeTime } from "../render.ts";
import { megabytes } from "../sizes.ts";
import type { JsonFlag } from "./service.ts";

export interface PlayFlags {
  readonly speed?: number;
  readonly idle?: number;
}
export interface ExportCastFlags {
  readonly format: "cast" | "raw";
}
export interface RemoveFlags {
  readonly all?: boolean;
  readonly yes?: boolean;
}

const dirOf = async (context: CliContext) => (await loadSettings(context.env)).recordingsDir;

/** For completion. */
export const recordings = async (context: CliContext) => await listRecordings(await dirOf(context));

export const list: Verb<JsonFlag> = async function ({ json }) {
  const found = await listRecordings(await dirOf(this));
  if (json) {
    for (const { id, repo, path, started, seconds, bytes, active } of found) {
      const started_at = rfc3339(started);
      this.out(JSON.stringify({ id, repo, path, started_at, seconds, bytes, active }));
    }
    return;
  }
  if (found.length === 0) {
    return this.err("nothing is recorded; windows are, when asked: tamq start --record ...");
  }
  this.out(table(
    [
      ["RECORDING", "REPOSITORY", "STARTED", "LENGTH", "SIZE", ""],
      ...found.map((one) => [
        one.id,
        one.repo,
        relativeTime(rfc3339(one.started), this.clock.now()),
        lengthText(one.seconds ?? 0),
        megabytes(one.bytes),
        one.active ? "being recorded" : "",
      ]),
    ],
    lookOf(this),
    { header: true },
  ));
};

function lengthText(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(whole % 60)}`
    : `${minutes}:${two(whole % 60)}`;
}

/** An id, a repository, or a file anywhere. */
async function pathOf(context: CliContext, name: string): Promise<string> {
  return name.includes("/") ? name : (await findRecording(await dirOf(context), name)).path;
}

export const play: Verb<PlayFlags, [string]> = async function ({ speed = 1, idle }, name) {
  const { header, events } = await readCast(await pathOf(this, name));
  const live = this.stdoutIsTerminal();
  const keys = live && this.stdinIsTerminal() ? new Keys() : undefined;
  const filter = new PlayFilter();
  try {
    if (live) noteSize(this, header);
    let shown = 0; // recorded seconds that were waited for
    let due = this.clock.monotonic();
    for await (const { time, code, data } of events) {
      if (live) {
        due += Math.min(time - shown, idle ?? Infinity) * 1000 / speed;
        shown = time;
        // Written in one go as long as the next event is not yet due.
        if (due > this.clock.monotonic()) {
          await this.flush();
          due += await waitUntil(this, due, keys);
        }
        if (keys?.ended) break;
      }
      if (code === "o") this.process.stdout.write(filter.feed(data));
      if (!live) await this.flush();
    }
  } finally {
    if (live) this.process.stdout.write(filter.restore());
    await this.flush();
    keys?.close();
  }
};

function noteSize(context: CliContext, { width, height }: { width: number; height: number }): void {
  let here: { columns: number; rows: number };
  try {
    here = Deno.consoleSize();
  } catch {
    return;
  }
  if (here.columns >= width && here.rows >= height) return;
  context.err(
    `tamq: recorded at ${width}x${height}; this terminal has ${here.columns}x${here.rows}`,
  );
}

/** Milliseconds by which everything that follows is later: the time of pauses. */
async function waitUntil(context: CliContext, due: number, keys?: Keys): Promise<number> {
  const { clock } = context;
  let paused = 0;
  for (;;) {
    const now = clock.monotonic();
    if (keys?.ended) return paused;
    if (keys?.paused) {
      await keys.next();
      paused += clock.monotonic() - now;
      continue;
    }
    const left = due + paused - now;
    if (left <= 0) return paused;
    const stop = new AbortController();
    await Promise.race([pause(clock, left, stop.signal), ...keys ? [keys.next()] : []]);
    stop.abort();
  }
}

/** The keys of the player; whatever else is typed, and answers of the terminal, is dropped. */
class Keys {
  paused = false;
  ended = false;
  #changed = Promise.withResolvers<void>();
  readonly #reader = Deno.stdin.readable.getReader();

  constructor() {
    Deno.stdin.setRaw(true);
    void this.#read();
  }

  next(): Promise<void> {
    return this.#changed.promise;
  }

  async #read(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read().catch(() => ({
        done: true,
        value: undefined,
      }));
      const text = new TextDecoder().decode(value);
      // Keys come one by one; sequences are answers or function keys.
      if (text === " ") this.paused = !this.paused;
      if (done || text === "q" || text.includes("\x03")) this.ended = true;
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
      if (this.ended) return;
    }
  }

  close(): void {
    this.ended = true;
    Deno.stdin.setRaw(false);
    void this.#reader.cancel().catch(() => {});
  }
}

export const exportCast: Verb<ExportCastFlags, [string, string?]> = async function (
  { format },
  name,
  target = "-",
) {
  const path = await pathOf(this, name);
  const cast = await readCast(path);
  const parts = format === "cast" ? castLines(cast) : shownText(cast);
  if (target === "-") {
    for await (const part of parts) {
      this.process.stdout.write(part);
      await this.flush();
    }
    return;
  }
  using file = createFile(target);
  const encoder = new TextEncoder();
  for await (const part of parts) {
    const bytes = encoder.encode(part);
    for (let done = 0; done < bytes.length;) done += file.writeSync(bytes.subarray(done));
  }
  this.err(`exported ${path} to ${target}`);
};

async function* shownText(cast: Awaited<ReturnType<typeof readCast>>): AsyncGenerator<string> {
  for await (const { code, data } of cast.events) if (code === "o") yield data;
}

function createFile(path: string): Deno.FsFile {
  try {
    return Deno.openSync(path, { createNew: true, write: true, mode: 0o600 });
  } catch (cause) {
    if (!(cause instanceof Deno.errors.AlreadyExists)) throw cause;
    throw new TamqError("ALREADY_EXISTS", "file_exists", `${path} is there already`, {
      hint: "choose another name, or remove it first",
      cause,
    });
  }
}

export const remove: Verb<RemoveFlags, string[]> = async function (flags, ...names) {
  const dir = await dirOf(this);
  if ((flags.all === true) === (names.length > 0)) {
    throw usageError("which recordings?", "name some, or give --all alone: tamq record list");
  }
  const chosen: RecordingInfo[] = [];
  if (flags.all) chosen.push(...(await listRecordings(dir)).filter((one) => !one.active));
  for (const name of names) {
    const found = await findRecording(dir, name);
    if (found.active) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "recording_active",
        `${found.id} is being recorded`,
        { hint: `end the command in the window of ${displaySafe(found.repo)} first` },
      );
    }
    if (!chosen.some(({ id }) => id === found.id)) chosen.push(found);
  }
  if (chosen.length === 0) return this.out("there is nothing to remove");
  const bytes = chosen.reduce((sum, one) => sum + one.bytes, 0);
  if (flags.all && !flags.yes) {
    if (!this.stdinIsTerminal()) {
      throw usageError("--all removes every recording", "add --yes where nobody can be asked");
    }
    const many = `${chosen.length} recordings (${megabytes(bytes)})`;
    if (await this.ask(`Remove ${many}? Type yes: `) !== "yes") {
      return this.out("nothing was removed");
    }
  }
  for (const { id, path } of chosen) {
    Deno.removeSync(path);
    this.out(id);
  }
};
