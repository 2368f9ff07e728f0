/**
 * Remembers how the row under the cursor was painted, so that a prompt can be painted again for
 * shells that do not do it themselves when their window changes (dash, fish 3).
 */

const LF = 0x0a;
const MAX_ROW = 4096;

/**
 * Colours, erasing, moves within the row, modes that may be set twice, charsets, titles and marks.
 * Anything else – a query above all, which the terminal would answer into the shell's input – is
 * not painted twice.
 */
const HARMLESS = new RegExp(
  "\\x1b\\[[0-9;:]*[mKCDG]|\\x1b\\[\\?(?:2004|25|1|7)[hl]|\\x1b\\[J|\\x1b[()][A-Z0-9]|\\x1b[=>]|" +
    "\\x1b\\](?:[012]|7|133);[^?\\x00-\\x1f]*(?:\\x07|\\x1b\\\\)|\\r",
  "g",
);

export class PromptRow {
  readonly #row = new Uint8Array(MAX_ROW);
  #length = 0;
  #overlong = false;

  /** Takes the next bytes of output. */
  feed(chunk: Uint8Array): void {
    const start = chunk.lastIndexOf(LF) + 1;
    if (start > 0) {
      this.#length = 0;
      this.#overlong = false;
    }
    const tail = chunk.length - start;
    if (this.#overlong || this.#length + tail > MAX_ROW) {
      this.#overlong = true;
      return;
    }
    this.#row.set(start > 0 ? chunk.subarray(start) : chunk, this.#length);
    this.#length += tail;
  }

  /** For who takes over (B-17). */
  save() {
    return { row: [...this.#row.subarray(0, this.#length)], overlong: this.#overlong };
  }
  restore(kept: ReturnType<PromptRow["save"]>): void {
    this.#row.set(kept.row);
    this.#length = kept.row.length;
    this.#overlong = kept.overlong;
  }

  /** The bytes that paint the row again; undefined when that might do anything else. */
  bytes(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#overlong || this.#length === 0) return undefined;
    const row = this.#row.slice(0, this.#length);
    let text = "";
    for (const byte of row) text += String.fromCharCode(byte);
    // deno-lint-ignore no-control-regex
    return /[\x00-\x1f\x7f]/.test(text.replace(HARMLESS, "")) ? undefined : row;
  }

  /** What of the row can be read, roughly: without sequences, also what was painted over. */
  text(): string {
    const text = new TextDecoder().decode(this.#row.subarray(0, this.#length));
    // deno-lint-ignore no-control-regex
    return text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)/g, "")
      // deno-lint-ignore no-control-regex
      .replace(/[\x00-\x1f\x7f]/g, " ");
  }
}
