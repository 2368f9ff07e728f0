/** docs/protocol.md and docs/json.md from the operation table. */
import { FAILURE_CODES, RETRY_RULES } from "../lib/base/errors.ts";
import { EXIT_OF } from "../lib/cli/exit_codes.ts";
import { COMMANDS, HIDDEN } from "../lib/cli/program.ts";
import { LIMITS } from "../lib/ipc/limits.ts";
import { MAX_BODY_BYTES, MAX_METADATA_BYTES } from "../lib/model/body.ts";
import { CAPABILITIES, PROTOCOL } from "../lib/protocol/handshake.ts";
import { type OperationName, operations } from "../lib/protocol/operations.ts";
import { watchFrame } from "../lib/protocol/events.ts";
import * as schema from "../lib/protocol/schema.ts";
import { HISTORY_PAGE_MESSAGES } from "../lib/handlers.ts";
import { fields, type Json, jsonSchema, Records } from "./schema_text.ts";

/** Records that several operations share, and what their types do not say. */
const SHARED = {
  message: schema.message,
  attempt: schema.attempt,
  endpoint: schema.endpoint,
  window: schema.attachment,
  settlement: schema.settlement,
  error: schema.wireError,
} as const;

type Notes = Readonly<Record<string, Readonly<Record<string, string>>>>;

const RECORD_NOTES: Notes = {
  message: {
    endpoint_id: "the tmux server it is bound to; null while it is queued for its repository",
    max_attempts: "of the policy it was last handed out under",
    created_at: "RFC 3339, UTC, as all times",
    waiting_reason:
      "of a pending one: `queued`, `not_attached`, `ambiguous_endpoint`, `backoff`, `broker_silent`, " +
      "`gate: …`, `held: …`, `paused`",
    replay: "of a replayed one",
  },
  attempt: {
    outcome:
      "`written`, `displayed`, `failed`, `stalled`, `expired`, `interrupted`; null under way",
    attempt: "begins anew after `retry`",
  },
  endpoint: { endpoint_id: "`tmux-amq-<pid of the tmux server>`" },
  window: { gate: "whether it can take a message now, and why not" },
  settlement: {
    lease_token: "of the delivery",
    scope:
      "of a failure: `target`, the window takes nothing now; `message`, this one alone cannot go",
  },
  error: {
    code: "coarse: decides what to do next",
    reason: "fine and stable, for programs",
    message: "for people, as `hint`",
    retry: "what to do next, as the table of codes says",
  },
};

const OPERATION_NOTES: Notes = {
  send: {
    client_id: "with `idempotency_key`: who sends, and what for",
    idempotency_key: "the same one again returns the same message",
    sender_repo: "checked against where the request comes from",
    endpoint_id: "deliver at this tmux server only",
    metadata: `at most ${MAX_METADATA_BYTES} bytes, kept and returned`,
    body: `UTF-8, 1 to ${MAX_BODY_BYTES} bytes; line feed and tab are its only control characters`,
  },
  attach: {
    repos: "exactly one",
    path: "must be the registered one",
    worker_pid: "a child of the process that attaches",
    instance: "random for each broker",
    outstanding: "an attempt whose report was not answered",
    in_progress: "lease token of the attempt being made now; null: none",
    program: "which program the broker is, and how often its process became another one",
  },
  upgrade: {
    program: "the words that run `tamq`, a full path first",
    wait_ms: "how long each broker may wait for a quiet moment",
    repos: "only windows of these",
    dry_run: "tells which there are, changes nothing",
  },
  history: {
    repo: "from or to it",
    limit: `a page holds at most ${HISTORY_PAGE_MESSAGES}, and 1 MiB`,
    cursor: "`next_cursor` of the page before",
    since: "RFC 3339",
    until: "RFC 3339, exclusive",
  },
  allow: { both: "the way back as well", remove: "takes it back" },
};

