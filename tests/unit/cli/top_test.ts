/** The view of `tamq top`: any snapshot at any size, hostile names, keys. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { displayWidth } from "../../../lib/cli/render.ts";
import { frame, SECTIONS, type View } from "../../../lib/cli/top/frame.ts";
import type { Row } from "../../../lib/cli/top/rows.ts";
import type { Snapshot } from "../../../lib/cli/top/snapshot.ts";
import { keysOf } from "../../../lib/cli/top/terminal.ts";
import { press } from "../../../lib/cli/verbs/top.ts";
import { PROVENANCES, STATES } from "../../../lib/model/message.ts";
import type { WireMessage, WireStatus } from "../../../lib/protocol/schema.ts";
import { runInside } from "../../helpers/cli.ts";

const NOW = Date.parse("2030-01-01T00:00:00.000Z");
const HOSTILE = "\u001b[2J\u001b]0;owned\u0007\r\n\u202e\u009b31mevil\u200b漢🙂";

function message(extra: Partial<WireMessage> = {}): WireMessage {
  return {
    message_id: "01m8qvpnb6ca0000000000000a",
    client_id: "c",
    idempotency_key: "k",
    correlation_id: null,
    sender_repo: "alpha",
    target_repo: "beta",
    endpoint_id: null,
    provenance: "worker",
    metadata: {},
    body: "SECRET-TEXT",
    state: "pending",
    attempt_count: 1,
    max_attempts: 4,
    created_at: "2029-12-31T23:59:00.000Z",
    updated_at: "2029-12-31T23:59:30.000Z",
    next_attempt_at: null,
    lease_expires_at: null,
    ack_deadline_at: null,
    injected_at: null,
    acknowledged_at: null,
    last_failure_reason: null,
    waiting_reason: "queued",
    replay: null,
    ...extra,
  };
}

function snapshot(messages: readonly WireMessage[], repos: readonly string[]): Snapshot {
  const gate = { open: false, reason: "agent_busy" };
  const status = {
    service: { pid: 7, started_at: "2029-12-31T23:00:00.000Z" },
    queue: { states: { pending: 3, failed: 3 }, cancelled: 2 },
    leases: { active: 1 },
    controls: { paused_at: null, held: [], blocked: [] },
    endpoints: [{
      endpoint_id: "tmux-amq-1",
      attachments: repos.map((repo) => ({
        repo,
        path: "/p",
        command: ["codex", repo],
        mode: "trigger",
        gate,
        recording: repo === "alpha",
        broker_pid: 9,
        window_id: "@1",
        attached_at: "2029-12-31T23:00:00.000Z",
      })),
    }],
  } as unknown as WireStatus;
  return {
    status,
    latest: messages,
    open: messages.filter(({ state }) => state === "pending" || state === "awaiting_ack"),
    moreOpen: false,
    failed: messages.filter(({ state }) => state === "failed"),
  };
}

function view(extra: Partial<View> = {}): View {
  return {
    section: "all",
    help: false,
    texts: false,
    scroll: 0,
    connected: true,
    trouble: null,
    ...extra,
  };
}

const plainText = (rows: readonly Row[]) =>
  rows.map((row) => row.map(({ text }) => text).join("")).join("\n");

Deno.test("[C-01] top fills any terminal exactly, with no control character of a name, command, reason or text", () => {
  const name = fc.oneof(fc.constant(HOSTILE), fc.string({ unit: "binary", maxLength: 300 }));
  const messages = fc.array(
    fc.record({
      sender_repo: name,
      target_repo: name,
      body: name,
      last_failure_reason: fc.option(name),
      waiting_reason: fc.option(name),
      state: fc.constantFrom(...STATES),
      provenance: fc.constantFrom(...PROVENANCES),
      next_attempt_at: fc.constantFrom(null, "2030-01-01T00:00:05.000Z"),
      lease_expires_at: fc.constantFrom(null, "2030-01-01T00:00:20.000Z"),
    }).map(message),
    { maxLength: 60 },
  );
  fc.assert(fc.property(
    messages,
    fc.array(name, { maxLength: 20 }),
    fc.integer({ min: 1, max: 220 }),
    fc.integer({ min: 1, max: 70 }),
    fc.constantFrom("all" as const, ...SECTIONS),
    fc.boolean(),
    fc.nat(100),
    (list, repos, columns, rows, section, texts, scroll) => {
      const look = view({ section, texts, scroll });
      const shown = frame(snapshot(list, repos), look, { columns, rows }, NOW);
      assert.equal(shown.length, rows);
      for (const row of shown) {
        const text = row.map((piece) => piece.text).join("");
        assert.ok(displayWidth(text) <= columns, `${displayWidth(text)} > ${columns}: ${text}`);
        // deno-lint-ignore no-control-regex
        assert.doesNotMatch(text, /[\u0000-\u001f\u007f-\u009f\u200b\u202e]/);
      }
    },
  ));
});

Deno.test("[C-01] top at 80 by 24 names windows, queue, leases, retries, failures and messages, and no text unless asked", () => {
  const list = [
    message({ lease_expires_at: "2030-01-01T00:00:20.000Z" }),
    message({
      target_repo: "gamma",
      next_attempt_at: "2030-01-01T00:00:05.000Z",
      last_failure_reason: "agent_busy",
      waiting_reason: "backoff",
    }),
    message({ state: "failed", last_failure_reason: "ready_timeout" }),
    message({ state: "injected" }),
  ];
  const size = { columns: 80, rows: 24 };
  const shown = plainText(frame(snapshot(list, ["alpha", "beta"]), view(), size, NOW));
  for (
    const text of [
      "service 7, up 1h",
      "3 waiting  1 being written  1 failed",
      "busy: the agent works",
      "being written to",
      "no window",
      "RECORDED",
      "waits: the next try",
      "in 5s   alpha → gamma  retry: the agent works",
      "lease: being written",
      "the window took nothing for too long",
      "injected",
      "q quit  ? help",
    ]
  ) assert.ok(shown.includes(text), `${text} in\n${shown}`);
  assert.ok(!shown.includes("SECRET-TEXT"));
  const asked = plainText(frame(snapshot(list, []), view({ texts: true }), size, NOW));
  assert.ok(asked.includes("│ SECRET-TEXT"));
  const away = plainText(frame(snapshot(list, []), view({ connected: false }), size, NOW));
  assert.ok(away.includes("the service has ended; waiting for it"));
  const help = plainText(frame(snapshot(list, []), view({ help: true }), size, NOW));
  assert.match(help, /q +quit/);
});

Deno.test("[C-01] keys of top: sections, help, texts, scrolling; sequences that are none do nothing", () => {
  assert.deepEqual(keysOf("q\u001b[A\u001bOB\u001b[6~\u001b[1;5C\u0003é\u001b"), [
    { char: "q" },
    "up",
    "down",
    "page-down",
    "quit",
    { char: "é" },
  ]);
  const look = view();
  const type = (text: string) => keysOf(text).forEach((key) => press(look, key, 24));
  type("4");
  assert.equal(look.section, "failures");
  type("jj\u001b[B\u001b[A");
  assert.equal(look.scroll, 2);
  type("G");
  frame(snapshot([message({ state: "failed" })], []), look, { columns: 80, rows: 24 }, NOW);
  assert.equal(look.scroll, 0, "not past the last row");
  type("t?");
  assert.deepEqual([look.texts, look.help], [true, true]);
  type("1");
  assert.deepEqual([look.section, look.help], ["all", false]);
});

Deno.test("[C-01, C-07] top without a terminal is refused with what to use instead", async () => {
  const { code, stdout, stderr } = await runInside(["top"]);
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /needs a terminal.*\nhint: .*tamq watch/);
});
