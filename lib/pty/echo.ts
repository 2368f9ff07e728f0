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
  /** Where it stood in its text; a body's rows come back only behind their first. */
  readonly text: number;
  readonly index: number;
  left: number;
}

export class ExpectedEchoes {
  #rows: Expected[] = [];
  #chars = 0;
  #uncertain = { left: 0, until: 0 };
  #texts = 0;
  /** The row of a delivered text that was seen last, until any other row comes. */
  #last: { readonly text: number; readonly index: number } | undefined;

  /** For who takes over (B-17); times are told as what is left of them, since clocks differ. */
  save(now: number) {
    const rows = this.#rows.map(({ until, ...row }) => ({ ...row, ms: until - now }));
    const uncertain = { left: this.#uncertain.left, ms: this.#uncertain.until - now };
    return { rows, uncertain, texts: this.#texts, last: this.#last ?? null };
  }
  restore(kept: ReturnType<ExpectedEchoes["save"]>, now: number): void {
    this.#rows = kept.rows.map(({ ms, ...row }) => ({ ...row, until: now + ms }));
    this.#chars = this.#rows.reduce((sum, { row }) => sum + row.length, 0);
    this.#uncertain = { left: kept.uncertain.left, until: now + kept.uncertain.ms };
    this.#texts = kept.texts;
    this.#last = kept.last ?? undefined;
  }

  /** Expects each of these rows back; `now` in monotonic milliseconds. */
  expect(rows: readonly string[], now: number): void {
    this.#expire(now);
    const text = this.#texts++;
    let index = 0;
    for (const line of rows) {
      const row = line.trim();
      if (row === "") continue;
      this.#rows.push({ row, until: now + EXPIRY_MS, text, index: index++, left: TIMES });
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
   * What an address at the start of a row is: `echo` when it equals an expected row; `part` when it
   * is a piece of one – a program that breaks long lines may have put it at the start of a row, or
   * the worker says what it was asked to say; undefined otherwise.
   */
  addressKind(text: string, now: number): "echo" | "part" | undefined {
    const seen = text.trim();
    if (this.#take(now, (entry) => entry.row === seen)) return "echo";
    if (this.#uncertain.left > 0 && now <= this.#uncertain.until) {
      this.#uncertain.left--;
      return "echo";
    }
    return this.#rows.some((entry) => entry.row.includes(seen)) ? "part" : undefined;
  }

  /**
   * True when `text`, a row inside a block, is an echo: the first row of a delivered text, perhaps
   * behind a prompt, or the one that follows the row seen just before. Any other row is the worker's
   * own, also when it repeats words that it was sent.
   */
  takesRow(text: string, now: number): boolean {
    const seen = text.trim();
    const last = this.#last;
    this.#last = undefined;
    if (seen === "") return false;
    return this.#take(now, (entry) =>
      entry.index === 0
        ? entry.row === seen ||
          (entry.row.startsWith("From:") && seen.endsWith(entry.row) &&
            seen.length - entry.row.length <= MAX_PROMPT)
        : entry.row === seen && last?.text === entry.text && last.index === entry.index - 1);
  }

  #take(now: number, equal: (entry: Expected) => boolean): boolean {
    if (this.#rows.length === 0) return false;
    this.#expire(now);
    const index = this.#rows.findIndex(equal);
    if (index < 0) return false;
    const entry = this.#rows[index]!;
    this.#last = { text: entry.text, index: entry.index };
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