const EVENT_NOTES: Notes = {
  message: {
    change: "`waiting`: an attempt failed and there will be another; `delivered`: written or shown",
    attempt: "how many deliveries were begun",
    endpoint_id: "where it is delivered, or the one it is bound to",
    reason: "of `waiting` and `failed`; `held` of one that waits for `allow`",
    next_attempt_at: "of `waiting`; null: at once",
  },
  gate: { reason: "why it is closed" },
  control: { target_repo: "of `release`: the repository" },
  gap: {
    change: "`overflow`: read too slowly; `restarted`: the service before ended without a word, " +
      "or the cursor is older than it",
    missed: "events that are not told, of all repositories; null: not known",
  },
};

const records = new Records(SHARED);

const COMMON_REASONS = [
  ["request_too_large", "the line is longer than the limit"],
  ["request_incomplete", "the connection ended inside a request"],
  ["request_not_utf8", "not UTF-8"],
  ["request_not_json", "not JSON"],
  ["request_not_object", "not a JSON object"],
  ["protocol_invalid", "`protocol` is missing or no version"],
  ["protocol_mismatch", "another major version"],
  ["unknown_op", "no such operation"],
  ["field_missing", "a required field, named in the message"],
  ["field_invalid", "a field of the wrong kind, named in the message"],
  ["unknown_field", "a field that is none, named in the message"],
  ["answer_too_large", "the answer would be longer than the limit"],
  ["store_busy", "another process holds the database"],
  ["store_full", "the disk is full"],
  ["store_lost", "the database file was removed or replaced while the service uses it"],
  ["store_read_only", "the database cannot be written"],
  ["internal_error", "a failure of the service's own; its log says more"],
] as const;

function operation(name: OperationName): string {
  const { summary, request, response, reasons } = operations[name];
  const asked = jsonSchema(request);
  const answered = jsonSchema(response);
  const lines = [`### \`${name}\``, "", summary, ""];
  lines.push(
    fields(asked).length === 0
      ? "No fields beside `op` and `protocol`."
      : records.table(asked, OPERATION_NOTES[name]),
    "",
    name === "status" ? "Result: see [status](json.md#status)." : `Result:\n\n${result(answered)}`,
    "",
  );
  if (reasons.length > 0) {
    lines.push(`Reasons: ${reasons.map((reason) => `\`${reason}\``).join(", ")}.`, "");
  }
  return lines.join("\n");
}

function result(schema: Json): string {
  const name = records.nameOf(schema);
  return name === undefined ? records.table(schema) : `a [${name}](#${name})`;
}

function shared(name: keyof typeof SHARED): string {
  return `### ${name}\n\n${records.table(jsonSchema(SHARED[name]), RECORD_NOTES[name])}\n`;
}

function frames(schema: Json, notes: Notes = {}): string {
  return ((schema.oneOf ?? schema.anyOf) as Json[]).map((frame) => {
    const list = fields(frame);
    const type = list.find((field) => field.name === "type")!.schema.const;
    const rest = list.filter((field) => field.name !== "type");
    const properties = Object.fromEntries(rest.map((field) => [field.name, field.schema]));
    return `#### \`${type}\`\n\n${records.table({ ...frame, properties }, notes[String(type)])}\n`;
  }).join("\n");
}

const example = (value: unknown) => `    ${JSON.stringify(value)}`;

export function protocolPage(): string {
  const names = Object.keys(operations) as OperationName[];
  const codes = FAILURE_CODES.map((code) =>
    `| \`${code}\` | \`${RETRY_RULES[code]}\` | ${EXIT_OF[code]} |`
  );
  return `# The socket protocol, version ${PROTOCOL}

<!-- Made by \`deno task docs\` from lib/protocol/; do not edit. -->

One Unix-domain stream socket, mode 0600: \`\${XDG_RUNTIME_DIR:-/tmp}/tamq.sock\`, or \`TAMQ_SOCKET\`. The
kernel says who is at the other end; another user is refused before a byte is read. There is no TCP
and no token.

A client connects, writes one line of JSON, reads one line of JSON, and is done: one connection an
operation, no session. Only \`attach\` and \`watch\` keep their connections.

${example({ op: "ping", protocol: PROTOCOL })}

is answered by \`{"ok":true,"result":{…}}\` or \`{"ok":false,"error":{…}}\` ([error](#error)).

## Versions and capabilities

- \`protocol\` is \`major.minor\`, apart from the version of the package. Another major version is
  refused. From a newer minor version unknown fields are ignored; from ours they are errors.
- \`ping\` tells the service's version and capabilities: ${
    CAPABILITIES.map((name) => `\`${name}\``).join(", ")
  }. Unknown ones are ignored. A client stops before it sends anything when one that it needs is
  missing.

