/**
 * Text laid out for the width at hand (C-01). On a terminal nothing runs into the next line by
 * itself: what is longer is continued below, indented, or – where only its beginning matters – cut.
 * Elsewhere the width is infinite and every record keeps its one line.
 */
export { displayWidth } from "../base/display.ts";
import { displaySafe, displayWidth } from "../base/display.ts";
import { type ColorFlag, type Paint, paintFor, plain, type Style } from "./colour.ts";
import type { CliContext } from "./context.ts";

/** How output looks: its width in terminal cells, and whether it is coloured. */
export interface Look {
  readonly width: number;
  readonly paint: Paint;
}

export const PLAIN: Look = { width: Infinity, paint: plain };

export function lookOf(
  context: Pick<CliContext, "env" | "stdoutIsTerminal" | "columns">,
  flags: ColorFlag = {},
): Look {
  const width = context.stdoutIsTerminal() ? context.columns() : Infinity;
  return { width, paint: paintFor(context, flags.color) };
}

/** The beginning of a safe `text` that fits, its end marked when it was cut. */
export function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  return takeCells(text, width - 1)[0] + "…";
}

/** Splits a safe `text` into what fits into `width` cells, one character at least, and the rest. */
function takeCells(text: string, width: number): [string, string] {
  let used = 0;
  let at = 0;
  for (const char of text) {
    const cells = displayWidth(char);
    if (used + cells > width && at > 0) break;
    used += cells;
    at += char.length;
  }
  return [text.slice(0, at), text.slice(at)];
}

/** A line that is no table's, continued below itself where it is too long; a gutter goes on. */
export function continued(line: string, look: Look): string {
  if (displayWidth(line) <= look.width) return line;
  const gutter = /^ *│ ?/.exec(line)?.[0];
  if (gutter === undefined) return wrap(line, look.width - INDENT).join(`\n${" ".repeat(INDENT)}`);
  const body = wrap(line.slice(gutter.length), look.width - gutter.length);
  return gutter + body.join(`\n${gutter.replace("│", "┊")}`);
}

/** Below this a column of text is not worth its name. */
const LEAST_TEXT = 20;
const INDENT = 4;

/** Lines of at most `width` cells, broken at blanks where there are some. */
export function wrap(text: string, width: number): string[] {
  if (displayWidth(text) <= width) return [text];
  const lines: string[] = [];
  for (let rest = text; rest !== "";) {
    const [head, tail] = takeCells(rest, width);
    const blank = tail === "" || tail.startsWith(" ") ? -1 : head.lastIndexOf(" ");
    const end = blank > 0 && head.slice(0, blank).trim() !== "" ? blank : head.length;
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).replace(/^ +/, "");
  }
  return lines;
}

export type Cell = string | { readonly text: string; readonly style?: Style };
interface SafeCell {
  readonly text: string;
  readonly style: Style | undefined;
  readonly cells: number;
}

export interface TableOptions {
  /** Of the last column only the beginning is shown where there is no room. */
  readonly cutLast?: boolean;
  /** The first row names the columns. */
  readonly header?: boolean;
  /** One record that is a line rather than a table: it flows where it does not fit. */
  readonly line?: boolean;
}

/** Columns padded to their widest cell, the last one not; cells are made safe here. */
export function table(
  rows: readonly (readonly Cell[])[],
  look: Look = PLAIN,
  options: TableOptions = {},
): string {
  const safe = rows.map((row, index) =>
    row.map((cell): SafeCell => {
      const { text, style } = typeof cell === "string" ? { text: cell } : cell;
      const shown = displaySafe(text);
      const own = options.header && index === 0 ? "dim" : style;
      return { text: shown, style: own, cells: displayWidth(shown) };
    })
  );
  const widths: number[] = [];
  for (const row of safe) {
    row.forEach(({ cells }, i) => widths[i] = Math.max(widths[i] ?? 0, cells));
  }
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0);
  const last = widths.at(-1) ?? 0;
  const least = options.line ? last : Math.min(LEAST_TEXT, last);
  if (before + least > look.width) {
    // Too narrow for columns: each record flows over as many lines as it takes.
    const records = options.header ? safe.slice(1) : safe;
    return records.map((row) => flow(row, look)).join("\n");
  }
  return safe.map((row) => {
    const columns = row.map(({ text, style, cells }, i) => {
      if (i < row.length - 1) return look.paint(style, text) + " ".repeat(widths[i]! - cells);
      const start = row.length === widths.length
        ? before
        : widths.slice(0, i).reduce((sum, width) => sum + width + 2, 0);
      const room = look.width - start;
      if (options.cutLast) return look.paint(style, cut(text, room));
      return wrap(text, room).map((line) => look.paint(style, line)).join(`\n${" ".repeat(start)}`);
    });
    return columns.join("  ").replace(/ +$/gm, "");
  }).join("\n");
}

/** Cells one after the other, on further lines where they do not fit. */
function flow(row: readonly SafeCell[], look: Look): string {
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const { text, style, cells } of row) {
    if (text === "") continue;
    if (line !== "" && used + 2 + cells > look.width) {
      lines.push(line);
      line = "";
      used = 0;
    }
    const indent = lines.length === 0 ? 0 : INDENT;
    if (line === "" && indent + cells > look.width) {
      const [first, ...more] = wrap(text.trimStart(), Math.max(8, look.width - INDENT));
      lines.push(
        " ".repeat(indent) + look.paint(style, first!),
        ...more.map((part) => " ".repeat(INDENT) + look.paint(style, part)),
      );
      continue;
    }
    const gap = line === "" ? " ".repeat(indent) : "  ";
    line += gap + look.paint(style, text);
    used += gap.length + cells;
  }
  if (line !== "") lines.push(line);
  return lines.join("\n");
}

/**
 * Lines of a body, each safe and behind a gutter. On a terminal long ones are continued behind a
 * gutter of another form: no part of a body begins at the edge, where rows of ours stand.
 */
export function bodyBlock(text: string, look: Look = PLAIN): string {
  const room = Math.max(8, look.width - 4);
  return text.split("\n").flatMap((line) => {
    const safe = line.split("\t").map(displaySafe).join("\t");
    if (look.width === Infinity) return [`  │ ${safe}`];
    let rest = safe.replaceAll("\t", "    ");
    const parts: string[] = [];
    do {
      const [head, tail] = takeCells(rest, room);
      parts.push(`  ${parts.length === 0 ? "│" : "┊"} ${head}`);
      rest = tail;
    } while (rest !== "");
    return parts;
  }).join("\n");
}
