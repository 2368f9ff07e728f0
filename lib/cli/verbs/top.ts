/**
 * `tamq top`: a live view on the whole screen. Fed by events: the service is asked again only after
 * something has happened, and at most twice a second.
 */
import { pause } from "../../base/clock.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import { findSocket } from "../../client.ts";
import { loadSettings, type Settings } from "../../config.ts";
import { onStopSignals } from "../../socket.ts";
import { type ColorFlag, paintFor, plain } from "../colour.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { serviceEvents } from "../service_events.ts";
import { frame, SECTIONS, type View } from "../top/frame.ts";
import { readSnapshot, type Snapshot } from "../top/snapshot.ts";
import { FullScreen, type Key, keysOf } from "../top/terminal.ts";

export interface TopFlags extends ColorFlag {
  readonly texts?: boolean;
}

/** Between two readings; a burst of events costs one. */
const REFRESH_MS = 500;
/** Ages on the screen go on. */
const TICK_MS = 1000;

const top: Verb<TopFlags> = async function (flags) {
  if (!this.stdinIsTerminal() || !this.stdoutIsTerminal() || this.env("TERM") === "dumb") {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "no_terminal",
      "tamq top needs a terminal for input and output",
      { hint: "for pipes and programs: tamq status, tamq watch (both with --json)" },
    );
  }
  const settings = await loadSettings(this.env);
  await new Top(this, settings, flags).run();
};
export default top;

class Top {
  readonly #context: CliContext;
  readonly #settings: Settings;
  readonly #colour: boolean;
  readonly #end = new AbortController();
  readonly #view: View;
  #screen: FullScreen | undefined;
  #snapshot: Snapshot | undefined;
  /** Aborted when something has happened since the last reading. */
  #news = new AbortController();

  constructor(context: CliContext, settings: Settings, flags: TopFlags) {
    this.#context = context;
    this.#settings = settings;
    this.#colour = paintFor(context, flags.color) !== plain;
    this.#view = {
      section: "all",
      help: false,
      texts: flags.texts === true,
      scroll: 0,
      connected: true,
      trouble: null,
    };
  }

  async run(): Promise<void> {
    const stop = () => this.#end.abort();
    const restore = onStopSignals(stop, () => {});
    const paint = () => this.#paint();
    Deno.addSignalListener("SIGQUIT", stop);
    Deno.addSignalListener("SIGWINCH", paint);
    try {
      await this.#follow();
    } finally {
      stop();
      this.#screen?.[Symbol.dispose]();
      Deno.removeSignalListener("SIGWINCH", paint);
      Deno.removeSignalListener("SIGQUIT", stop);
      restore();
    }
  }

  /** The screen is taken once the service has answered: before, a failure is told as always. */
  async #follow(): Promise<void> {
    const { clock } = this.#context;
    const { signal } = this.#end;
    let others: Promise<unknown> = Promise.resolve();
    try {
      for await (const event of serviceEvents({ settings: this.#settings, clock, signal })) {
        if (this.#screen === undefined) {
          this.#screen = new FullScreen(this.#colour);
          others = Promise.all([this.#refresh(), this.#tick(), this.#keys()]);
          // A failure of any of them ends the view.
          others.catch(() => this.#end.abort());
        }
        if (event.type === "connection") {
          this.#view.connected = event.change !== "lost";
          this.#paint();
        }
        this.#news.abort();
      }
    } finally {
      this.#end.abort();
      this.#news.abort();
    }
    await others;
  }

  async #refresh(): Promise<void> {
    const { clock } = this.#context;
    const { signal } = this.#end;
    while (!signal.aborted) {
      this.#news = new AbortController();
      try {
        this.#snapshot = await readSnapshot(findSocket(this.#settings), { clock, signal });
        this.#view.trouble = null;
      } catch (error) {
        if (signal.aborted) return;
        // The service may be on its way out; the stream of events will say so.
        this.#view.trouble = errorText(error);
      }
      this.#paint();
      await pause(clock, REFRESH_MS, signal);
      const { signal: news } = this.#news;
      if (!news.aborted && !signal.aborted) {
        await new Promise<void>((resolve) =>
          news.addEventListener("abort", () => resolve(), { once: true })
        );
      }
    }
  }

  async #tick(): Promise<void> {
    const { clock } = this.#context;
    const { signal } = this.#end;
    while (!signal.aborted) {
      await pause(clock, TICK_MS, signal);
      this.#paint();
    }
  }

  /** Not awaited to its end: a read of the terminal cannot be called off. */
  async #keys(): Promise<void> {
    const { signal } = this.#end;
    const ended = new Promise<null>((resolve) =>
      signal.addEventListener("abort", () => resolve(null), { once: true })
    );
    const decoder = new TextDecoder();
    const bytes = new Uint8Array(256);
    while (!signal.aborted) {
      const count = await Promise.race([Deno.stdin.read(bytes), ended]);
      if (count === null) return this.#end.abort();
      for (const key of keysOf(decoder.decode(bytes.subarray(0, count), { stream: true }))) {
        if (key === "quit" || (typeof key === "object" && key.char === "q")) {
          return this.#end.abort();
        }
        press(this.#view, key, this.#screen?.size().rows ?? 24);
      }
      this.#paint();
    }
  }

  #paint(): void {
    if (this.#screen === undefined || this.#end.signal.aborted) return;
    const size = this.#screen.size();
    this.#screen.paint(frame(this.#snapshot, this.#view, size, this.#context.clock.now()), size);
  }
}

/** What a key does to the view. */
export function press(view: View, key: Key, rows: number): void {
  const page = Math.max(1, rows - 5);
  const steps: Partial<Record<string, number>> = {
    up: -1,
    down: 1,
    "page-up": -page,
    "page-down": page,
    home: -Infinity,
    end: Infinity,
  };
  const chars: Record<string, number> = { j: 1, k: -1, " ": page, g: -Infinity, G: Infinity };
  const step = typeof key === "string" ? steps[key] : chars[key.char];
  if (step !== undefined) {
    if (view.section !== "all") {
      view.scroll = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, view.scroll + step));
    }
    return;
  }
  if (typeof key === "string") return;
  const { char } = key;
  if (char === "?" || char === "h") view.help = !view.help;
  else if (char === "t") view.texts = !view.texts;
  else if (/^[1-5]$/.test(char)) {
    view.help = false;
    view.scroll = 0;
    view.section = char === "1" ? "all" : SECTIONS[Number(char) - 2]!;
  }
}
