/** `tamq logs`: what service, windows, engine and hub have written down (C-05). */
import { displaySafe } from "../../base/display.ts";
import type { Level } from "../../base/log.ts";
import { loadSettings, type Settings } from "../../config.ts";
import { engineSettings } from "../../coord/settings.ts";
import { hubSettings } from "../../hub/settings.ts";
import { ensureStateDir } from "../../ipc/state_dir.ts";
import { onStopSignals } from "../../ipc/lifecycle.ts";
import { type ColorFlag, type Paint, paintFor, type Style } from "../colour.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { type LogLine, parseLogLine } from "../logs/lines.ts";
import { LogTail } from "../logs/tail.ts";
import { LEVELS, LOG_SOURCES, type LogSource } from "../parameters.ts";
import { parseTime } from "../times.ts";

export interface LogsFlags extends ColorFlag {
  readonly follow?: boolean;
  readonly level?: Level;
  readonly since?: string;
  readonly limit?: number;
  readonly json?: boolean;
}

const DEFAULT_SHOWN = 50;

const logs: Verb<LogsFlags, LogSource[]> = async function (flags, ...named) {
  const since = flags.since === undefined
    ? undefined
    : parseTime(flags.since, this.clock.now(), "--since");
  const settings = await loadSettings(this.env);
  const wanted = new Set(named.length === 0 ? LOG_SOURCES : named);
  const lowest = LEVELS.indexOf(flags.level ?? "debug");
  const accept = (line: LogLine) =>
    wanted.has(line.source) && LEVELS.indexOf(line.level) >= lowest &&
    (since === undefined || line.time >= since);
  const files = logFiles(settings, this.env).filter(({ holds }) =>
    holds.some((source) => wanted.has(source))
  );
  const paint = paintFor(this, flags.color);
  const print = (line: LogLine) => this.out(flags.json ? JSON.stringify(line) : shown(line, paint));

  using tails = new Tails(files, since === undefined ? 0 : Date.parse(since));
  // Watching begins before the first look: nothing falls between.
  using watch = flags.follow ? watchFiles(settings.stateDir, files) : undefined;
  const limit = flags.limit ??
    (flags.json || since !== undefined ? Infinity : DEFAULT_SHOWN);
  let count = 0;
  for (const line of latest(tails.read(accept), limit)) {
    print(line);
    // A long log goes out in parts, so that it is never held whole.
    if (++count % 1000 === 0) await this.flush();
  }
  if (watch === undefined) {
    if (count === 0 && !flags.json) this.err(nothing(files, named.length > 0 || lowest > 0));
    return;
  }
  await follow(this, watch, () => {
    for (const line of tails.read(accept)) print(line);
  });
};
export default logs;

interface LogFileOf {
  readonly path: string;
  readonly holds: readonly LogSource[];
}

function logFiles(settings: Settings, env: CliContext["env"]): LogFileOf[] {
  return [
    { path: settings.logFile, holds: ["service", "window"] },
    { path: engineSettings(settings).logFile, holds: ["engine"] },
    { path: hubSettings(settings, env).logFile, holds: ["hub"] },
  ];
}

function nothing(files: readonly LogFileOf[], chosen: boolean): string {
  const where = files.map(({ path }) => path).join(", ");
  return displaySafe(
    chosen
      ? `nothing of that is logged in ${where}`
      : `nothing is logged yet in ${where}; a service in the foreground logs to its own terminal`,
  );
}

/** The files together, their lines in the order of time. */
class Tails implements Disposable {
  readonly #tails: { readonly tail: LogTail; readonly source: LogSource }[];

  constructor(files: readonly LogFileOf[], since: number) {
    this.#tails = files.map(({ path, holds }) => ({
      tail: new LogTail(path, since),
      source: holds[0]!,
    }));
  }

  /** What has come since the last call. */
  *read(accept: (line: LogLine) => boolean): Generator<LogLine> {
    const parts = this.#tails.flatMap(({ tail, source }) =>
      tail.read().map((lines) => parsed(lines, source, accept))
    );
    const heads = parts.map((lines) => ({ lines, next: lines.next() }));
    for (;;) {
      let first: typeof heads[number] | undefined;
      for (const head of heads) {
        if (head.next.done) continue;
        if (first === undefined || head.next.value.time < (first.next.value as LogLine).time) {
          first = head;
        }
      }
      if (first === undefined) return;
      yield first.next.value as LogLine;
      first.next = first.lines.next();
    }
  }

  [Symbol.dispose](): void {
    for (const { tail } of this.#tails) tail[Symbol.dispose]();
  }
}

function* parsed(
  lines: Iterable<string>,
  source: LogSource,
  accept: (line: LogLine) => boolean,
): Generator<LogLine> {
  let before: LogLine | undefined;
  for (const text of lines) {
    before = parseLogLine(text, source, before);
    if (accept(before)) yield before;
  }
}

/** The last `limit` of them; all as they come when there is no limit. */
function* latest(lines: Iterable<LogLine>, limit: number): Generator<LogLine> {
  if (limit === Infinity) return yield* lines;
  const kept: LogLine[] = [];
  for (const line of lines) {
    kept.push(line);
    if (kept.length >= 2 * limit) kept.splice(0, kept.length - limit);
  }
  yield* kept.slice(-limit);
}

function watchFiles(stateDir: string, files: readonly LogFileOf[]) {
  ensureStateDir(stateDir);
  const dirs = files.map(({ path }) => path.replace(/\/[^/]*$/, ""));
  // Engine and hub may make their folders later: those are seen from above.
  const recursive = dirs.some((dir) => dir !== stateDir);
  const watcher = Deno.watchFs(stateDir, { recursive });
  return {
    watcher,
    concerns: (path: string) =>
      dirs.includes(path) || files.some((file) => path.startsWith(file.path)),
    [Symbol.dispose]: () => {
      try {
        watcher.close();
      } catch {
        // closed by the signal
      }
    },
  };
}

/** Until a signal ends it, which is no failure: whoever looks has seen enough. */
async function follow(
  context: CliContext,
  watch: ReturnType<typeof watchFiles>,
  read: () => void,
): Promise<void> {
  const restore = onStopSignals(() => watch.watcher.close(), () => {});
  try {
    read(); // what came before the watcher was asked
    await context.flush();
    for await (const event of watch.watcher) {
      if (event.kind === "access" || !event.paths.some(watch.concerns)) continue;
      read();
      await context.flush();
    }
  } finally {
    restore();
  }
}

const STYLES: Readonly<Record<Level, Style | undefined>> = {
  debug: "dim",
  info: undefined,
  warn: "yellow",
  error: "red",
};

function shown(line: LogLine, paint: Paint): string {
  const { time, level, source, event, fields } = line;
  const rest = Object.entries(fields).map(([name, value]) => {
    const text = displaySafe(value);
    return ` ${displaySafe(name)}=${
      text === "" || /[\s"]/.test(text) ? JSON.stringify(text) : text
    }`;
  });
  return `${paint("dim", displaySafe(time))} ${paint(STYLES[level], level.padEnd(5))} ` +
    `${source.padEnd(7)} ${displaySafe(event)}${rest.join("")}`;
}
