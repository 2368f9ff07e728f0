/**
 * The terminal model behind an observer: `@xterm/headless` with the hooks that the observer needs.
 * Loaded only for programs that have a screen profile; a plain command never pays for it.
 */
import type { IMarker, Terminal } from "@xterm/headless";
import { paint } from "./painting.ts";
import { joined, NOTHING, wholeCharacters } from "./characters.ts";
import { modernWidths } from "./widths.ts";

/** Rows kept above the screen; bounds the model's memory and how far back a repaint is recognised. */
export const SCROLLBACK_ROWS = 2000;

/**
 * Sequences whose count the model loops over, and the most that it is let do: with 2^31 it is busy
 * for more than 20 s, and the relay with it. Nobody scrolls or repeats beyond a screen.
 */
const MOST_COUNT: Readonly<Record<string, number>> = {
  b: 20_000, // repeats a character
  I: 2000, // tabs
  Z: 2000,
  L: 2000, // lines
  M: 2000,
  S: 2000,
  T: 2000,
};
/** Ends whatever sequence is open. */
const CANCEL = new Uint8Array([0x18]);

/** One logical row: lines that the terminal itself wrapped are joined. */
export interface ScreenRow {
  /** Without trailing blanks. */
  readonly text: string;
  /** Index in the buffer of its first line. */
  readonly line: number;
}

/** A place in the buffer that moves with its line. */
export interface Mark {
  /** Index of the line, or -1 once gone. */
  readonly line: number;
  /** `trimmed`: scrolled out of the kept rows. `lost`: cleared, reset, resized or switched away. */
  readonly gone: "no" | "trimmed" | "lost";
  release(): void;
}

export interface ModelHooks {
  /** OSC 0 and 2. Called in the order of the stream. */
  onTitle(title: string): void;
  /** OSC 7501, without its number. Called in the order of the stream. */
  onStatusReport(payload: string): void;
  /** The whole screen was or may be repainted: clear, reset, resize or buffer switch. */
  onRepaint(): void;
  /** The model no longer shows what the terminal shows; called within the parsing. */
  onLost(): void;
}

/** Loads the terminal model; done before a worker is spawned, since the checkout may change later. */
export async function loadModel(): Promise<typeof Terminal> {
  const module = await import("@xterm/headless");
  return module.default.Terminal;
}

class LineMark implements Mark {
  gone: "no" | "trimmed" | "lost" = "no";
  constructor(readonly marker: IMarker) {
    // Every other way to go is announced before it happens, see `lose`; what remains is trimming.
    marker.onDispose(() => {
      if (this.gone === "no") this.gone = "trimmed";
    });
  }
  get line(): number {
    return this.gone === "no" ? this.marker.line : -1;
  }
  lose(): void {
    if (this.gone !== "no") return;
    this.gone = "lost";
    this.marker.dispose();
  }
  release(): void {
    this.lose();
  }
}

export class ScreenModel {
  readonly #terminal: Terminal;
  readonly #hooks: ModelHooks;
  #marks = new Set<LineMark>();
  /** The beginning of a character whose end has not come yet. */
  #begun: Uint8Array = NOTHING;
  /** Told already; until it is reset. */
  #lost = false;

