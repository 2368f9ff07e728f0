/**
 * Writes docs/statehub.md and docs/statehub.openapi.json from the route table. A test fails while
 * they differ from what this makes.
 */
import { type Route, routes } from "../lib/hub/api.ts";
import { COMMON_REASONS, HTTP_STATUS, REASON_STATUS } from "../lib/hub/errors.ts";
import { openApi } from "../lib/hub/openapi.ts";
import { MESSAGE_STATES, PLAN_MOVES, TASK_MOVES } from "../lib/hub/rules.ts";
import { LIMITS } from "../lib/hub/schema.ts";
import { RETRY_RULES } from "../lib/base/errors.ts";

const ROOT = new URL("../", import.meta.url).pathname;

type Json = Record<string, unknown>;

interface Property {
  readonly name: string;
  readonly required: boolean;
  readonly schema: Json;
}

function properties(schema: Json | undefined): Property[] {
  const required = (schema?.required ?? []) as string[];
  return Object.entries((schema?.properties ?? {}) as Record<string, Json>).map((
    [name, value],
  ) => ({
    name,
    required: required.includes(name),
    schema: value,
  }));
}

/** The record that a schema refers to. */
function nameOf(schema: Json): string | undefined {
  return typeof schema.$ref === "string" ? schema.$ref.split("/").at(-1) : undefined;
}

function resolve(document: Json, schema: Json): Json {
  const name = nameOf(schema);
  const { schemas } = document.components as { schemas: Record<string, Json> };
  return name === undefined ? schema : schemas[name]!;
}

/** A schema in a few words. */
function words(schema: Json): string {
  const record = nameOf(schema);
  if (record !== undefined) return record;
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${value}\``).join(", ");
  const anyOf = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (anyOf !== undefined) return anyOf.map(words).join(" or ");
  switch (schema.type) {
    case "array": {
      const max = schema.maxItems === undefined ? "" : `, at most ${schema.maxItems}`;
      return `list of ${words(schema.items as Json)}${max}`;
    }
    case "object": {
      const inner = properties(schema);
      return inner.length === 0
        ? "object"
        : `object of ${
          inner.map(({ name, schema }) => `\`${name}\` (${words(schema)})`).join(", ")
        }`;
    }
    case "string": {
      if (schema.format === "date-time") return "time (RFC 3339, UTC)";
      const max = schema.maxLength === undefined ? "" : ` up to ${schema.maxLength} characters`;
      return schema.pattern !== undefined && max === "" ? "identifier" : `text${max}`;
    }
    case "integer":
    case "number": {
      const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
      const high = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER
        ? ""
        : ` to ${maximum}`;
      return `number${minimum === undefined || minimum < -1e9 ? "" : ` from ${minimum}`}${high}`;
    }
    case "null":
      return "null";
    default:
      return String(schema.type ?? "value");
  }
}

function table(fields: readonly Property[]): string {
  const rows = fields.map(({ name, required, schema }) =>
    `| \`${name}\` | ${required ? "yes" : ""} | ${words(schema).replaceAll("|", "\\|")} |`
  );
  return ["| field | required | content |", "| --- | --- | --- |", ...rows].join("\n");
}

interface Operation {
  readonly parameters: { name: string; in: string; required: boolean; schema: Json }[];
  readonly requestBody?: { content: { "application/json": { schema: Json } } };
  readonly responses: Record<string, { content?: Record<string, { schema: Json }> }>;
}

function section(name: string, route: Route, operation: Operation): string {
  const lines = [`### \`${route.method} ${route.path}\``, "", `\`${name}\`: ${route.summary}`, ""];
  const query = operation.parameters.filter((parameter) => parameter.in === "query");
  if (query.length > 0) lines.push("Query:", "", table(query), "");
  if (route.ifMatch !== "none") lines.push(`\`If-Match\` is ${route.ifMatch}.`, "");
  if (route.answers === "etag") lines.push("The answer has an `ETag`; `If-None-Match` works.", "");
  const body = operation.requestBody?.content["application/json"].schema;
  if (body !== undefined) {
    const record = nameOf(body);
    const text = record === undefined ? table(properties(body)) : `A ${record}, as above.`;
    lines.push("Body:", "", text, "");
  }
  lines.push(`Answers ${route.status}.`, "");
  if (route.reasons.length > 0) {
    const reasons = route.reasons.map((reason) => `\`${reason}\``).join(", ");
    lines.push(`Reasons of its own: ${reasons}.`, "");
  }
  return lines.join("\n");
}

