/**
 * Recognises the extent of terminal escape sequences, one byte at a time, so that they may be split
 * anywhere. Serves both directions: what a program prints and what a terminal sends.
 */

export const ESC = 0x1b;
/** Parameters longer than this are of no sequence that anybody here looks at. */
const MAX_PARAMS = 64;

type At = "ground" | "escape" | "intermediate" | "csi" | "string" | "ss3" | "x10";

/** `csi`: ESC [ params final. `escape`: ESC final. `string`: OSC, DCS, APC, PM, SOS. `ss3`: ESC O final. */
export type SequenceKind = "csi" | "escape" | "string" | "ss3" | "x10" | "aborted";

export class EscapeParser {
  #at: At = "ground";
  /** Bytes, not a text: most sequences are of nobody's interest, and a text a byte is garbage. */
  readonly #params = new Uint8Array(MAX_PARAMS);
  #count = 0;
  #rest = 0;
  /** Final byte of the sequence that just completed, as a character. */
  final = "";
  /** Second character of the sequence: `[`, `]`, `P`, … */
  introducer = "";

  /** @param input whether this is what a terminal sends (then ESC O and ESC [ M have arguments). */
  constructor(readonly input = false) {}

  get ground(): boolean {
    return this.#at === "ground";
  }
  /** Parameters and intermediates of the CSI sequence that just completed. */
  get params(): string {
    return String.fromCharCode(...this.#params.subarray(0, this.#count));
  }
  /** Whether nothing but the ESC itself has come: it may be the Escape key. */
  get justEscape(): boolean {
    return this.#at === "escape";
  }
  reset(): void {
    this.#at = "ground";
  }
  /** Where in a sequence it stands, for who takes over (B-17). */
  save() {
    return { at: this.#at, params: this.params, rest: this.#rest, introducer: this.introducer };
  }
  restore(kept: ReturnType<EscapeParser["save"]>): void {
    this.#at = kept.at;
    this.#count = 0;
    for (const char of kept.params) this.#params[this.#count++] = char.charCodeAt(0);
    this.#rest = kept.rest;
    this.introducer = kept.introducer;
  }
  /** Call on ESC in the ground state. */
  begin(): void {
    this.#at = "escape";
  }

  /**
   * Takes one byte inside a sequence; tells its kind when that byte completed it. CAN and SUB abort
   * every sequence, and so does a line feed: an unterminated string must never swallow a session.
   */
  step(byte: number): SequenceKind | undefined {
    if (this.#at === "x10") {
      if (--this.#rest > 0) return undefined;
      this.#at = "ground";
      return "x10";
    }
    if (byte === 0x18 || byte === 0x1a || byte === 0x0a) {
      this.#at = "ground";
      this.introducer = "";
      return "aborted";
    }
    if (byte === ESC) {
      // Ends a string (the `\` behind it is the rest of its terminator) or begins anew.
      if (this.#at !== "string") this.introducer = "";
      this.#at = "escape";
      return undefined;
    }
    switch (this.#at) {
      case "escape":
        return this.#afterEscape(byte);
      case "intermediate":
        if (byte < 0x30) return undefined;
        return this.#complete("escape", byte);
      case "ss3":
        return this.#complete("ss3", byte);
      case "string":
        if (byte !== 0x07) return undefined;
        this.#at = "ground";
        return "string";
      case "csi":
        if (byte >= 0x40 && byte <= 0x7e) {
          if (this.input && byte === 0x4d && this.#count === 0) {
            this.#at = "x10"; // mouse report of old: three bytes follow
            this.#rest = 3;
            return undefined;
          }
          return this.#complete("csi", byte);
        }
        if (this.#count < MAX_PARAMS) this.#params[this.#count++] = byte;
        return undefined;
    }
    return undefined;
  }

  #complete(kind: SequenceKind, byte: number): SequenceKind {
    this.#at = "ground";
    this.final = String.fromCharCode(byte);
    return kind;
  }

  #afterEscape(byte: number): SequenceKind | undefined {
    const char = String.fromCharCode(byte);
    if (char === "\\" && "]PX^_".includes(this.introducer) && this.introducer !== "") {
      this.introducer = "";
      this.#at = "ground";
      return "string";
    }
    this.introducer = char;
    if (char === "[") {
      this.#at = "csi";
      this.#count = 0;
    } else if ("]PX^_".includes(char)) this.#at = "string";
    else if (char === "O" && this.input) this.#at = "ss3";
    else if (!this.input && byte >= 0x20 && byte <= 0x2f) this.#at = "intermediate";
    else return this.#complete("escape", byte);
    return undefined;
  }
}
