/**
 * Paints what a terminal model holds into a fresh one of the same size (B-17): for an observer in
 * another process. Texts, widths, dimness, wraps, places, cursor and modes are kept; colours, which
 * nobody here looks at, are not, nor tab stops and character sets. (The library's own serializer
 * loses characters of rows that a resize has wrapped anew.)
 */
import type { IBuffer, IBufferCell, IBufferLine, Terminal } from "@xterm/headless";

/** What the library does not tell of the active buffer; as its own serializer looks at it. */
interface Inner {
  readonly buffer: {
    readonly savedX: number;
    /** Line of the buffer, not of the screen. */
    readonly savedY: number;
    readonly scrollTop: number;
    readonly scrollBottom: number;
  };
  readonly _inputHandler: { readonly _curAttrData: { isDim(): number } };
}

const goTo = (column: number) => `\x1b[${column + 1}G`;
const FILLER = "x";
const WRAP = "\x1b[?7h", NO_WRAP = "\x1b[?7l";

export function paint(terminal: Terminal): string {
  const { cols, rows, buffer, modes } = terminal;
  const { normal, active } = buffer;
  const { buffer: inner, _inputHandler } = (terminal as unknown as { _core: Inner })._core;
  let text = paintBuffer(normal, cols);
  if (active.type === "alternate") {
    text += paintCursor(normal, cols) + "\x1b[?1049h\x1b[H" + paintBuffer(active, cols);
  }
  const saved = Math.min(rows, Math.max(1, inner.savedY - active.baseY + 1));
  text += `\x1b[${saved};${inner.savedX + 1}H\x1b7`;
  const { scrollTop, scrollBottom } = inner;
  if (scrollTop > 0 || scrollBottom < rows - 1) {
    text += `\x1b[${scrollTop + 1};${scrollBottom + 1}r`;
  }
  if (modes.originMode) text += "\x1b[?6h";
  text += paintCursor(active, cols, modes.originMode ? scrollTop : 0);
  if (_inputHandler._curAttrData.isDim() !== 0) text += "\x1b[2m";
  if (modes.bracketedPasteMode) text += "\x1b[?2004h";
  if (modes.insertMode) text += "\x1b[4h";
  return modes.wraparoundMode ? text : text + NO_WRAP;
}

/** Begins at the top left of an empty buffer; afterwards the cursor stands anywhere. */
function paintBuffer(buffer: IBuffer, cols: number): string {
  let text = NO_WRAP;
  for (let i = 0; i < buffer.length; i++) {
    const line = buffer.getLine(i)!;
    // Lines of before a resize may still lie behind the last.
    const wraps = i + 1 < buffer.length && buffer.getLine(i + 1)!.isWrapped;
    // Only printing over the edge makes a line the continuation of another: done with a filler.
    if (wraps) text += WRAP + FILLER.repeat(cols + 1) + "\x1b[A\r" + NO_WRAP;
    if (wraps || line.isWrapped) text += `\x1b[${cols}X`;
    text += paintCells(line, cols);
    if (wraps) text += "\x1b[B\r";
    else if (i + 1 < buffer.length) text += "\r\n";
  }
  return `${text}\x1b[m${WRAP}`;
}

function paintCells(line: IBufferLine, cols: number): string {
  let text = "";
  /** Where the cursor is for certain; -1: nowhere. */
  let at = 0;
  let dim = false;
  let cell: IBufferCell | undefined;
  for (let x = 0; x < cols; x++) {
    cell = line.getCell(x, cell);
    const chars = cell?.getChars() ?? "";
    if (chars === "") continue; // nothing was printed here, or it is the right half of a character
    if (at !== x) text += goTo(x);
    if ((cell!.isDim() !== 0) !== dim) {
      dim = !dim;
      text += dim ? "\x1b[2m" : "\x1b[22m";
    }
    text += chars;
    // What stands apart must not be joined to what was printed just before.
    at = chars >= " " && chars <= "~" ? x + 1 : -1;
  }
  return dim ? `${text}\x1b[22m` : text;
}

/** Puts the cursor where it stands, also behind the last column. Rows count from `top`. */
function paintCursor(buffer: IBuffer, cols: number, top = 0): string {
  const row = `\x1b[${buffer.cursorY - top + 1};`;
  if (buffer.cursorX < cols) return `${row}${buffer.cursorX + 1}H`;
  const line = buffer.getLine(buffer.baseY + buffer.cursorY);
  let x = cols - 1;
  while (x > 0 && line?.getCell(x)?.getWidth() === 0) x--;
  const cell = line?.getCell(x);
  const look = cell === undefined || cell.isDim() === 0 ? "" : "\x1b[2m";
  return `${row}${x + 1}H${look}${cell?.getChars() || " "}\x1b[m`;
}