## Limits

| what | limit |
| --- | --- |
| a request line | ${LIMITS.requestBytes} bytes, whole within ${LIMITS.requestMs / 1000} seconds |
| an answer line | ${LIMITS.answerBytes} bytes |
| connections | ${LIMITS.connections} at once |
| a client that does not read | dropped after ${LIMITS.writeMs / 1000} seconds |
| a body | ${MAX_BODY_BYTES} bytes |
| metadata | ${MAX_METADATA_BYTES} bytes as JSON |
| a page of \`history\` | ${HISTORY_PAGE_MESSAGES} messages |
| names, ids and keys | 256 characters, no control characters |

## Failures

| code | \`retry\` | exit status of the command line |
| --- | --- | --- |
${codes.join("\n")}

\`retry\`: \`never\`, the same request fails again. \`reauthenticate\`. \`stop\`, until somebody permits it.
\`refresh\`, read the state and decide. \`reread\`, somebody was faster. \`wait\`, until there is room or the
operator acts. \`reconcile\`, send again under the same key. \`query\`, ask what became of it first.
\`read_existing\`.

Reasons that any request may meet:

| reason | means |
| --- | --- |
${COMMON_REASONS.map(([reason, means]) => `| \`${reason}\` | ${means} |`).join("\n")}

Operations marked with the reason \`worker_refused\` are the operator's: a process inside a window that
tamq opened is refused.

## Operations

${names.map(operation).join("\n")}
## Records

${(Object.keys(SHARED) as (keyof typeof SHARED)[]).map(shared).join("\n")}
## The delivery stream

After the answer to \`attach\` both sides write lines of JSON until either closes. The service hands
over one delivery at a time while the gate is open; the broker reports each under its lease token.
When the connection is lost the broker attaches again and brings its unanswered report along in
\`outstanding\`.

### From the broker

${frames(jsonSchema(schema.brokerFrame))}
### From the service

${frames(jsonSchema(schema.serviceFrame))}
## The event stream

After the answer to \`watch\` the service writes lines of JSON, one an event, until either side closes.
They hold identifiers, states and reasons, never a body, metadata or a token. \`cursor\` is opaque:
given to the next \`watch\`, the stream goes on behind that event. The service keeps some thousand
events in memory for that; a reader that falls back further meets a \`gap\`. After an orderly stop the
cursor holds at the next service too, and nothing is missing; after a crash there is a \`gap\` whose
\`missed\` is null. What became of messages is always in \`history\`. A reader costs the service nothing
but its connection; one that does not read for ${LIMITS.writeMs / 1000} seconds is dropped and may
come back with its cursor. New types, changes and fields may be added.

${frames(jsonSchema(watchFrame), EVENT_NOTES)}`;
}

