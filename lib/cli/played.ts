/**
 * What of recorded output a terminal gets when it is played: colours, text and cursor moves, nothing
 * that would set the clipboard or the title, or make the terminal answer into somebody's prompt.
 */

/** Strings (OSC, DCS, APC, PM, SOS) up to BEL or ST. */
// deno-lint-ignore no-control-regex
const STRINGS = /\x1b[\]P_^X][^\x07\x1b\x18\x1a]*(?:\x07|\x1b\\|[\x18\x1a]|(?=\x1b[^\\]))/g;
/** Questions and reports (c, n, x, t, >q, $p), key protocols (>u, <u, =u, ?u), DECID. */
// deno-lint-ignore no-control-regex
const QUESTIONS = /\x1b(?:\[[0-?]*(?:[cnxt]|\$p)|\[[<=>?][0-?]*[qu]|Z)/g;
/** The beginning of a sequence whose rest is in a later event. */
// deno-lint-ignore no-control-regex
const UNFINISHED = /\x1b(?:[\]P_^X][^\x07\x1b\x18\x1a]*\x1b?|\[[0-?]*[ -/]*)?$/;
// deno-lint-ignore no-control-regex
const ALTERNATE = /\x1b\[\?(?:1049|1047|47)([hl])/g;
/** No mouse, no reports, no bracketed paste, whole scroll region, cursor shown, plain text. */
const RESTORE = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?2026l" +
  "\x1b[?1l\x1b>\x1b7\x1b[r\x1b8\x1b[?25h\x1b[m";
const MAX_HELD = 64 * 1024;

export class PlayFilter {
  #held = "";
  #alternate = false;

  feed(text: string): string {
    let all = this.#held + text;
    const cut = all.search(UNFINISHED);
    this.#held = cut < 0 ? "" : all.slice(cut);
    if (this.#held.length > MAX_HELD) this.#held = "";
    if (cut >= 0) all = all.slice(0, cut);
    for (const [, way] of all.matchAll(ALTERNATE)) this.#alternate = way === "h";
    return all.replace(STRINGS, "").replace(QUESTIONS, "");
  }

  /** Puts the terminal right afterwards: what was played may have been cut anywhere. */
  restore(): string {
    // Leaving a screen that was not entered would move the cursor.
    return (this.#alternate ? "\x1b[?1049l" : "") + RESTORE;
  }
}
