/**
 * What of recorded output a terminal gets when it is played: colours, text and cursor moves, nothing
 * that would set the clipboard or the title, or make the terminal answer into somebody's prompt. A
 * sequence passes only whole and only if it is known to be harmless: leaving something out of the
 * middle could make a new one of what stood around it.
 */

/** CSI without prefix or intermediate: moves, erasures, colours, insertions, margins. */
const MOVES = /^[0-9;:]*[@A-HJ-MPSTXZ`abdefgmrsu]$/;
/** Modes, also private ones; the shape of the cursor; soft reset; private erasures. */
const MODES = /^(?:\??[0-9;]*[hl]|[0-9]* q|!p|\?[0-9;]*[JK])$/;
/** Mouse, focus, paste, colour scheme, size, keys: the terminal would write of itself. */
const REPORTING = /^0*(?:9|100[0-7]|1015|1016|2004|2031|2048|5522|9001)$/;
/** ESC and one character: index, tabulator, save, restore, keypads, line attributes, charsets. */
const SHORT = /^(?:[78=>DEHM]|#[34568]|[()*+][0-9A-Za-z<>%&=])$/;
/** What a terminal is told instead of a full reset, which would change more than the screen. */
const CLEAR = "\x1b[!p\x1b[H\x1b[2J";
/** Line feeds, tabulators, shifts of the character set; not ENQ, which asks for the answerback. */
const CONTROLS = "\b\t\n\v\f\r\x07\x0e\x0f";
// deno-lint-ignore no-control-regex
const PLAIN = /[^\x00-\x1f\x7f-\x9f]+|[^]/gu;
const STRING_ENDS = "\x07\x18\x1a\x9c";
const MAX_SEQUENCE = 256;
/** A longer string has no end: what follows is shown. */
const MAX_STRING = 1 << 20;
/** No mouse, no reports, no bracketed paste, whole scroll region, cursor shown, plain text. */
const RESTORE = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?2026l" +
  "\x1b[?1l\x1b>\x1b7\x1b[r\x1b8\x1b(B\x0f\x1b[?25h\x1b[m";

export class PlayFilter {
  #at: "ground" | "escape" | "csi" | "string" = "ground";
  /** Of the sequence under way, behind ESC or `ESC [`. */
  #sequence = "";
  #skipped = 0;
  #alternate = false;

  /** Safe to write; a sequence may be split anywhere between two calls. */
  feed(text: string): string {
    let shown = "";
    for (const [part] of text.matchAll(PLAIN)) {
      if (this.#at === "ground") shown += part.length > 1 ? part : this.#step(part);
      else for (const char of part) shown += this.#step(char);
    }
    return shown;
  }

  /** Puts the terminal right afterwards: what was played may have been cut anywhere. */
  restore(): string {
    // Leaving a screen that was not entered would move the cursor.
    return (this.#alternate ? "\x1b[?1049l" : "") + RESTORE;
  }

  #step(char: string): string {
    if (char === "\x1b") return this.#enter("escape");
    if (this.#at === "string") {
      if (STRING_ENDS.includes(char) || ++this.#skipped > MAX_STRING) this.#at = "ground";
      return "";
    }
    if (char === "\x18" || char === "\x1a") return this.#enter("ground");
    if (char < " ") return CONTROLS.includes(char) ? char : ""; // done also amid a sequence
    if (char >= "\x7f" && char <= "\x9f") return this.#c1(char);
    if (this.#at === "ground") return char;
    this.#sequence += char;
    return this.#at === "escape" ? this.#escape(char) : this.#csi(char);
  }

  /** Some terminals take these for ESC and a character. */
  #c1(char: string): string {
    if (char === "\x9b") return this.#enter("csi");
    if ("\x90\x98\x9d\x9e\x9f".includes(char)) return this.#enter("string");
    return char === "\x7f" ? "" : this.#enter("ground");
  }

  #escape(char: string): string {
    if (char === "[" && this.#sequence === "[") return this.#enter("csi");
    // tmux and screen take ESC k for the beginning of a title.
    if ("]P_^Xk".includes(char) && this.#sequence.length === 1) return this.#enter("string");
    if (char >= " " && char <= "/" && this.#sequence.length < MAX_SEQUENCE) return "";
    const whole = this.#sequence;
    this.#enter("ground");
    if (whole === "c") return CLEAR;
    return SHORT.test(whole) ? "\x1b" + whole : "";
  }

  #csi(char: string): string {
    if (char < "@") {
      // Its end is waited for; nothing of so long a one is kept.
      if (this.#sequence.length > MAX_SEQUENCE) this.#sequence = "?".repeat(MAX_SEQUENCE);
      return "";
    }
    const whole = this.#sequence;
    this.#enter("ground");
    if (!MOVES.test(whole) && !MODES.test(whole)) return "";
    return "\x1b[" + (/^\?.*[hl]$/.test(whole) ? this.#modes(whole) : whole);
  }

  /** What remains names no mode when none does; terminals take that for nothing. */
  #modes(whole: string): string {
    const end = whole.slice(-1);
    const kept = whole.slice(1, -1).split(";").filter((mode) => !REPORTING.test(mode));
    if (kept.some((mode) => /^0*(?:1049|1047|47)$/.test(mode))) this.#alternate = end === "h";
    return `?${kept.join(";")}${end}`;
  }

  #enter(at: "ground" | "escape" | "csi" | "string"): "" {
    this.#at = at;
    this.#sequence = "";
    this.#skipped = 0;
    return "";
  }
}
