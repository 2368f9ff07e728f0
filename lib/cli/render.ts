/** How records look to people (C-01): every text of another program made safe, times relative. */
import { displaySafe, displaySafeBlock } from "../base/display.ts";
import { senderLabel } from "../model/envelope.ts";
import { attemptWords, reasonWords } from "./attempt_words.ts";
import type { WireAttempt, WireEndpoint, WireMessage } from "../protocol/schema.ts";

/** Columns padded to their widest cell, the last one not; cells are made safe here. */
export function table(rows: readonly (readonly string[])[]): string {
  const safe = rows.map((row) => row.map(displaySafe));
  const widths: number[] = [];
  for (const row of safe) {
    row.forEach((cell, i) => widths[i] = Math.max(widths[i] ?? 0, displayWidth(cell)));
  }
  return safe.map((row) =>
    row.map((cell, i) =>
      i === row.length - 1 ? cell : cell + " ".repeat(widths[i]! - displayWidth(cell))
    ).join("  ").trimEnd()
  ).join("\n");
}

// East Asian wide and fullwidth blocks and emoji take two cells; combining marks none.
const WIDE =
  /[\u1100-\u115e\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu;

/** Terminal cells that `text` takes, near enough for columns. */
export function displayWidth(text: string): number {
  const visible = text.replace(/\p{Mn}/gu, "");
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

/** `alpha/o → beta`. */
function route(message: WireMessage): string {
  return `${senderLabel(message.sender_repo, message.provenance)} → ${message.target_repo}`;
}

/** Who, to whom, what became of it: the heading of a message. */
export function messageLine(message: WireMessage): string {
  let text = `${message.message_id}  ${displaySafe(route(message))}  ${message.state}`;
  const why = message.state === "failed" ? message.last_failure_reason : message.waiting_reason;
  if (why !== null && (message.state === "failed" || message.state === "pending")) {
    text += ` (${displaySafe(why)})`;
  }
  return text;
}

/** What the history shows of one text. */
const SHOWN_LINES = 12;
const SHOWN_CHARACTERS = 1500;

/** A message of the history: heading, then the beginning of its text, or all, behind a gutter. */
export function messageEntry(message: WireMessage, now: number, full = false): string {
  const when = relativeTime(message.created_at, now);
  const tries = message.attempt_count > 1 ? `, attempt ${message.attempt_count}` : "";
  const heading = `${messageLine(message)}  ${message.provenance}, ${when}${tries}`;
  const { text, left } = full ? { text: message.body, left: "" } : shortened(message.body);
  // A gutter of another form: no line of a text can pose as the mark.
  const mark = left === "" ? "" : `\n  ┆ ${left} more: tamq message ${message.message_id}`;
  return `${heading}\n${displaySafeBlock(text, "  │ ")}${mark}`;
}

function shortened(body: string): { text: string; left: string } {
  const lines = body.split("\n");
  const head = lines.slice(0, SHOWN_LINES).join("\n");
  if (head.length > SHOWN_CHARACTERS) {
    // Not in the middle of a character.
    const text = head.slice(0, SHOWN_CHARACTERS).replace(/[\ud800-\udbff]$/, "");
    return { text, left: `${body.length - text.length} characters` };
  }
  const more = lines.length - SHOWN_LINES;
  return { text: head, left: more <= 0 ? "" : more === 1 ? "1 line" : `${more} lines` };
}

/** Everything known about one message. */
export function messageDetails(
  message: WireMessage,
  attempts: readonly WireAttempt[],
  now: number,
): string {
  const time = (value: string | null) => value && `${value} (${relativeTime(value, now)})`;
  const facts: [string, string | null][] = [
    ["message", message.message_id],
    ["from", senderLabel(message.sender_repo, message.provenance)],
    ["to", message.target_repo],
    ["provenance", message.provenance],
    ["state", message.state],
    ["waiting", inWords(message.waiting_reason)],
    ["last failure", inWords(message.last_failure_reason)],
    ["attempts", `${message.attempt_count} of ${message.max_attempts}`],
    ["endpoint", message.endpoint_id],
    ["correlation", message.correlation_id],
    ["client", message.client_id],
    ["key", message.idempotency_key],
    [
      "metadata",
      Object.keys(message.metadata).length > 0 ? JSON.stringify(message.metadata) : null,
    ],
    ["created", time(message.created_at)],
    ["next attempt", time(message.next_attempt_at)],
    ["lease expires", time(message.lease_expires_at)],
    ["ack deadline", time(message.ack_deadline_at)],
    ["injected", time(message.injected_at)],
    ["acknowledged", time(message.acknowledged_at)],
  ];
  const blocks = [
    table(facts.flatMap(([name, value]) => value === null ? [] : [[name, value]])),
    displaySafeBlock(message.body, "  │ "),
  ];
  if (attempts.length > 0) {
    blocks.push(table([
      ["ATTEMPT", "ENDPOINT", "STARTED", "OUTCOME", "REASON"],
      ...attempts.map((attempt) => [
        String(attempt.attempt),
        attempt.endpoint_id ?? "-",
        attempt.started_at,
        attempt.outcome ?? "under way",
        attempt.reason ?? "",
      ]),
    ]));
  }
  const words = attempts.flatMap((attempt) => {
    const said = attemptWords(attempt);
    return said === undefined ? [] : [`attempt ${attempt.attempt}: ${displaySafe(said)}`];
  });
  if (words.length > 0) blocks.push(words.join("\n"));
  return blocks.join("\n\n");
}

function inWords(reason: string | null): string | null {
  if (reason === null) return null;
  const words = reasonWords(reason);
  return words === reason ? reason : `${reason} (${words})`;
}

/** One row a window. */
export function endpointTable(endpoints: readonly WireEndpoint[], now: number): string {
  const rows = endpoints.flatMap((endpoint) =>
    endpoint.attachments.map((window) => [
      window.repo,
      endpoint.endpoint_id,
      `${endpoint.tmux_session} ${window.window_id}`,
      window.gate.open ? "ready" : `waiting: ${window.gate.reason ?? "unknown"}`,
      relativeTime(window.attached_at, now),
      window.command.join(" "),
    ])
  ).sort(([a], [b]) => a! < b! ? -1 : a! > b! ? 1 : 0);
  return table([["REPOSITORY", "ENDPOINT", "WINDOW", "GATE", "ATTACHED", "COMMAND"], ...rows]);
}
