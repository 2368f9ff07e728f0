/** Rows of a full-screen view: safe texts in styles, cut and padded to terminal cells. */
import { displaySafe } from "../../base/display.ts";
import type { Style } from "../colour.ts";
import { displayWidth } from "../render.ts";

export interface Piece {
  readonly text: string;
  readonly style?: Style | "reverse";
}
export type Row = readonly Piece[];

/** One column; `rank` 0 goes last when there is no room. */
export interface Column {
  readonly title: string;
  /** Below this width it is left out rather than cut. */
  readonly least: number;
  readonly most: number;
  readonly rank: number;
  readonly right?: boolean;
}

/** `text` safe to print and at most `width` cells wide, its end marked when it was cut. */
export function fit(text: string, width: number): string {
  const safe = displaySafe(text);
  if (displayWidth(safe) <= width) return safe;
  if (width <= 0) return "";
  let cut = "";
  let used = 1;
  for (const char of safe) {
    const cells = displayWidth(char);
    if (used + cells > width) break;
    cut += char;
    used += cells;
  }
  return cut + "…";
}

const GAP = 2;

/** Header and rows of a table that fits into `width`: columns shrink, then the least ones go. */
export function tableRows(
  columns: readonly Column[],
  rows: readonly (readonly Piece[])[],
  width: number,
): { readonly header: Row; readonly rows: readonly Row[] } {
  let kept = columns.map((column, index) => {
    const content = Math.max(
      displayWidth(column.title),
      ...rows.map((row) => displayWidth(displaySafe(row[index]!.text))),
    );
    return { column, index, width: Math.min(column.most, content) };
  });
  const excess = () =>
    kept.reduce((sum, one) => sum + one.width, 0) + GAP * (kept.length - 1) - width;
  while (excess() > 0 && kept.length > 1) {
    const [widest] = kept.filter((one) => one.width > one.column.least)
      .sort((a, b) => (b.width - b.column.least) - (a.width - a.column.least));
    if (widest !== undefined) {
      widest.width = Math.max(widest.column.least, widest.width - excess());
      continue;
    }
    const last = kept.reduce((a, b) => b.column.rank > a.column.rank ? b : a);
    kept = kept.filter((one) => one !== last);
  }
  const cells = (pieces: readonly Piece[]): Row =>
    kept.flatMap(({ column, index, width }, at) => {
      const { text, style } = pieces[index]!;
      const cut = fit(text, width);
      const room = " ".repeat(Math.max(0, width - displayWidth(cut)));
      const end = at === kept.length - 1;
      const piece = { text: cut, style };
      const padded: Piece[] = column.right
        ? [{ text: room }, piece]
        : end
        ? [piece]
        : [piece, { text: room }];
      return end ? padded : [...padded, { text: " ".repeat(GAP) }];
    });
  return {
    header: cells(columns.map(({ title }) => ({ text: title, style: "dim" }))),
    rows: rows.map(cells),
  };
}

/** The row cut at `width` cells. */
export function cutRow(row: Row, width: number): Row {
  const cut: Piece[] = [];
  let left = width;
  for (const { text, style } of row) {
    if (left <= 0) break;
    const piece = fit(text, left);
    cut.push({ text: piece, style });
    left -= displayWidth(piece);
  }
  return cut;
}
