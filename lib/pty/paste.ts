/** A text as one paste, or as several where an agent shows a longer one as a placeholder (B-09). */

/** More pieces than this take too long: the agent then gets one paste and wraps it as it likes. */
const MAX_PIECES = 100;

/**
 * Pieces of at most `lines` lines and `chars` UTF-16 units that make up `text`; the text itself
 * without a limit. No piece ends inside a character.
 */
export function pastePieces(
  text: string,
  limit: { readonly lines: number; readonly chars: number } | undefined,
): string[] {
  if (limit === undefined) return [text];
  const pieces: string[] = [];
  let piece = "";
  let lines = 1;
  for (const char of text) {
    const full = piece.length + char.length > limit.chars ||
      (char === "\n" && lines === limit.lines);
    if (full && piece !== "") {
      pieces.push(piece);
      piece = "";
      lines = 1;
    }
    if (char === "\n") lines++;
    piece += char;
  }
  pieces.push(piece);
  return pieces.length > MAX_PIECES ? [text] : pieces;
}
