/**
 * Splits what the operator's terminal sends into text, control characters, keys, pastes and the
 * terminal's own replies to queries, which are nobody's typing. Sequences may be split anywhere.
 */
import { ESC, EscapeParser } from "./escapes.ts";

export type Token =
  /** Printable bytes of UTF-8, perhaps cut inside a character. */
  | { readonly type: "text"; readonly bytes: Uint8Array }
  | { readonly type: "control"; readonly byte: number; readonly bytes: Uint8Array }
  /** A key that no character stands for: arrows, function keys, Alt combinations, Escape. */
  | { readonly type: "key"; readonly bytes: Uint8Array }
  | { readonly type: "pasteStart" | "pasteEnd"; readonly bytes: Uint8Array }
  /** Cursor position, attributes, colours, focus, mouse: the terminal speaks, not the operator. */
  | { readonly type: "reply"; readonly bytes: Uint8Array };

/** A reply (a clipboard, say) longer than this is handed on in pieces. */
const MAX_PARTIAL = 4096;

export class KeyTokens {
  readonly #escape = new EscapeParser(true);
  #partial: number[] = [];
  #inPaste = false;
  #owed = 0;

  /** Outside any sequence, paste and multi-byte character: something may be put in here. */
  get boundary(): boolean {
    return this.#escape.ground && !this.#inPaste && this.#owed === 0;
  }
  get inPaste(): boolean {
    return this.#inPaste;
  }
  /** Bytes of the unfinished sequence. */
  get partial(): Uint8Array {
    return Uint8Array.from(this.#partial);
  }

  /** The last byte was an ESC that may be the Escape key, or the beginning of a sequence. */
  get pendingEscape(): boolean {
    return this.#partial.length === 1 && this.#partial[0] === ESC && !this.#inPaste;
  }

  /** For who takes over (B-17). */
  save() {
    const [partial, inPaste, owed] = [this.#partial, this.#inPaste, this.#owed];
    return { escape: this.#escape.save(), partial, inPaste, owed };
  }
  restore(kept: ReturnType<KeyTokens["save"]>): void {
    this.#escape.restore(kept.escape);
    this.#partial = kept.partial;
    this.#inPaste = kept.inPaste;
    this.#owed = kept.owed;
  }

  /** Time has told: it was the key. */
  settleEscape(): Token[] {
    if (!this.pendingEscape) return [];
    this.#escape.reset();
    return [this.#take("key")];
  }

  feed(chunk: Uint8Array): Token[] {
    const tokens: Token[] = [];
    let text = 0; // start of the text run under way
    const flush = (end: number) => {
      if (end > text) tokens.push({ type: "text", bytes: chunk.slice(text, end) });
    };
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i]!;
      if (!this.#escape.ground) {
        this.#sequence(byte, tokens);
        text = i + 1;
        continue;
      }
      this.#count(byte);
      if (byte >= 0x20 && byte !== 0x7f) continue;
      flush(i);
      text = i + 1;
      if (byte === ESC) {
        this.#escape.begin();
        this.#partial = [ESC];
      } else tokens.push({ type: "control", byte, bytes: Uint8Array.of(byte) });
    }
    flush(this.#escape.ground ? chunk.length : text);
    return tokens;
  }

  #count(byte: number): void {
    if ((byte & 0xc0) === 0x80) this.#owed = Math.max(0, this.#owed - 1);
    else this.#owed = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
  }

  #sequence(byte: number, tokens: Token[]): void {
    // The Escape key and then another key: two ESC in a row never begin a sequence of ours.
    if (byte === ESC && this.#escape.justEscape) tokens.push(this.#take("key"));
    this.#partial.push(byte);
    const kind = this.#escape.step(byte);
    if (kind === undefined) {
      if (this.#partial.length > MAX_PARTIAL) tokens.push(this.#take("reply"));
      return;
    }
    if (kind === "string" || kind === "x10") tokens.push(this.#take("reply"));
    else if (kind === "csi") tokens.push(this.#csi());
    else tokens.push(this.#take("key"));
  }

  #csi(): Token {
    const { params, final } = this.#escape;
    if (final === "~" && params === "200") {
      this.#inPaste = true;
      return this.#take("pasteStart");
    }
    if (final === "~" && params === "201") {
      this.#inPaste = false;
      return this.#take("pasteEnd");
    }
    return this.#take(isReply(params, final) ? "reply" : "key");
  }

  #take(type: "key" | "reply" | "pasteStart" | "pasteEnd"): Token {
    const bytes = Uint8Array.from(this.#partial);
    this.#partial = [];
    return { type, bytes };
  }
}

/**
 * R: cursor position (an F3 with modifiers looks the same; it edits no line). c: attributes.
 * n: status. t: window. y: mode report. I, O: focus. M, m behind `<`: mouse. u behind `?`: keyboard
 * flags. x: terminal parameters. S: graphics.
 */
function isReply(params: string, final: string): boolean {
  if (final === "R" || final === "c" || final === "n" || final === "t" || final === "y") {
    return true;
  }
  if ((final === "I" || final === "O") && params === "") return true;
  if (final === "M" || final === "m") return params !== "";
  if (final === "u" || final === "S") return params.startsWith("?");
  return final === "x";
}
