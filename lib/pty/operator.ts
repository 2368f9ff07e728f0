/**
 * Reconstructs the line that the operator types (B-03), from keystrokes that are passed on
 * unchanged and undelayed. A line edited in a way that only the program knows the effect of (cursor
 * keys, completion, history) is uncertain until the next Enter or ^C, and never guessed.
 */
import { MAX_BODY_BYTES } from "../model/body.ts";
import type { Token } from "./keys.ts";

export interface OperatorOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** True while a full-screen program owns the terminal: keys are no lines then. */
  readonly hidden: () => boolean;
  /** True when the program reads a secret: a line is gathered and not echoed. */
  readonly secret: () => boolean;
  /** A complete, certain line that begins with `To:`. */
  readonly onLine: (line: string) => void;
  /** Enter on an uncertain line that holds `To:` somewhere. */
  readonly onUncertainAddress: () => void;
  /** Enter on any line; `typed` is what is known of it, all of it when `certain`. */
  readonly onEnter: (typed: string, certain: boolean) => void;
}

const MAX_LINE = MAX_BODY_BYTES + 1024;
const NEWLINE = 0x0a;

export class Operator {
  readonly #o: OperatorOptions;
  #line: number[] = [];
  #uncertain = false;
  #pasting = false;
  #lastKey = -Infinity;

  constructor(options: OperatorOptions) {
    this.#o = options;
  }

  /** A line is half typed, or may be. */
  get dirty(): boolean {
    return (this.#line.length > 0 || this.#uncertain || this.#pasting) && !this.#o.hidden();
  }
  /** Monotonic milliseconds of the operator's last key; -Infinity before the first. */
  get lastKey(): number {
    return this.#lastKey;
  }

  /** Text that waits for the operator's Enter was put into their line. */
  drafted(): void {
    this.#uncertain = true;
  }

  /** For who takes over (B-17); `quietMs` since the last key, null before the first. */
  save() {
    const quietMs = this.#lastKey === -Infinity ? null : this.#o.now() - this.#lastKey;
    const [line, uncertain, pasting] = [this.#line, this.#uncertain, this.#pasting];
    return { line, uncertain, pasting, quietMs };
  }
  restore(kept: ReturnType<Operator["save"]>): void {
    this.#line = kept.line;
    this.#uncertain = kept.uncertain;
    this.#pasting = kept.pasting;
    this.#lastKey = kept.quietMs === null ? -Infinity : this.#o.now() - kept.quietMs;
  }

  feed(tokens: readonly Token[]): void {
    for (const token of tokens) {
      if (token.type === "reply") continue;
      this.#lastKey = this.#o.now();
      if (this.#o.hidden()) {
        this.#clear();
        this.#pasting = false;
      } else this.#token(token);
    }
  }

  #token(token: Exclude<Token, { type: "reply" }>): void {
    switch (token.type) {
      case "text":
        if (this.#line.length + token.bytes.length > MAX_LINE) this.#uncertain = true;
        else for (const byte of token.bytes) this.#line.push(byte);
        return;
      case "key":
        this.#uncertain = true;
        return;
      case "pasteStart":
        this.#pasting = true;
        return;
      case "pasteEnd":
        this.#pasting = false;
        return;
      case "control":
        if (this.#pasting) this.#pasted(token.byte);
        else this.#control(token.byte);
    }
  }

  /** Inside a paste a control character is text; line breaks arrive as CR. */
  #pasted(byte: number): void {
    if (this.#line.length >= MAX_LINE) this.#uncertain = true;
    else this.#line.push(byte === 0x0d ? NEWLINE : byte);
  }

  #control(byte: number): void {
    switch (byte) {
      case 0x0d: // Enter
      case 0x0a: // ^J
        return this.#enter();
      case 0x08:
      case 0x7f:
        return this.#backspace();
      case 0x15: // ^U
        this.#line = [];
        return;
      case 0x17: // ^W
        return this.#eraseWord();
      case 0x03: // ^C
      case 0x1a: // ^Z
      case 0x1c: // ^\
        return this.#clear();
      case 0x04: // ^D ends the input on an empty line, deletes or sends half a line else
        if (this.#line.length > 0) this.#uncertain = true;
        return;
      case 0x0c: // ^L redraws
      case 0x11: // ^Q, ^S: flow control
      case 0x13:
      case 0x00:
        return;
      default:
        this.#uncertain = true;
    }
  }

  #enter(): void {
    const text = new TextDecoder().decode(Uint8Array.from(this.#line));
    const uncertain = this.#uncertain;
    this.#clear();
    this.#o.onEnter(text, !uncertain);
    if (!text.includes("To:") || this.#o.secret()) return;
    // Several pasted lines are one submission to a program that takes pastes: not one line.
    if (uncertain || text.includes("\n")) this.#o.onUncertainAddress();
    else if (text.startsWith("To:")) this.#o.onLine(text);
  }

  #backspace(): void {
    let byte: number | undefined;
    do byte = this.#line.pop(); while (byte !== undefined && (byte & 0xc0) === 0x80);
  }

  /** As the kernel and shells do: white space, then the word before it. */
  #eraseWord(): void {
    const space = (byte: number | undefined) => byte === 0x20 || byte === 0x09;
    while (this.#line.length > 0 && space(this.#line.at(-1))) this.#line.pop();
    while (this.#line.length > 0 && !space(this.#line.at(-1))) this.#line.pop();
  }

  #clear(): void {
    this.#line = [];
    this.#uncertain = false;
  }
}