/** What commands print with --json, where their own help does not say it better. */
const JSON_COMMANDS: Readonly<Record<string, string>> = {
  upgrade:
    "`program`: version that runs the command, `service`: `from`, `to`, `pid`, `windows`: as " +
    "[upgrade](protocol.md#upgrade) returns them",
  who: "a line a repository: `repo`, `endpoints` (list of ids)",
  endpoints: "a line an endpoint: [endpoint](protocol.md#endpoint)",
  send: "the result of [send](protocol.md#send)",
  inbox: "a line a message: first what waits, then what came; see [message](protocol.md#message)",
  history: "a line a message: [message](protocol.md#message)",
  message: "`message`: [message](protocol.md#message), `attempts`: list of " +
    "[attempt](protocol.md#attempt)",
  ack: "a [message](protocol.md#message)",
  retry: "a [message](protocol.md#message)",
  cancel: "a [message](protocol.md#message)",
  allow: "the result of [allow](protocol.md#allow)",
  unblock: "the result of [unblock](protocol.md#unblock)",
  pause: "the result of [pause](protocol.md#pause)",
  resume: "the result of [resume](protocol.md#resume)",
  release: "the result of [release](protocol.md#release)",
  replay: "see [history, export, replay, purge](history.md)",
  purge: "see [history, export, replay, purge](history.md)",
  stop: "`stopped`, and `pid` of the service that ended",
  ping: "the result of [ping](protocol.md#ping)",
  status: "[status](#status), below",
  watch:
    "a line an event: [events](protocol.md#the-event-stream), and `connection` of the command's " +
    "own: `change` is `connected`, `lost` or `resumed`, `cursor` where it goes on",
  logs: "a line a log line: `time`, `level`, `source`, `event`, and `fields`, an object of texts",
  doctor: "[doctor](#doctor), below",
  "db-version": "`database`, `schema` of the file, `known` to this program",
};

/** A row for each command of the table that prints records. */
function jsonCommands(): string {
  const names = Object.keys(COMMANDS).filter((name) => {
    const json = COMMANDS[name]!.parameters.flags.json as { brief?: string } | undefined;
    return !HIDDEN.includes(name) && json !== undefined && !json.brief?.startsWith("Log");
  });
  const stale = Object.keys(JSON_COMMANDS).filter((name) => !names.includes(name));
  if (stale.length > 0) throw new Error(`these print no records: ${stale.join(", ")}`);
  return names.map((name) => {
    const text = JSON_COMMANDS[name] ?? `see \`tamq ${name} --help\``;
    return `| \`tamq ${name}\` | ${text} |`;
  }).join("\n");
}

const STATUS_NOTES: Readonly<Record<string, string>> = {
  service: "`peer_check` names the check that tells one user's processes from another's",
  state_hub: "seen by the coordination engine, not by this service",
  queue:
    "`states` counts all messages by state; `cancelled`: how many of the failed ones were withdrawn",
  leases: "`active`: deliveries under way",
  controls: "`ok` is false while a pair is blocked",
  endpoints: "live tmux servers and their windows",
};

export function jsonPage(): string {
  const status = jsonSchema(schema.status);
  const parts = fields(status).map(({ name, schema }) => {
    const text = (schema.type === "object")
      ? records.table(schema)
      : records.words(schema).replaceAll("](#", "](protocol.md#");
    const note = STATUS_NOTES[name] === undefined ? "" : `${STATUS_NOTES[name]}.\n\n`;
    return `#### \`${name}\`\n\n${note}${text}\n`;
  });
  return `# What \`--json\` prints

<!-- Made by \`deno task docs\` from lib/protocol/ and the command table; do not edit. -->

Standard output holds JSON alone, one object a line. A failure is one line on standard error, an
[error](protocol.md#error); the exit status is that of \`tamq help exit-codes\`. New fields may be added;
those described here keep their meaning within a major version of the protocol.

| command | prints |
| --- | --- |
${jsonCommands()}

\`tamq serve --json\` logs JSON, one object a line: \`time\`, \`level\`, \`event\` and the fields of the event.

## status

One object. Each part has \`ok\` and, for people, \`detail\`. The exit status is 1 when a part other than
\`state_hub\` is not \`ok\`, and 3 when the service does not answer. \`coordination_engine\` and
\`embedded_hub\` have \`running\` as well; messages need neither, so they do not count.

${parts.join("\n")}
## doctor

One object: \`ok\` (the exit status is 0) and \`findings\`, a list of

| field | content |
| --- | --- |
| \`check\` | what was looked at |
| \`level\` | \`ok\`; \`hint\`, a convenience is not set up; \`warning\`, somebody should look; \`problem\`, messages cannot work |
| \`detail\` | what was found |
| \`remedy\` | how to mend it; null with \`ok\` |
`;
}
