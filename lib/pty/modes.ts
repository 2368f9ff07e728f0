/**
 * Watches a terminal's output for the modes that decide what may be observed and how text may be
 * injected (B-09): bracketed paste, alternate screen. Sequences may be split anywhere.
 */
import { ESC, EscapeParser } from "./escapes.ts";

export type ModeName = "bracketedPaste" | "alternateScreen";

/** A mode was set or reset; `end` is the offset just behind its sequence in the chunk. */
export interface ModeChange {
  readonly end: number;
  readonly mode: ModeName;
  readonly on: boolean;
}

export class ModeTracker {
  bracketedPaste = false;
  alternateScreen = false;
  /** Menus hide the cursor; line editors show it. */
  cursorHidden = false;
  /** Whether the cursor is known to stand in the first column. */
  lineStart = true;
  readonly #escape = new EscapeParser();
  /** Continuation bytes still owed by a UTF-8 character. */
  #owed = 0;

  /**
   * True when the output so far ends outside any escape sequence and any multi-byte character:
   * only then may something else be written to the terminal in between.
   */
  get settled(): boolean {
    return this.#escape.ground && this.#owed === 0;
  }

  /** For who takes over (B-17). */
  save() {
    const { bracketedPaste, alternateScreen, cursorHidden, lineStart } = this;
    const flags = { bracketedPaste, alternateScreen, cursorHidden, lineStart };
    return { flags, escape: this.#escape.save(), owed: this.#owed };
  }
  restore(kept: ReturnType<ModeTracker["save"]>): void {
    Object.assign(this, kept.flags);
    this.#escape.restore(kept.escape);
    this.#owed = kept.owed;
  }

  /** Takes the next bytes; returns what changed, in order. */
  feed(chunk: Uint8Array): ModeChange[] {
    const changes: ModeChange[] = [];
    let i = 0;
    while (i < chunk.length) {
      if (this.#escape.ground) {
        i = chunk.indexOf(ESC, i);
        if (i < 0) break;
        this.#escape.begin();
      } else {
        const kind = this.#escape.step(chunk[i]!);
        if (kind === "csi") this.#csi(i + 1, changes);
        else if (kind === "escape" && this.#escape.final === "c") this.#reset(i + 1, changes);
      }
      i++;
    }
    this.#countOwed(chunk);
    if (chunk.length > 0) this.lineStart = chunk[chunk.length - 1] === 0x0a;
    return changes;
  }

  #csi(end: number, changes: ModeChange[]): void {
    const { final } = this.#escape;
    if (final !== "h" && final !== "l") return;
    const { params } = this.#escape;
    if (!params.startsWith("?")) return;
    for (const param of params.slice(1).split(";")) {
      if (param === "25") this.cursorHidden = final === "l";
      else if (param === "2004") this.#set("bracketedPaste", final === "h", end, changes);
      else if (param === "1049" || param === "1047" || param === "47") {
        this.#set("alternateScreen", final === "h", end, changes);
      }
    }
  }

  /** RIS, the terminal's full reset. */
  #reset(end: number, changes: ModeChange[]): void {
    this.cursorHidden = false;
    if (this.bracketedPaste) this.#set("bracketedPaste", false, end, changes);
    if (this.alternateScreen) this.#set("alternateScreen", false, end, changes);
  }

  #set(mode: ModeName, on: boolean, end: number, changes: ModeChange[]): void {
    this[mode] = on;
    // Also told when it was on already: a repeated ?2004h is how a shell announces its prompt.
    changes.push({ end, mode, on });
  }

  /** Looks back over the last bytes for an unfinished character. */
  #countOwed(chunk: Uint8Array): void {
    let continuation = 0;
    for (let i = chunk.length - 1; i >= 0 && continuation < 4; i--) {
      const byte = chunk[i]!;
      if ((byte & 0xc0) === 0x80) {
        continuation++;
        continue;
      }
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      this.#owed = Math.max(0, length - 1 - continuation);
      return;
    }
    // Nothing but continuation bytes: they pay for a character that an earlier chunk began.
    this.#owed = Math.max(0, this.#owed - continuation);
  }
}
