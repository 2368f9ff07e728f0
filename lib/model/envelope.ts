/**
 * The two lines of text that the product is about: `To:<repo>: text`, which a person or an agent
 * writes, and `From:<sender>: text`, which the target is shown (B-02, B-03, B-05).
 */
import type { Provenance } from "./message.ts";

/** Sender names that no repository may take (T-07). */
export const LOCAL_SENDER = "local";
export const ENGINE_SENDER = "coordination-engine";
export const RESERVED_SENDERS: readonly string[] = [LOCAL_SENDER, ENGINE_SENDER];

export interface Addressed {
  readonly target: string;
  /** The rest of the line after `: `, unchanged. */
  readonly text: string;
}

/**
 * Reads `To:<registered name>: text` at the very start of `line`. Names may hold `/`, `:` and
 * spaces, so the longest registered name that is followed by `:` wins (B-05). Undefined when the
 * line addresses no registered name.
 */
export function parseAddress(line: string, names: Iterable<string>): Addressed | undefined {
  if (!line.startsWith("To:")) return undefined;
  const rest = line.slice(3);
  let best: string | undefined;
  for (const name of names) {
    if (name.length === 0 || (best !== undefined && name.length <= best.length)) continue;
    if (!rest.startsWith(name + ":")) continue;
    const after = rest[name.length + 1];
    if (after === undefined || after === " " || after === "\t") best = name;
  }
  if (best === undefined) return undefined;
  return { target: best, text: rest.slice(best.length + 1).replace(/^[ \t]/, "") };
}

/**
 * For a line that looks like an address but names nobody registered: the name as written, up to
 * the first `: `. Used only to explain (E-07), never to route.
 */
export function unknownAddress(line: string): string | undefined {
  return /^To:([^\s:][^:]{0,199}):(?:[ \t]|$)/.exec(line)?.[1];
}

/** `alpha`, or `alpha/o` when a person spoke (B-05). The label is for people; the record is the truth. */
export function senderLabel(sender: string, provenance: Provenance): string {
  const person = provenance === "operator" || (provenance === "cli" && sender === LOCAL_SENDER);
  return person ? `${sender}/o` : sender;
}

/** What a target is shown. */
export interface Envelope {
  readonly message_id: string;
  readonly sender_repo: string;
  readonly provenance: Provenance;
  readonly body: string;
  /** In `acknowledged` mode the text says how to acknowledge (T-24). */
  readonly ack_requested: boolean;
}

/**
 * The lines of the envelope, ready for a terminal. No line of them can be read as an address or as
 * another sender's, nor can any piece of one: a program may break lines anywhere, or repeat what it
 * read much later.
 */
export function envelopeLines(envelope: Envelope): string[] {
  const [first = "", ...more] = envelope.body.split("\n");
  const label = senderLabel(envelope.sender_repo, envelope.provenance);
  const lines = [`From:${label}: ${first}`, ...more.map(quoteHeader)].map(disarm);
  if (envelope.ack_requested) lines.push(`(tamq ack ${envelope.message_id})`);
  return lines;
}

/**
 * `To.:alpha: x` for every `To:alpha: x` in a line: said, not sent. A dot, since what quotes or
 * unquotes (a shell's `read`, JSON) adds and removes backslashes, and what fills paragraphs, blanks.
 */
function disarm(line: string): string {
  return line.replace(/To:(?=\S)/g, "To.:");
}

/** Puts `> ` before a body line that could pose as an address or another sender to a reader (B-05). */
function quoteHeader(line: string): string {
  return looksLikeHeader(line) ? `> ${line}` : line;
}

/** Letters and colons that look like those of `To:` and `From:`, beyond compatibility forms. */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  "t": "\u0422\u0442\u03a4\u03c4\u1d1b\u13a2\ua4d4\u2ca6\u2ca7\u0166\u0167",
  "o":
    "0\u041e\u043e\u039f\u03bf\u0555\u0585\u1d0f\ua4f3\u2c9e\u2c9f\u00d8\u00f8\u03c3\u0ae6\u06c1\u0d20",
  "f": "\u0192\u03dc\u03dd\ua4dd\ua798\ua799\ua730\u1e9d\u0493",
  "r": "\u0433\u1d26\u0280\u13a1\u13d2\ua4e3\uab47\uab48\u2c84\u2c85",
  "m": "\u041c\u043c\u039c\u1d0d\ua4df\u13b7\u2c98\u2c99\u03fa",
  ":": "\u2236\u02d0\ua789\u02f8\u05c3\u0589\u1361\u16ec\u205a\u205d\u0703\u0704\u0a83\ufe30",
};
const FOLD = new Map(
  Object.entries(LOOK_ALIKES).flatMap(([plain, others]) =>
    [...others].map((other) => [other, plain] as const)
  ),
);
/** Not seen, or seen as nothing: marks, format and control characters, blanks of any kind. */
const UNSEEN = /[\p{Mn}\p{Me}\p{Cf}\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}\s\u2800]/gu;
/** Markdown around words, and what lists, quotations and headings begin with. */
const MARKDOWN = /[*_`~]/g;
const GLYPHS = /^(?:[\p{P}\p{S}]|\d+[.)])+/u;

const HEADER = /^(?:to|from):/i;

/** As a person or a model reads it, whose eyes are more forgiving than {@link parseAddress}. */
function looksLikeHeader(line: string): boolean {
  const seen = line.normalize("NFKD").replace(UNSEEN, "");
  if (seen.startsWith(">")) return false; // a quotation, as we make them ourselves
  const folded = Array.from(seen, (char) => FOLD.get(char) ?? char).join("")
    .replace(MARKDOWN, "");
  return HEADER.test(folded) || HEADER.test(folded.replace(GLYPHS, ""));
}
