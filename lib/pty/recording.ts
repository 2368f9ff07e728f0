/**
 * Records what a window's terminal showed, as asciicast v2 (B-15). Behind the relay: it takes a copy
 * of bytes that were passed on and writes it later, off this thread. A disk that is full, slow or
 * gone ends or thins the recording; the terminal never waits for it.
 */
import { type Clock, turn, within } from "../base/clock.ts";
import { errorText } from "../base/errors.ts";
import { type CastCode, eventLine, headerLine } from "../model/asciicast.ts";
import type { TerminalSize } from "../pty_ffi.ts";
import type { Tap } from "./relay.ts";

export interface RecordingOptions {
  readonly file: Pick<Deno.FsFile, "write" | "writeSync" | "truncateSync" | "close">;
  readonly title: string;
  readonly size: TerminalSize;
  /** Of the worker's environment; TERM and SHELL alone are written down. */
  readonly env: (name: string) => string | undefined;
  /** Keys are recorded as well, but for those that a terminal without echo reads. */
  readonly input: boolean;
  /** The worker reads a line that it does not show: a password. */
  readonly secret: () => boolean;
  readonly clock: Clock;
  /** It ended by itself; the text says why. */
  readonly onStopped: (why: string) => void;
  readonly maxBytes?: number;
}

/** A recording ends at this size. */
export const MAX_RECORDING_BYTES = 64 << 20;
/** Not written yet; more is left out, and a marker says how much. */
const MAX_WAITING = 8 << 20;
/** Turned into text at once, so that the relay's turn comes soon. */
const SLICE = 64 * 1024;
const CLOSE_MS = 2000;

interface Entry {
  readonly seconds: number;
  readonly code: CastCode;
  readonly data: Uint8Array | string;
}

export class Recording implements Tap {
  readonly #o: RecordingOptions;
  readonly #start: number;
  readonly #max: number;
  readonly #encoder = new TextEncoder();
  /** A character may be split between two reads: the rest of it is kept here. */
  #decoders = { o: new TextDecoder(), i: new TextDecoder() };
  #entries: Entry[] = [];
  #waiting = 0;
  #lost = 0;
  /** Bytes of whole lines in the file. */
  #written = 0;
  #size: TerminalSize;
  #stopped = false;
  #running: Promise<void> | undefined;

  /** Writes the header; throws what the system says when that fails. */
  constructor(options: RecordingOptions) {
    this.#o = options;
    this.#max = options.maxBytes ?? MAX_RECORDING_BYTES;
    this.#start = options.clock.monotonic();
    this.#size = options.size;
    const env: Record<string, string> = {};
    for (const name of ["SHELL", "TERM"]) {
      const value = options.env(name);
      if (value !== undefined) env[name] = value;
    }
    const header = this.#encoder.encode(headerLine({
      width: options.size.columns,
      height: options.size.rows,
      timestamp: Math.floor(options.clock.now() / 1000),
      title: options.title,
      env,
    }));
    for (let done = 0; done < header.length;) {
      done += options.file.writeSync(header.subarray(done));
    }
    this.#written = header.length;
  }

  get active(): boolean {
    return !this.#stopped;
  }

  /** Something is not written yet. */
  get busy(): boolean {
    return this.#running !== undefined;
  }

  output(bytes: Uint8Array): void {
    this.#add("o", bytes);
  }
  input(bytes: Uint8Array): void {
    if (this.#o.input && !this.#o.secret()) this.#add("i", bytes);
  }
  resized(size: TerminalSize): void {
    if (size.columns === this.#size.columns && size.rows === this.#size.rows) return;
    this.#size = size;
    this.#add("r", `${size.columns}x${size.rows}`);
  }

  /** Resolves once nothing waits to be written. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Writes what waits, within two seconds, and closes the file. */
  async close(): Promise<void> {
    if (this.#stopped) return;
    const finish = async () => {
      await this.#running;
      if (this.#stopped) return; // meanwhile, by itself
      // What a character cut short leaves.
      for (const code of ["o", "i"] as const) this.#push(code, new Uint8Array());
      await this.#append(this.#slice(true));
    };
    await within(this.#o.clock, CLOSE_MS, finish(), () => {}).catch(() => {});
    this.#end();
  }

  #add(code: CastCode, data: Uint8Array | string): void {
    if (this.#stopped || data.length === 0) return;
    if (this.#waiting + data.length > MAX_WAITING) {
      this.#lost += data.length;
      return;
    }
    if (this.#lost > 0) {
      this.#push("m", `tamq: ${this.#lost} bytes were not recorded`);
      this.#lost = 0;
    }
    this.#push(code, typeof data === "string" ? data : data.slice());
    this.#running ??= this.#drain().finally(() => this.#running = undefined);
  }

  #push(code: CastCode, data: Uint8Array | string): void {
    const seconds = (this.#o.clock.monotonic() - this.#start) / 1000;
    this.#entries.push({ seconds, code, data });
    this.#waiting += data.length;
  }

  /** Never throws. */
  async #drain(): Promise<void> {
    try {
      while (this.#entries.length > 0 && !this.#stopped) {
        await turn(); // the relay first
        const text = this.#slice();
        if (this.#written + text.length * 3 > this.#max) {
          const bytes = this.#encoder.encode(text).length;
          if (this.#written + bytes > this.#max) return this.#stop(`it has ${sizeText(this.#max)}`);
        }
        await this.#append(text);
      }
    } catch (error) {
      this.#stop(errorText(error));
    }
  }

  #slice(last = false): string {
    let text = "";
    let bytes = 0;
    let taken = 0;
    for (const { seconds, code, data } of this.#entries) {
      if (bytes >= SLICE) break;
      taken++;
      bytes += data.length;
      if (code === "m") this.#decoders = { o: new TextDecoder(), i: new TextDecoder() };
      const shown = typeof data === "string"
        ? data
        : this.#decoders[code as "o" | "i"].decode(data, { stream: !last });
      if (shown !== "") text += eventLine(seconds, code, shown);
    }
    this.#entries.splice(0, taken);
    this.#waiting -= bytes;
    return text;
  }

  /** The file's own thread waits for the disk, not this one. */
  async #append(text: string): Promise<void> {
    const bytes = this.#encoder.encode(text);
    for (let done = 0; done < bytes.length;) {
      done += await this.#o.file.write(bytes.subarray(done));
    }
    this.#written += bytes.length;
  }

  #stop(why: string): void {
    if (this.#stopped) return;
    try {
      // A full disk leaves half a line, which no reader would take.
      this.#o.file.truncateSync(this.#written);
    } catch { /* readers leave it out */ }
    this.#end();
    this.#o.onStopped(why);
  }

  #end(): void {
    this.#stopped = true;
    this.#entries = [];
    try {
      this.#o.file.close();
    } catch { /* closed is closed */ }
  }
}

function sizeText(bytes: number): string {
  return bytes >= 1 << 20 ? `${Math.floor(bytes / (1 << 20))} MiB` : `${bytes} bytes`;
}
