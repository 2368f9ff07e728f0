/** How records look to people (C-01): every text of another program made safe, times relative. */
import { displaySafe, relativeTime } from "../base/display.ts";
import type { MessageState } from "../model/message.ts";
import { senderLabel } from "../model/envelope.ts";
import { attemptWords, reasonWords } from "./attempt_words.ts";
import { attemptSteps, waitingSteps } from "./gate_steps.ts";
import type { Style } from "./colour.ts";
import { bodyBlock, type Look, PLAIN, table, wrap } from "./layout.ts";
import type { WireAttempt, WireEndpoint, WireMessage } from "../protocol/schema.ts";

export { relativeTime } from "../base/display.ts";
export { displayWidth, table } from "./layout.ts";

/** What each state is to whoever looks: well, under way, or wanting attention. */
const STATE_STYLES: Readonly<Record<MessageState, Style | undefined>> = {
  pending: "yellow",
  awaiting_ack: "yellow",
  injected: "green",
  acknowledged: "green",
  failed: "red",
};
export function stateStyle(state: MessageState): Style | undefined {
  return STATE_STYLES[state];
}

/** `alpha/o → beta`. */
function route(message: WireMessage): string {
  return `${senderLabel(message.sender_repo, message.provenance)} → ${message.target_repo}`;
}

/** Who, to whom, what became of it: the heading of a message. */
export function messageLine(message: WireMessage, look: Look = PLAIN): string {
  return heading(message, [], look);
}

function heading(message: WireMessage, more: readonly string[], look: Look): string {
  const why = message.state === "failed" ? message.last_failure_reason : message.waiting_reason;
  const told = why !== null && (message.state === "failed" || message.state === "pending");
  const state = told ? `${message.state} (${why})` : message.state;
  const style = stateStyle(message.state);
  return table([[message.message_id, route(message), { text: state, style }, ...more]], look, {
    line: true,
  });
}

/** What the history shows of one text. */
const SHOWN_LINES = 12;
const SHOWN_CHARACTERS = 1500;

/** A message of the history: heading, then the beginning of its text, or all, behind a gutter. */
export function messageEntry(
  message: WireMessage,
  now: number,
  options: { readonly full?: boolean; readonly look?: Look } = {},
): string {
  const { full = false, look = PLAIN } = options;
  const when = relativeTime(message.created_at, now);
  const tries = message.attempt_count > 1 ? `, attempt ${message.attempt_count}` : "";
  const head = heading(message, [`${message.provenance}, ${when}${tries}`], look);
  const { text, left } = full ? { text: message.body, left: "" } : shortened(message.body);
  // A gutter of another form: no line of a text can pose as the mark.
  const mark = left === "" ? "" : `\n  ┆ ${left} more: tamq message ${message.message_id}`;
  return `${head}\n${bodyBlock(text, look)}${mark}`;
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
  look: Look = PLAIN,
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
    table(
      facts.flatMap(([name, value]) => {
        const style = name === "state" ? stateStyle(message.state) : undefined;
        return value === null ? [] : [[name, { text: value, style }]];
      }),
      look,
    ),
    bodyBlock(message.body, look),
  ];
  if (attempts.length > 0) {
    blocks.push(table(
      [
        ["ATTEMPT", "ENDPOINT", "STARTED", "OUTCOME", "REASON"],
        ...attempts.map((attempt) => [
          String(attempt.attempt),
          attempt.endpoint_id ?? "-",
          relativeTime(attempt.started_at, now),
          attempt.outcome ?? "under way",
          attempt.reason ?? "",
        ]),
      ],
      look,
      { header: true },
    ));
  }
  const words = attempts.flatMap((attempt) => {
    const said = attemptWords(attempt);
    return said === undefined ? [] : [`attempt ${attempt.attempt}: ${displaySafe(said)}`];
  });
  if (words.length > 0) blocks.push(words.flatMap((line) => wrap(line, look.width)).join("\n"));
  const steps = [
    ...attempts.map((attempt) => [`attempt ${attempt.attempt}`, attemptSteps(attempt)]),
    ["now", waitingSteps(message.waiting_reason)],
  ].flatMap(([when, line]) => line === undefined ? [] : [`${when}: ${displaySafe(line)}`]);
  if (steps.length > 0) blocks.push(steps.flatMap((line) => wrap(line, look.width)).join("\n"));
  return blocks.join("\n\n");
}

function inWords(reason: string | null): string | null {
  if (reason === null) return null;
  const words = reasonWords(reason);
  return words === reason ? reason : `${reason} (${words})`;
}

/** One row a window. */
export function endpointTable(
  endpoints: readonly WireEndpoint[],
  now: number,
  look: Look = PLAIN,
): string {
  const rows = endpoints.flatMap((endpoint) =>
    endpoint.attachments.map((window) => [
      window.repo,
      endpoint.endpoint_id,
      `${endpoint.tmux_session} ${window.window_id}`,
      {
        text: (window.gate.open ? "ready" : `waiting: ${window.gate.reason ?? "unknown"}`) +
          (window.recording ? ", RECORDED" : ""),
        style: window.gate.open ? "green" as const : "yellow" as const,
      },
      relativeTime(window.attached_at, now),
      window.command.join(" "),
    ])
  ).sort(([a], [b]) => String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0);
  const head = ["REPOSITORY", "ENDPOINT", "WINDOW", "GATE", "ATTACHED", "COMMAND"];
  return table([head, ...rows], look, { header: true, cutLast: true });
}
