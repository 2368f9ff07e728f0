/**
 * Everything shown to a person that another program wrote passes here (C-01): a body must not be
 * able to move the cursor, hide text, reverse its direction or look like a row of ours.
 */

// C0, DEL, C1; soft hyphen; zero-width, bidirectional and other format characters; line and
// paragraph separators; variation-selector and tag blocks; non-characters. Tab and line feed are
// handled by the caller's choice.
const UNSAFE =
  // deno-lint-ignore no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\ud800-\udfff]/gu;

/** One line, safe to print: unsafe characters become `\n`, `\t`, `\xNN` or `\u{…}` escapes. */
export function displaySafe(text: string): string {
  return text.replace(UNSAFE, escapeChar);
}

/** Several lines, each safe and behind `gutter`, so that no line of a body can pose as a row of ours. */
export function displaySafeBlock(text: string, gutter: string): string {
  return text.split("\n").map((line) =>
    gutter + line.replace(UNSAFE, (c) => c === "\t" ? c : escapeChar(c))
  ).join("\n");
}

function escapeChar(char: string): string {
  if (char === "\n") return "\\n";
  if (char === "\t") return "\\t";
  if (char === "\r") return "\\r";
  const point = char.codePointAt(0)!;
  return point < 0x100 ? `\\x${point.toString(16).padStart(2, "0")}` : `\\u{${point.toString(16)}}`;
}

// East Asian wide and fullwidth blocks, and emoji, take two cells; marks and middle jamo none.
const WIDE =
  /[\u1100-\u115e\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2fb}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/gu;
const EMPTY = /[\p{Mn}\p{Me}\u1161-\u11ff\ud7b0-\ud7ff]/gu;

/** Terminal cells that `text` takes. */
export function displayWidth(text: string): number {
  // deno-lint-ignore no-control-regex
  if (/^[\u0000-\u007f]*$/.test(text)) return text.length;
  const visible = text.replace(EMPTY, "");
  return [...visible].length + (visible.match(WIDE)?.length ?? 0);
}

/** `12s ago`, `3m ago`, `in 5s`; a date and time once a week has passed. */
export function relativeTime(rfc3339: string, now: number): string {
  const then = Date.parse(rfc3339);
  if (Number.isNaN(then)) return displaySafe(rfc3339);
  const seconds = Math.round(Math.abs(now - then) / 1000);
  if (seconds >= 7 * 86_400) return rfc3339.slice(0, 16).replace("T", " ") + "Z";
  let span = `${seconds}s`;
  if (seconds >= 86_400) span = `${Math.floor(seconds / 86_400)}d`;
  else if (seconds >= 3600) span = `${Math.floor(seconds / 3600)}h`;
  else if (seconds >= 60) span = `${Math.floor(seconds / 60)}m`;
  return then > now + 500 ? `in ${span}` : `${span} ago`;
}
