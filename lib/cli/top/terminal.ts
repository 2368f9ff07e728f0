/**
 * The terminal of a full-screen view: taken over and given back as it was, whatever ends the view.
 * Rows are painted as a whole and only where they changed.
 */
import type { Piece, Row } from "./rows.ts";
import type { Size } from "./frame.ts";

const ESC = "\u001b[";
/** Other screen, no cursor, no wrapping: a row too wide by somebody's reckoning spoils no other. */
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l${ESC}2J`;
const LEAVE = `${ESC}0m${ESC}?7h${ESC}?25h${ESC}?1049l`;
const STYLES: Readonly<Record<NonNullable<Piece["style"]>, number>> = {
  red: 31,
  green: 32,
  yellow: 33,
  dim: 2,
  bold: 1,
  reverse: 7,
};

const encoder = new TextEncoder();

export class FullScreen implements Disposable {
  readonly #colour: boolean;
  #painted: string[] = [];
  #size: Size = { columns: 0, rows: 0 };
  #taken = false;
  readonly #leave = () => this[Symbol.dispose]();

  /** `colour`: red, green and yellow as well; without it only bold, dim and reverse. */
  constructor(colour: boolean) {
    this.#colour = colour;
    Deno.stdin.setRaw(true);
    this.#taken = true;
    // A crash and an exit from anywhere go past `dispose`.
    for (const event of ["unload", "error", "unhandledrejection"]) {
      globalThis.addEventListener(event, this.#leave);
    }
    this.#write(ENTER);
  }

  size(): Size {
    try {
      const { columns, rows } = Deno.consoleSize();
      // A terminal that does not know its size says 0.
      if (columns > 0 && rows > 0) return { columns, rows };
    } catch {
      // The terminal is gone; its end is told otherwise.
    }
    return { columns: 80, rows: 24 };
  }

  paint(rows: readonly Row[], size: Size): void {
    let out = "";
    if (size.columns !== this.#size.columns || size.rows !== this.#size.rows) {
      this.#painted = [];
      this.#size = size;
      out += `${ESC}0m${ESC}2J`;
    }
    rows.forEach((row, index) => {
      const text = row.map((piece) => this.#styled(piece)).join("");
      if (this.#painted[index] === text) return;
      this.#painted[index] = text;
      out += `${ESC}${index + 1};1H${text}${ESC}K`;
    });
    // All at once where the terminal can (synchronised output); others ignore it.
    if (out !== "") this.#write(`${ESC}?2026h${out}${ESC}?2026l`);
  }

  [Symbol.dispose](): void {
    if (!this.#taken) return;
    this.#taken = false;
    for (const event of ["unload", "error", "unhandledrejection"]) {
      globalThis.removeEventListener(event, this.#leave);
    }
    try {
      this.#write(LEAVE);
    } catch {
      // nobody is left to see it
    }
    try {
      Deno.stdin.setRaw(false);
    } catch {
      // the terminal is gone
    }
  }

  #styled({ text, style }: Piece): string {
    if (style === undefined || text === "") return text;
    const code = STYLES[style];
    if (!this.#colour && code >= 30) return text;
    return `${ESC}${code}m${text}${ESC}0m`;
  }

  #write(text: string): void {
    const bytes = encoder.encode(text);
    for (let at = 0; at < bytes.length;) {
      try {
        at += Deno.stdout.writeSync(bytes.subarray(at));
      } catch (error) {
        if (!(error instanceof Deno.errors.WouldBlock)) throw error;
      }
    }
  }
}

export type Key =
  | "up"
  | "down"
  | "page-up"
  | "page-down"
  | "home"
  | "end"
  | "quit"
  | { readonly char: string };

const SEQUENCES: Readonly<Record<string, Key>> = {
  "A": "up",
  "B": "down",
  "5~": "page-up",
  "6~": "page-down",
  "H": "home",
  "1~": "home",
  "F": "end",
  "4~": "end",
};

/** Keys of what a terminal sent; unknown sequences are none. */
export function keysOf(text: string): Key[] {
  const keys: Key[] = [];
  // deno-lint-ignore no-control-regex
  for (const match of text.matchAll(/\u001b[[O]([0-9;]*[~A-Za-z])|\u001b|[^\u001b]/gu)) {
    const [all, sequence] = match;
    if (sequence !== undefined) {
      const key = SEQUENCES[sequence];
      if (key !== undefined) keys.push(key);
    } else if (all === "\u0003" || all === "\u0004") keys.push("quit");
    else if (all !== "\u001b") keys.push({ char: all });
  }
  return keys;
}
