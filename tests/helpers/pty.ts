/** A terminal that a test holds the other end of: what a person at a window would see and type. */
import { systemClock, within } from "../../lib/base/clock.ts";
import {
  AGAIN,
  closeFd,
  getTermios,
  hushBell,
  openBell,
  openPty,
  openSlave,
  POLLIN,
  POLLOUT,
  PollSet,
  readFd,
  ringBell,
  setSize,
  setTermios,
  type TerminalSize,
  type Termios,
  writeFd,
} from "../../lib/pty_ffi.ts";

const DEADLINE_MS = 15_000;

export class TestTerminal {
  readonly master: number;
  readonly slavePath: string;
  /** The side that a program under test gets as standard input and output. */
  readonly slave: number;
  readonly #bell = openBell();
  readonly #poll = new PollSet(2);
  readonly #chunk = new Uint8Array(64 * 1024);
  readonly #decoder = new TextDecoder();
  #reader: Promise<void>;
  #closed = false;
  #paused = false;
  #waiters: (() => void)[] = [];
  /** Everything printed so far, decoded. */
  text = "";
  bytes = 0;
  /** Sees each chunk; for digests of long output. Set `keepText` to false then. */
  onChunk: (chunk: Uint8Array) => void = () => {};
  keepText = true;

  constructor(size: TerminalSize = { rows: 24, columns: 80 }) {
    const { master, slavePath } = openPty(size);
    this.master = master;
    this.slavePath = slavePath;
    this.slave = openSlave(slavePath);
    this.#reader = this.#read();
  }

  get termios(): Termios {
    return getTermios(this.master)!;
  }
  set termios(termios: Termios) {
    setTermios(this.master, termios);
  }
  resize(size: TerminalSize): void {
    setSize(this.master, size);
  }

  /** Types; waits while the program does not read. */
  async type(input: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const bytes = typeof input === "string" ? new TextEncoder().encode(input) : input;
    const poll = new PollSet(1);
    for (let done = 0; done < bytes.length;) {
      const n = writeFd(this.master, bytes.subarray(done));
      if (n > 0) done += n;
      else if (n === AGAIN) {
        poll.set(0, this.master, POLLOUT);
        await poll.wait();
      } else throw new Error("the terminal is closed");
    }
  }

  /** Resolves once `found` matches what was printed since `from`; rejects after 15 s, showing it. */
  async until(found: string | RegExp | ((text: string) => boolean), from = 0): Promise<string> {
    const test = typeof found === "string"
      ? (text: string) => text.includes(found)
      : found instanceof RegExp
      ? (text: string) => found.test(text)
      : found;
    await this.when(() => test(this.text.slice(from)), String(found));
    return this.text.slice(from);
  }

  /** Resolves once `condition` holds; looked at after each chunk of output. */
  async when(condition: () => boolean, what = "the condition"): Promise<void> {
    let late = false;
    const work = (async () => {
      while (!late && !condition()) {
        await new Promise<void>((resolve) => this.#waiters.push(resolve));
      }
    })();
    await within(systemClock, DEADLINE_MS, work, () => {
      late = true;
      this.nudge();
      throw new Error(`timed out waiting for ${what}; printed: ${JSON.stringify(this.text)}`);
    });
  }

  /** Looks at the conditions again. */
  nudge(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** Stops reading, as a terminal does whose user pressed ^S. */
  pause(): void {
    this.#paused = true;
    ringBell(this.#bell);
  }
  resume(): void {
    this.#paused = false;
    ringBell(this.#bell);
  }

  async #read(): Promise<void> {
    while (!this.#closed) {
      this.#poll.set(0, this.#paused ? -1 : this.master, POLLIN);
      this.#poll.set(1, this.#bell, POLLIN);
      await this.#poll.wait();
      hushBell(this.#bell);
      if (this.#paused || this.#closed) continue;
      this.drain();
      this.nudge();
    }
  }

  /** Takes what is there now. */
  drain(): void {
    for (let n; (n = readFd(this.master, this.#chunk)) > 0;) {
      const chunk = this.#chunk.subarray(0, n);
      this.bytes += n;
      this.onChunk(chunk);
      if (this.keepText) this.text += this.#decoder.decode(chunk, { stream: true });
      if (this.#paused) return;
    }
  }

  /** The terminal goes away. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    ringBell(this.#bell);
    await this.#reader;
    closeFd(this.slave);
    closeFd(this.master);
    closeFd(this.#bell);
    this.nudge();
  }
}
