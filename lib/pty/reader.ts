/**
 * Whether what reads the worker's terminal would take typed text now (B-16). Text that nobody waits
 * for stays in the kernel's buffer, and whatever reads next takes it: a shell, perhaps. Keys for a
 * program that reads them one by one are commands: `!` in a pager.
 */
import type { ProcessInfo } from "../base/proc.ts";
import { executable, hasLoaded, waitsForInput } from "../base/proc_wait.ts";
import type { Termios } from "../pty_ffi.ts";
import { isShower } from "./file_dump.ts";
import type { Foreground } from "./foreground.ts";
import type { ModeTracker } from "./modes.ts";

/** `wait` names the waits that were seen; see {@link waitsForInput}. */
export type Readiness = { readonly wait: string } | { readonly reason: string };

export interface ReaderOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Path of the worker's terminal. */
  readonly terminal: string;
  readonly termios: () => Termios | undefined;
  readonly modes: Pick<ModeTracker, "bracketedPaste" | "cursorHidden">;
  /** Bytes of complete lines that the program has not taken yet. */
  readonly unread: () => number;
}

/** A wait that has not been left after so long will be no more: the line was thrown away. */
const UNTAKEN_MS = 1000;

/** They edit lines with an editor of their own; others load readline. */
const LINE_EDITORS = /\/(?:node|nodejs|bash)(?:[-.]?\d[\d.]*)?$/;
const READLINE = /\/(?:lib)?readline[.-]\S*so|\/libreadline\.so/;

export class Reader {
  readonly #o: ReaderOptions;
  /** The waits that the last line was typed into, and when. */
  #typed: { readonly wait: string; readonly at: number } | undefined;

  constructor(options: ReaderOptions) {
    this.#o = options;
  }

  /** A whole line is typed into these waits now. */
  typed(wait: string): void {
    this.#typed = { wait, at: this.#o.now() };
  }

  /** For who takes over (B-17). */
  save() {
    const typed = this.#typed;
    return typed === undefined ? null : { wait: typed.wait, ms: this.#o.now() - typed.at };
  }
  restore(kept: ReturnType<Reader["save"]>): void {
    if (kept !== null) this.#typed = { wait: kept.wait, at: this.#o.now() - kept.ms };
  }

  /** Why nothing may be typed now. */
  unready(front: Foreground): string | undefined {
    const found = this.readiness(front);
    return "reason" in found ? found.reason : undefined;
  }

  /** `not_reading`, `reader_unseen`, `echo_off` or `raw_reader` while nothing may be typed. */
  readiness(front: Foreground): Readiness {
    const { terminal, modes } = this.#o;
    const termios = this.#o.termios();
    if (termios === undefined) return { reason: "terminal_gone" };
    // A password is asked for: the text would be taken for it, and shown to nobody.
    if (termios.hidden) return { reason: "echo_off" };
    const isTerminal = (link: string) => link === terminal || link === "/dev/tty";
    const keys = !termios.canonical && !modes.bracketedPaste;
    let unseen = false;
    const waits: string[] = [];
    const editors: boolean[] = [];
    for (const process of front.members) {
      const found = waitsForInput(process.pid, isTerminal);
      if (found.kind === "unseen") unseen = true;
      if (found.kind !== "reading") continue;
      waits.push(found.wait);
      if (keys) editors.push(found.call === "poll" && editsLines(process));
      // A program before it may have died with bracketed paste on.
      else if (!termios.canonical && isShower(process.argv)) editors.push(false);
    }
    if (waits.length === 0) return { reason: unseen ? "reader_unseen" : "not_reading" };
    const wait = waits.join(" ");
    // Lines of before are taken first; they may end the program.
    if (this.#o.unread() > 0 || this.#untaken(wait)) return { reason: "not_reading" };
    if ((keys && modes.cursorHidden) || editors.includes(false)) return { reason: "raw_reader" };
    return { wait };
  }

  /**
   * The kernel hands a line over some time after it was written: until the reader has been woken,
   * the next line is not for it.
   */
  #untaken(wait: string): boolean {
    return this.#typed?.wait === wait && this.#o.now() - this.#typed.at < UNTAKEN_MS;
  }
}

/**
 * Readline and node's line editor wait for several things at once; a program that takes single keys
 * (`more`, `read -n 1`) mostly does not, and has no line editor.
 */
function editsLines({ pid }: ProcessInfo): boolean {
  return LINE_EDITORS.test(executable(pid) ?? "") || hasLoaded(pid, READLINE);
}
