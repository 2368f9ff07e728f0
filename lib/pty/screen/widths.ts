/**
 * Cell widths for the terminal model. The model's own table is that of Unicode 6: it gives emoji
 * one cell where tmux and the agents count two, and every later text on the row would be off.
 */

/** What the model asks of a provider of widths. */
export interface WidthProvider {
  readonly version: string;
  wcwidth(codepoint: number): 0 | 1 | 2;
  /** The model's packed form: state << 3 | width << 1 | joins the cell before. */
  charProperties(codepoint: number, preceding: number): number;
}

/** Ranges of East Asian wide characters, first and last; emoji come from the property instead. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18aff],
  [0x1b000, 0x1b2ff],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
];
// Jamo vowels and finals join the syllable before; the soft hyphen is drawn.
const ZERO = /^[\p{M}\p{Cf}\u1160-\u11ff]$/u;
const EMOJI = /^\p{Emoji_Presentation}$/u;
const PICTURE = /^\p{Extended_Pictographic}$/u;

/** States a character leaves for the next one. */
const AFTER_JOINER = 1;
const AFTER_FLAG_LETTER = 2;

const known = new Map<number, 0 | 1 | 2>();

/** Cells of one character on its own. */
export function cellWidth(codepoint: number): 0 | 1 | 2 {
  if (codepoint < 0x7f) return codepoint < 0x20 ? 0 : 1;
  let width = known.get(codepoint);
  if (width === undefined) {
    width = compute(codepoint);
    // Bounded by the number of assigned characters; a hostile stream must not grow it further.
    if (known.size < 65_536) known.set(codepoint, width);
  }
  return width;
}

function compute(codepoint: number): 0 | 1 | 2 {
  if (codepoint < 0xa0) return 0;
  if (codepoint === 0xad) return 1;
  const char = String.fromCodePoint(codepoint);
  if (ZERO.test(char)) return 0;
  if (EMOJI.test(char) && !isFlagLetter(codepoint)) return 2;
  return WIDE.some(([first, last]) => codepoint >= first && codepoint <= last) ? 2 : 1;
}

function isFlagLetter(codepoint: number): boolean {
  return codepoint >= 0x1f1e6 && codepoint <= 0x1f1ff;
}

/** Cells of a text as the model draws it. */
export function textWidth(text: string): number {
  let cells = 0;
  let preceding = 0;
  for (const char of text) {
    const properties = modernWidths.charProperties(char.codePointAt(0)!, preceding);
    const width = (properties >> 1) & 3;
    cells += (properties & 1) === 1 ? width - ((preceding >> 1) & 3) : width;
    preceding = properties;
  }
  return cells;
}

export const modernWidths: WidthProvider = {
  version: "tamq",
  wcwidth: cellWidth,
  charProperties(codepoint, preceding) {
    if (codepoint >= 0x20 && codepoint < 0x7f) return 2; // width 1, joins nothing
    const before = (preceding >> 1) & 3;
    const state = preceding >> 3;
    if (before > 0) {
      if (codepoint === 0x200d) return pack(AFTER_JOINER, before, true);
      if (state === AFTER_JOINER && PICTURE.test(String.fromCodePoint(codepoint))) {
        return pack(0, 2, true);
      }
      if (codepoint >= 0x1f3fb && codepoint <= 0x1f3ff && before === 2) return pack(0, 2, true);
      if (state === AFTER_FLAG_LETTER && isFlagLetter(codepoint)) return pack(0, 2, true);
    }
    const width = cellWidth(codepoint);
    if (width === 0 && before > 0) return pack(state, before, true);
    return pack(isFlagLetter(codepoint) ? AFTER_FLAG_LETTER : 0, width, false);
  },
};

function pack(state: number, width: number, joins: boolean): number {
  return (state << 3) | (width << 1) | (joins ? 1 : 0);
}
