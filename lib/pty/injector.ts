/**
 * Puts one message into the worker's terminal (B-05, B-08, B-09, B-10, B-16): typed into a program,
 * displayed to a shell, or refused. What reads the terminal is looked at again right before each
 * write.
 */
import { type Clock, pause } from "../base/clock.ts";
import { displaySafe } from "../base/display.ts";
import type { Mode } from "../model/endpoint.ts";
import { type Envelope, envelopeLines } from "../model/envelope.ts";
import type { Settlement } from "../protocol/schema.ts";
import type { Termios } from "../pty_ffi.ts";
import type { ExpectedEchoes } from "./echo.ts";
import type { Foreground } from "./foreground.ts";
import { concat, type InputHold } from "./hold.ts";
import type { ModeTracker } from "./modes.ts";
import type { Profile } from "./profiles/plain.ts";
import type { Readiness } from "./reader.ts";
import type { WriteResult } from "./write_queue.ts";

/** What became of an attempt; the settlement without its lease token. */
export type InjectionOutcome = Omit<Settlement, "lease_token">;

export interface InjectorOptions {
  readonly clock: Clock;
  readonly profile: Profile;
  readonly mode: Mode;
  readonly modes: ModeTracker;
  readonly echoes: ExpectedEchoes;
  readonly hold: InputHold;
  readonly foreground: () => Foreground;
  /** Whether that program would take typed text now. */
  readonly readiness: (front: Foreground) => Readiness;
  /** Called with the waits that a whole line was typed into. */
  readonly onTyped: (wait: string) => void;
  /** Throws away what was typed and not read. */
  readonly flush: () => void;
  /** Line settings of the worker's terminal. */
  readonly termios: () => Termios | undefined;
  readonly sendWorker: (
    bytes: Uint8Array<ArrayBuffer>,
    ms: number,
    tail?: Uint8Array<ArrayBuffer>,
  ) => Promise<WriteResult>;
  /** Without waiting: the operator's held keys. */
  readonly pushWorker: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly sendTerminal: (bytes: Uint8Array<ArrayBuffer>, ms: number) => Promise<WriteResult>;
  /** Has the shell in the foreground paint its prompt again. */
  readonly redraw: () => Promise<void>;
}

/** Longer than this without taking a byte and the reader counts as stopped. */
const WRITE_MS = 2000;
/** The operator's keys are held no longer than this. */
const HOLD_MS = 500;
/**
 * The kernel gathers at most 4,095 bytes of a line, terminator included, and drops the rest (B-10).
 * Some room is left below that.
 */
const MAX_GATHERED = 4000;
const LINE_BREAK = " ⏎ ";
/** An escape sequence of the worker's under way is given this long to end before a display. */
const SETTLE_MS = 500;

const encoder = new TextEncoder();
// deno-lint-ignore no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
/** ^U */
const ERASE_LINE = Uint8Array.of(0x15);
const PASTE_END = "\x1b[201~";

function failed(reason: string, scope: "target" | "message" = "target"): InjectionOutcome {
  return { outcome: "failed", reason, scope };
}

function outcomeOf(result: WriteResult, reason?: string): InjectionOutcome {
  if (result === "written") {
    return reason === undefined ? { outcome: "written" } : { outcome: "written", reason };
  }
  if (result === "stalled") return { outcome: "stalled", reason: "terminal_not_read" };
  return failed(result === "gone" ? "terminal_gone" : "terminal_not_read");
}

/** The envelope's lines; undefined when one holds what could drive a terminal. The service admits none. */
export function safeLines(envelope: Envelope): string[] | undefined {
  const lines = envelopeLines(envelope);
  return lines.some((line) => CONTROL.test(line)) ? undefined : lines;
}

export class Injector {
  readonly #o: InjectorOptions;
  constructor(options: InjectorOptions) {
    this.#o = options;
  }

  async inject(envelope: Envelope): Promise<InjectionOutcome> {
    const lines = safeLines(envelope);
    if (lines === undefined) return failed("body_binary", "message");
    if (this.#o.modes.alternateScreen) return failed("full_screen_program");
    const front = this.#o.foreground();
    if (front.windowShell || front.kind === "shell") return await this.#display(lines, front);
    if (front.kind === "unknown") return failed("foreground_unknown");
    const termios = this.#o.termios();
    if (termios === undefined) return failed("terminal_gone");
    const ready = this.#o.readiness(front);
    if ("reason" in ready) return failed(ready.reason);
    if (termios.canonical) return await this.#typeLine(lines, termios, ready.wait);
    return await this.#typeEditor(lines, front);
  }

  // --- displayed ------------------------------------------------------------------------------

  async #display(lines: readonly string[], front: Foreground): Promise<InjectionOutcome> {
    const { modes, clock } = this.#o;
    for (let waited = 0; !modes.settled; waited += 20) {
      if (waited >= SETTLE_MS) return failed("output_unsettled");
      await pause(clock, 20);
    }
    if (modes.alternateScreen) return failed("full_screen_program");
    const rows = lines.map((line, i) => (i === 0 ? "" : "  ") + displayRow(line));
    const text = (modes.lineStart ? "" : "\r\n") + rows.join("\r\n") + "\r\n";
    const sent = await this.#o.sendTerminal(encoder.encode(text), WRITE_MS);
    if (sent !== "written") return outcomeOf(sent);
    modes.lineStart = true;
    if (front.kind === "shell") await this.#o.redraw();
    return { outcome: "displayed" };
  }

