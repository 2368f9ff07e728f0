/**
 * What is expected to come back in the worker's output because it was typed into its terminal
 * (B-05): the kernel echoes a line, and a program such as cat repeats it. Neither is the worker
 * speaking, so neither may be routed.
 */

/** An echo that has not come by then never will; what the worker prints later is its own. */
const EXPIRY_MS = 5000;
/** The terminal's echo and one repetition by a program. */
const TIMES = 2;
/** Rows kept; a delivered body of 8192 bytes has at most as many line breaks. */
const MAX_ROWS = 8300;
const MAX_CHARS = 256 * 1024;
/** A prompt in front of an echoed row is at most this long. */
const MAX_PROMPT = 80;

interface Expected {
  readonly row: string;
  readonly until: number;
  left: number;
}

export class ExpectedEchoes {
  #rows: Expected[] = [];
  #chars = 0;
  #uncertain = { left: 0, until: 0 };

  /** Expects each of these rows back; `now` in monotonic milliseconds. */
  expect(rows: readonly string[], now: number): void {
    this.#expire(now);
    for (const text of rows) {
      const row = text.trim();
      if (row === "") continue;
      this.#rows.push({ row, until: now + EXPIRY_MS, left: TIMES });
      this.#chars += row.length;
    }
    while (this.#rows.length > MAX_ROWS || this.#chars > MAX_CHARS) {
      this.#chars -= this.#rows.shift()!.row.length;
    }
  }

  /** The operator entered a line that could not be reconstructed but holds an address. */
  expectUnknownAddress(now: number): void {
    this.#uncertain = { left: TIMES, until: now + EXPIRY_MS };
  }

  /**
   * True when `text`, an address at the start of a row, is an echo: an equal row, or a piece of an
   * expected one (a line editor that wraps a long line starts a row in its middle).
   */
  takesAddress(text: string, now: number): boolean {
    if (this.#take(text, now, (row, seen) => row === seen || row.includes(seen))) return true;
    if (this.#uncertain.left === 0 || now > this.#uncertain.until) return false;
    this.#uncertain.left--;
    return true;
  }

  /** True when `text`, a row inside a block, is an echo, perhaps behind a prompt. */
  takesRow(text: string, now: number): boolean {
    return this.#take(text, now, (row, seen) =>
      row === seen ||
      (row.length >= 4 && seen.endsWith(row) && seen.length - row.length <= MAX_PROMPT));
  }

  #take(text: string, now: number, equal: (row: string, seen: string) => boolean): boolean {
    if (this.#rows.length === 0) return false;
    this.#expire(now);
    const seen = text.trim();
    if (seen === "") return false;
    const index = this.#rows.findIndex((entry) => equal(entry.row, seen));
    if (index < 0) return false;
    const entry = this.#rows[index]!;
    if (--entry.left === 0) {
      this.#rows.splice(index, 1);
      this.#chars -= entry.row.length;
    }
    return true;
  }

  #expire(now: number): void {
    while (this.#rows.length > 0 && this.#rows[0]!.until < now) {
      this.#chars -= this.#rows.shift()!.row.length;
    }
  }
}
