/**
 * Undoes the word wrap of an agent: it breaks long lines itself, with an indent, so that a wrap
 * looks like a line break. Greedy wrapping breaks only where the next word did not fit: a break
 * where it would have fitted is the writer's own.
 */
import { cellWidth, textWidth } from "./widths.ts";

export interface PaintedRow {
  /** Without the agent's indent and trailing blanks. */
  readonly text: string;
  /** Line in the buffer. */
  readonly line: number;
}

export interface WrapRule {
  /** Cells that a row offers for text. */
  readonly width: number;
  /** Breaks between ideographs as well, not only at blanks. */
  readonly wideAnywhere: boolean;
  /** Breaks inside a word as well, behind any of these between letters or digits. */
  readonly breakAfter: string;
}

export interface WrittenLine {
  text: string;
  readonly line: number;
  /**
   * The row before ended so close to the edge that this "line" may as well be its continuation,
   * and it begins like an address: nobody can tell which.
   */
  readonly uncertain: boolean;
}

/** Joins soft-wrapped rows; `isAddress` tells texts that would begin a block. */
export function writtenLines(
  rows: readonly PaintedRow[],
  rule: WrapRule,
  isAddress: (text: string) => boolean,
): WrittenLine[] {
  const lines: WrittenLine[] = [];
  for (const [i, row] of rows.entries()) {
    const before = rows[i - 1];
    if (before === undefined || !wraps(before.text, row.text, rule)) {
      lines.push({ text: row.text, line: row.line, uncertain: false });
      continue;
    }
    if (isAddress(row.text.trimStart())) {
      lines.push({ text: row.text, line: row.line, uncertain: true });
      continue;
    }
    lines.at(-1)!.text += glue(before.text, row.text, rule) + row.text.trimStart();
  }
  return lines;
}

function wraps(before: string, next: string, rule: WrapRule): boolean {
  const word = firstPiece(next, rule);
  const breakable = rule.wideAnywhere && word !== "" && cellWidth(word.codePointAt(0)!) === 2;
  const joined = (breakable && isWideEnd(before)) || cutInWord(before, next, rule);
  const needed = (joined ? 0 : 1) + (breakable ? 2 : textWidth(word));
  return textWidth(before) + needed > rule.width;
}

/** What stood between the two rows: a blank, or nothing where one word was cut. */
function glue(before: string, next: string, rule: WrapRule): "" | " " {
  if (cutInWord(before, next, rule)) return "";
  const width = textWidth(before);
  const word = firstWord(next);
  const wide = word !== "" && cellWidth(word.codePointAt(0)!) === 2;
  // Wider than the screen: the terminal wrapped it, the agent had left that word whole. Not full
  // to the last cell (a wide character may have left one): broken at a blank.
  if (width > rule.width || width < rule.width - (wide ? 1 : 0)) return " ";
  if (wide && isWideEnd(before) && rule.wideAnywhere) return "";
  // One word that no row could hold, as an address on the web: cut where the row was full.
  const last = /\S+$/u.exec(before)?.[0] ?? "";
  return textWidth(last) + textWidth(word) > rule.width ? "" : " ";
}

function firstWord(text: string): string {
  return /\S+/u.exec(text)?.[0] ?? "";
}

/** Up to the first place where the word may be broken. */
function firstPiece(text: string, rule: WrapRule): string {
  const word = firstWord(text);
  for (let i = 1; i < word.length - 1; i++) {
    if (breaksAt(word, i, rule)) return word.slice(0, i + 1);
  }
  return word;
}

/** Whether the word may be broken behind the character at `i`. */
function breaksAt(word: string, i: number, rule: WrapRule): boolean {
  return rule.breakAfter.includes(word[i]!) && LETTER.test(word[i - 1]!) &&
    LETTER.test(word[i + 1]!);
}

const LETTER = /^[\p{L}\p{N}\ud800-\udfff]$/u;

function cutInWord(before: string, next: string, rule: WrapRule): boolean {
  if (rule.breakAfter === "" || before.length < 2) return false;
  const word = before.slice(-2) + (firstWord(next)[0] ?? " ");
  return breaksAt(word, 1, rule);
}

function isWideEnd(text: string): boolean {
  const last = [...text.slice(-2)].at(-1);
  return last !== undefined && cellWidth(last.codePointAt(0)!) === 2;
}