  constructor(
    constructorOf: typeof Terminal,
    size: { readonly cols: number; readonly rows: number },
    hooks: ModelHooks,
  ) {
    this.#hooks = hooks;
    this.#terminal = new constructorOf({
      cols: size.cols,
      rows: size.rows,
      scrollback: SCROLLBACK_ROWS,
      allowProposedApi: true,
      logLevel: "off",
    });
    this.#terminal.unicode.register(modernWidths);
    this.#terminal.unicode.activeVersion = modernWidths.version;
    // What the model would answer to queries goes nowhere: the real terminal answers them.
    this.#watch();
    this.#survive();
  }

  get cols(): number {
    return this.#terminal.cols;
  }
  get rows(): number {
    return this.#terminal.rows;
  }
  get alternate(): boolean {
    return this.#terminal.buffer.active.type === "alternate";
  }
  get synchronised(): boolean {
    return this.#terminal.modes.synchronizedOutputMode;
  }
  get bracketedPaste(): boolean {
    return this.#terminal.modes.bracketedPasteMode;
  }
  /** Line of the cursor in the buffer. */
  get cursorLine(): number {
    const buffer = this.#terminal.buffer.active;
    return buffer.baseY + buffer.cursorY;
  }
  get cursorColumn(): number {
    return this.#terminal.buffer.active.cursorX;
  }
  /** Index of the first line of the screen; those before are the scrollback. */
  get screenTop(): number {
    return this.#terminal.buffer.active.baseY;
  }

  /**
   * Parses `bytes`, then calls `done`. The bytes must not change until then. Wherever a character is
   * cut, the model gets it whole: it loses those that are cut behind a byte 0x80 (xterm.js 6003),
   * and every bullet, dash and ellipsis has one.
   */
  write(bytes: Uint8Array, done: () => void): void {
    const all = this.#begun.length === 0 ? bytes : joined(this.#begun, bytes);
    const end = wholeCharacters(all);
    this.#begun = end === all.length ? NOTHING : all.slice(end);
    this.#terminal.write(all.subarray(0, end), done);
  }

  /** Ends a sequence that was cut in two. */
  cancel(): void {
    this.#terminal.write(CANCEL);
  }

  /** What paints all that is kept, and the modes, into a fresh model of the same size (B-17). */
  paint(): string {
    return paint(this.#terminal);
  }

  resize(cols: number, rows: number): void {
    if (cols === this.cols && rows === this.rows) return;
    this.#loseWhere(() => true);
    this.#terminal.resize(cols, rows);
    this.#hooks.onRepaint();
  }

  /** Forgets everything, as after a gap. */
  reset(): void {
    this.#loseWhere(() => true);
    this.#begun = NOTHING;
    this.#lost = false;
    this.#terminal.reset();
  }

  dispose(): void {
    this.#loseWhere(() => true);
    this.#terminal.dispose();
  }

  /** Marks a line of the active buffer; undefined in the alternate one, which has no history. */
  mark(line: number): Mark | undefined {
    const buffer = this.#terminal.buffer.active;
    if (buffer.type === "alternate") return undefined;
    const marker = this.#terminal.registerMarker(line - (buffer.baseY + buffer.cursorY));
    if (marker === undefined) return undefined;
    const mark = new LineMark(marker);
    this.#marks.add(mark);
    marker.onDispose(() => this.#marks.delete(mark));
    return mark;
  }

  /**
   * Logical rows of the active buffer from line `from` on. What a resize left of a line behind the
   * last column is on nobody's screen.
   */
  snapshot(from = 0): ScreenRow[] {
    const buffer = this.#terminal.buffer.active;
    const found: ScreenRow[] = [];
    const end = buffer.length;
    let start = Math.max(0, from);
    while (start > 0 && buffer.getLine(start)?.isWrapped) start--;
    for (let i = start; i < end;) {
      let text = "";
      const first = i;
      for (;;) {
        const line = buffer.getLine(i)!;
        const next = i + 1 < end ? buffer.getLine(i + 1) : undefined;
        i++;
        if (next === undefined || !next.isWrapped) {
          text += line.translateToString(true, 0, this.cols);
          break;
        }
        const part = line.translateToString(false, 0, this.cols);
        // A wide character that did not fit leaves the last cell empty.
        const last = line.getCell(this.cols - 1);
        const dropped = last !== undefined && last.getChars() === "" && last.getWidth() === 1;
        text += dropped ? part.slice(0, -1) : part;
      }
      // An application may paint blanks to the edge: they carry nothing.
      found.push({ text: text.trimEnd(), line: first });
    }
    return found;
  }

  /** Whether the text from `column` of a line on is painted dim, as placeholders and thoughts are. */
  isDim(line: number, column: number): boolean {
    const cells = this.#terminal.buffer.active.getLine(line);
    for (let x = column; cells !== undefined && x < this.cols; x++) {
      const cell = cells.getCell(x);
      if (cell === undefined || cell.getChars().trim() === "") continue;
      return cell.isDim() !== 0;
    }
    return false;
  }

  #lose(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.#hooks.onLost();
  }

  #loseWhere(test: (line: number) => boolean): void {
    for (const mark of [...this.#marks]) if (test(mark.line)) mark.lose();
  }

  /**
   * The model parses in timers of its own, where an error would end the broker and its worker, and
   * it has such errors (6.0.0: `ESC [ 1 J` in the last cell of a screen without history). Its parser
   * is reached through a private field: the version is pinned, and a test fails when it has moved.
   */
  #survive(): void {
    const { _inputHandler: handler } = (this.#terminal as unknown as {
      _core: { _inputHandler: { parse(...args: unknown[]): unknown } };
    })._core;
    const parse = handler.parse.bind(handler);
    handler.parse = (...args) => {
      try {
        return parse(...args);
      } catch {
        this.#lose();
        return undefined;
      }
    };
  }

  #watch(): void {
    const { parser } = this.#terminal;
    for (const [final, most] of Object.entries(MOST_COUNT)) {
      parser.registerCsiHandler({ final }, (params) => {
        if (Number(params[0] ?? 0) <= most) return false;
        this.#lose();
        return true;
      });
    }
    const title = (text: string) => {
      this.#hooks.onTitle(text.slice(0, 512));
      return false;
    };
    parser.registerOscHandler(0, title);
    parser.registerOscHandler(2, title);
    parser.registerOscHandler(7501, (payload) => {
      this.#hooks.onStatusReport(payload.slice(0, 512));
      return true;
    });
    // Each of these disposes markers on its way; the marks must know it was no trimming.
    parser.registerCsiHandler({ final: "J" }, (params) => {
      this.#erase(Number(params[0] ?? 0));
      return false;
    });
    parser.registerEscHandler({ final: "c" }, () => {
      this.#loseWhere(() => true);
      this.#hooks.onRepaint();
      return false;
    });
    for (const final of ["h", "l"]) {
      parser.registerCsiHandler({ prefix: "?", final }, (params) => {
        if (params.some((param) => param === 47 || param === 1047 || param === 1049)) {
          this.#loseWhere(() => true);
          this.#hooks.onRepaint();
        }
        return false;
      });
    }
  }

  #erase(kind: number): void {
    const top = this.screenTop;
    const cursor = this.cursorLine;
    if (kind === 0) {
      this.#loseWhere((line) => line >= cursor);
      if (cursor === top && this.cursorColumn === 0) this.#hooks.onRepaint();
    } else if (kind === 1) this.#loseWhere((line) => line >= top && line <= cursor);
    else if (kind === 2) {
      this.#loseWhere((line) => line >= top);
      this.#hooks.onRepaint();
    } else if (kind === 3) this.#loseWhere((line) => line < top);
  }
}
