/** The terminal that the broker itself runs on: raw mode, size, and descriptors that do not block. */
import {
  closeFd,
  getSize,
  getTermios,
  isTerminal,
  reopenNonblocking,
  setTermios,
  type TerminalSize,
  type Termios,
} from "../pty_ffi.ts";

export class OuterTerminal {
  /** To poll and read. */
  readonly input: number;
  /** To poll and write. */
  readonly output: number;
  /** Whether end of input means that the terminal is gone (a pipe merely has no more to say). */
  readonly isTerminal: boolean;
  /** Line settings as found; undefined when standard input is no terminal. */
  readonly settings: Termios | undefined;
  readonly #own: number[] = [];
  #raw = false;

  /** @param settings as found by the program that this process was before, and to be restored. */
  constructor(readonly stdin = 0, readonly stdout = 1, settings?: Termios) {
    this.isTerminal = isTerminal(stdin);
    this.settings = settings ?? getTermios(stdin);
    this.input = this.#reopen(stdin, "read");
    this.output = this.#reopen(stdout, "write");
  }

  #reopen(fd: number, access: "read" | "write"): number {
    const own = reopenNonblocking(fd, access);
    if (own !== undefined) this.#own.push(own);
    return own ?? fd;
  }

  get size(): TerminalSize {
    return getSize(this.stdout) ?? getSize(this.stdin) ?? { rows: 24, columns: 80 };
  }

  /** Raw in every respect; the runtime's own raw mode leaves output mapping on. */
  enterRaw(): void {
    if (this.settings === undefined) return;
    this.#raw = true;
    setTermios(this.stdin, this.settings.toRaw());
  }

  /** Puts the settings back as found; any number of times. */
  restore(): void {
    if (!this.#raw || this.settings === undefined) return;
    this.#raw = false;
    setTermios(this.stdin, this.settings);
  }

  close(): void {
    this.restore();
    for (const fd of this.#own.splice(0)) closeFd(fd);
  }
}