function moves(title: string, table: Readonly<Record<string, readonly string[]>>): string {
  const rows = Object.entries(table).map(([from, to]) =>
    `| \`${from}\` | ${to.map((name) => `\`${name}\``).join(", ")} |`
  );
  return [`${title}:`, "", "| from | to |", "| --- | --- |", ...rows, ""].join("\n");
}

const RECORDS = [
  ["Workplan", "getWorkplan"],
  ["Task", "getTask"],
  ["Message", "getMessage"],
  ["Checkpoint", "createCheckpoint"],
  ["Receipt", "publishReceipt"],
] as const;

function markdown(document: Json): string {
  const paths = document.paths as Record<string, Record<string, Operation>>;
  const operationOf = (route: Route) => paths[route.path]![route.method.toLowerCase()]!;
  const answerOf = (name: keyof typeof routes) => {
    const operation = operationOf(routes[name]);
    const schema = operation.responses[routes[name].status]!.content!["application/json"]!.schema;
    return resolve(document, schema);
  };
  const parts = [INTRODUCTION];
  parts.push("## Records", "");
  for (const [title, name] of RECORDS) {
    const fields = properties(answerOf(name)).filter((field) => field.name !== "$schema");
    const plain = table(fields.map((field) => ({ ...field }))).replace(
      "| required |",
      "| always |",
    );
    parts.push(`### ${title}`, "", plain, "");
  }
  parts.push(
    "## What may become of what",
    "",
    moves("Tasks", TASK_MOVES),
    moves("Workplans", PLAN_MOVES),
  );
  parts.push(
    `Messages go from ${MESSAGE_STATES.map((s) => `\`${s}\``).join(" to ")}, never back.`,
    "",
  );
  parts.push(
    "`active` and `done` need every dependency to be done. A cancelled dependency is not done: take it",
    "out, or reopen it. `blocked` needs a reason. A `done` task may be reopened; its dependents wait again.",
    "",
  );
  parts.push("## Routes", "");
  for (const [name, route] of Object.entries(routes)) {
    parts.push(section(name, route, operationOf(route)));
  }
  const codes = Object.entries(HTTP_STATUS).map(([code, status]) =>
    `| \`${code}\` | ${status} | ${RETRY_RULES[code as keyof typeof RETRY_RULES]} |`
  );
  parts.push(
    "## Failures",
    "",
    'Every failure is `{"error": {"code", "reason", "message", "hint"?, "retry"}}`. The codes are those of',
    "the message socket; `reason` is stable and meant for programs, `message` and `hint` for people.",
    "",
    "| code | status | what to do |",
    "| --- | --- | --- |",
    ...codes,
    "",
    `Closer statuses: ${
      Object.entries(REASON_STATUS).map(([reason, status]) => `\`${reason}\` ${status}`).join(", ")
    }.`,
    "",
    `Reasons of every route: ${COMMON_REASONS.map((reason) => `\`${reason}\``).join(", ")}.`,
    "",
  );
  return parts.join("\n");
}

const INTRODUCTION = `# State Hub

A State Hub keeps the tasks, workplans and messages that workers are woken for. tamq has one built in
(\`tamq hub serve\`); any other that answers these routes works as well: set \`STATEHUB_API_BASE\`.

This page is made from the route table in \`lib/hub/api.ts\` by \`deno task docs\`; the same as OpenAPI 3.1
is [statehub.openapi.json](statehub.openapi.json), which a running hub answers at \`/v1/openapi.json\`.

## How it works

- **Revisions.** Every change of a record adds one to its \`revision\`; its \`ETag\` is the revision in
  quotes. A \`PATCH\` names the revision that it is meant for in \`If-Match\`, or \`*\`. If somebody was
  faster the answer is 412 \`revision_mismatch\` and nothing has changed.
- **Wake revisions.** \`wake.revision\` moves only with what matters to a worker: status, dependencies,
  repository, agent, gates, required actions, the plan's state. A worker that takes a ready task up
  (\`ready\` to \`active\`), a new title or a label moves it not. A trigger is named by it, so nobody
  is woken twice for one state of a task.
- **Repeats.** Every change takes an \`idempotency_key\`. The same key with the same content makes no
  second record; with other content it is refused with \`idempotency_conflict\`.
- **Dependencies** must exist and may form no cycle. When a task is done, those that depend on it
  appear in the change feed again with \`wake.reason\` \`dependency_satisfied\`.
- **Change feed.** \`GET /v1/changes\` tells each record's latest change, oldest first, with the record as
  it is now: a reader that was away gets every record once, however often it changed. Cursors are
  opaque. \`cursor_expired\` means another database: begin again without one.
- **Pages** hold at most ${LIMITS.pageItems} records and end early when they grow large; follow \`next_cursor\`.
- **Bounds.** A request has at most ${LIMITS.requestBytes} bytes and its address ${LIMITS.urlBytes}. Text holds no control
  characters but line feed and tab.

## Who may ask

Over the Unix socket (mode 0600), the user whose hub it is: the kernel says who is connected, and
nothing is answered while anybody else is. There is no TCP unless \`--tcp\` asks for it; then on
127.0.0.1 only, with the token of the hub's 0600 token file. \`Host\` and \`Origin\` must name a loopback
address, so that no web page gets in.

A simple client sends \`Authorization: Bearer TOKEN\`. tamq's own never sends the token: another program
could have taken the port. It sends
\`Authorization: TAMQ-HMAC-SHA256 time=MS, nonce=N, mac=M\`, where M is HMAC-SHA256, keyed with the token,
of the JSON list \`["tamq-hub-request-v1", method, host, path and query, time, nonce, SHA-256 of the body]\`,
and believes an answer only with a \`Tamq-Proof\` header: the HMAC of
\`["tamq-hub-answer-v1", nonce, status, SHA-256 of the body]\`, or of \`"events"\` in place of the last for a
stream of events. A nonce works once and for a minute.
`;

/** The two files, as \`deno fmt\` has them. */
export async function render(): Promise<Record<string, string>> {
  const document = openApi();
  return {
    "docs/statehub.md": await format(markdown(document), "md"),
    "docs/statehub.openapi.json": await format(JSON.stringify(document), "json"),
  };
}

async function format(text: string, ext: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", "--config", `${ROOT}deno.json`, "--ext", ext, "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { code, stdout } = await child.output();
  if (code !== 0) throw new Error(`deno fmt ended with ${code}`);
  return new TextDecoder().decode(stdout);
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(await render())) {
    await Deno.writeTextFile(ROOT + path, text);
  }
}
