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

/** The lines of the envelope, ready for a terminal; no line of them can be read as an address. */
export function envelopeLines(envelope: Envelope): string[] {
  const [first = "", ...more] = envelope.body.split("\n");
  const label = senderLabel(envelope.sender_repo, envelope.provenance);
  const lines = [`From:${label}: ${first}`, ...more.map(neutralise)];
  if (envelope.ack_requested) lines.push(`(tamq ack ${envelope.message_id})`);
  return lines;
}

/** Puts `> ` before a body line that could route or pose as another sender (B-05). */
function neutralise(line: string): string {
  // Trimmed and compatibility-folded, so that full-width letters, no-break spaces or invisible
  // characters in front do not slip past an agent's eyes or a later, laxer parser.
  const plain = line.normalize("NFKC").replace(/[\p{Cf}\p{Cc}\p{Zs}\s]/gu, "");
  return /^(?:to|from):/i.test(plain) ? `> ${line}` : line;
}