  // --- typed into a line that the kernel gathers ------------------------------------------------

  async #typeLine(
    lines: readonly string[],
    termios: Termios,
    wait: string,
  ): Promise<InjectionOutcome> {
    const text = lines.join(LINE_BREAK);
    const bytes = encoder.encode(text);
    // The kernel gathers 4095 bytes a line. Handing longer ones over in pieces by the end-of-file
    // character was tried: with the shells' own `read`, 11 of 16 tries went wrong, for a reason that
    // was not found. Whole or not at all (B-10).
    if (bytes.length > MAX_GATHERED) return failed("line_too_long", "message");
    // A printable character may be set as a control character (stty erase '#').
    const special = [...termios.controls].filter((code) => code > 0x20 && code < 0x7f);
    if (bytes.some((byte) => special.includes(byte))) return failed("special_character");
    if (this.#o.hold.active) return failed("busy");
    const enter = this.#o.mode === "draft" ? "" : termios.mapsReturn ? "\r" : "\n";
    this.#o.echoes.expect([text], this.#o.clock.monotonic());
    if (enter !== "") this.#o.onTyped(wait);
    const result = await this.#o.sendWorker(concat([bytes, encoder.encode(enter)]), WRITE_MS);
    return outcomeOf(result, lines.length > 1 ? "flattened" : undefined);
  }

  // --- typed into a program that edits lines itself ----------------------------------------------

  async #typeEditor(lines: readonly string[], front: Foreground): Promise<InjectionOutcome> {
    const { modes, profile, hold, echoes, clock } = this.#o;
    const paste = modes.bracketedPaste;
    const rows = paste ? lines : [lines.join(LINE_BREAK).replaceAll("\t", "    ")];
    // A trailing space ends completion menus and escapes at the end of the text (measured).
    const text = paste ? `\x1b[200~${rows.join("\n")} ${PASTE_END}` : rows[0]!;
    const reason = rows.length < lines.length ? "flattened" : undefined;
    const broken = new AbortController();
    let interrupted = false;
    hold.onBroken = (why) => {
      interrupted ||= why === "interrupt";
      broken.abort();
    };
    if (!hold.begin()) return failed("operator_typing");
    let mixed = false;
    const release = () => {
      const keys = hold.end();
      mixed ||= keys.length > 0;
      this.#o.pushWorker(keys);
    };
    const cancelHold = clock.after(HOLD_MS, release);
    try {
      echoes.expect(rows, clock.monotonic());
      const tail = paste ? encoder.encode(PASTE_END) : undefined;
      const result = await this.#o.sendWorker(encoder.encode(text), WRITE_MS, tail);
      if (result !== "written") return outcomeOf(result);
      if (this.#o.mode === "draft") return outcomeOf(result, reason);
      await pause(clock, paste ? profile.pasteEnterMs : profile.typedEnterMs, broken.signal);
      if (interrupted) return failed("operator_interrupt");
      // The hold ran out and keys went in behind the text: Enter would submit those as well.
      if (mixed) return failed("operator_typing");
      // The text stands in the editor. Enter only if it is still that editor that reads.
      const now = this.#o.foreground();
      if (now.kind !== "program" || now.group !== front.group || modes.alternateScreen) {
        // What stands there unread would be the next program's, a shell's perhaps (B-16); what a
        // shell has taken into its own line is erased from it, before the operator's Enter.
        this.#o.flush();
        if (now.kind === "shell" || now.windowShell) await this.#o.sendWorker(ERASE_LINE, WRITE_MS);
        return failed("foreground_changed");
      }
      return outcomeOf(await this.#o.sendWorker(encoder.encode("\r"), WRITE_MS), reason);
    } finally {
      cancelHold();
      release();
    }
  }
}

/** Safe to print anywhere; tabs as spaces, so that a row has no other width than it shows. */
function displayRow(line: string): string {
  return displaySafe(line.replaceAll("\t", "    "));
}
