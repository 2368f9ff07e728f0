import assert from "node:assert/strict";
import { displayWidth, messageEntry, relativeTime, table } from "../../../lib/cli/render.ts";
import { parseTime } from "../../../lib/cli/times.ts";
import type { WireMessage } from "../../../lib/protocol/schema.ts";

const NOW = Date.UTC(2030, 0, 31, 12, 0, 0);

const message = (change: Partial<WireMessage>): WireMessage => ({
  message_id: "m1",
  client_id: "c",
  idempotency_key: "k",
  correlation_id: null,
  sender_repo: "alpha",
  target_repo: "beta",
  endpoint_id: null,
  provenance: "worker",
  metadata: {},
  body: "hello",
  state: "injected",
  attempt_count: 1,
  max_attempts: 4,
  created_at: "2030-01-31T11:58:00.000Z",
  updated_at: "2030-01-31T11:58:00.000Z",
  next_attempt_at: null,
  lease_expires_at: null,
  ack_deadline_at: null,
  injected_at: null,
  acknowledged_at: null,
  last_failure_reason: null,
  waiting_reason: null,
  replay: null,
  ...change,
});

Deno.test("[C-01] a body can neither drive the terminal nor forge a row of the history", () => {
  const forged =
    "x\nm2  alpha/o → beta  injected  operator, 1s ago\n\u001b[2J\u202eright to left\r";
  const lines = messageEntry(message({ body: forged, sender_repo: "a\u001b[31m\nb" }), NOW).split(
    "\n",
  );
  assert.equal(lines.length, 4);
  assert.match(lines[0]!, /^m1 {2}a\\x1b\[31m\\nb → beta {2}injected {2}worker, 2m ago$/);
  for (const line of lines.slice(1)) assert.ok(line.startsWith("  │ "), line);
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(lines.join(""), /[\u0000-\u001f\u007f-\u009f\u202e]/);
});

Deno.test("[C-01] why a message failed or waits stands beside its state", () => {
  const failed = message({ state: "failed", last_failure_reason: "ack_timeout", attempt_count: 4 });
  assert.match(messageEntry(failed, NOW), /failed \(ack_timeout\) .*attempt 4/);
  const waiting = message({ state: "pending", waiting_reason: "not attached" });
  assert.match(messageEntry(waiting, NOW), /pending \(not attached\)/);
  assert.doesNotMatch(messageEntry(message({ last_failure_reason: "old" }), NOW), /old/);
});

Deno.test("[C-01] of a long text the history shows the beginning and how much is left, with full all of it", () => {
  const lines = Array.from({ length: 40 }, (_, i) => `line ${i}`).join("\n");
  const entry = messageEntry(message({ body: lines }), NOW).split("\n");
  assert.deepEqual(entry.slice(-2), [
    "  │ line 11",
    "  ┆ 28 lines more: tamq message m1",
  ]);
  assert.equal(messageEntry(message({ body: lines }), NOW, { full: true }).split("\n").length, 41);
  const long = messageEntry(message({ body: "x".repeat(1499) + "🙂y" }), NOW);
  assert.match(long, /\n {2}│ x{1499}\n {2}┆ 3 characters more: tamq message m1$/);
  const forged = messageEntry(message({ body: "a\n  ┆ 9 lines more" }), NOW);
  assert.match(forged, /\n {2}│ {3}┆ 9 lines more$/);
  const exact = Array.from({ length: 12 }, () => "x").join("\n");
  assert.doesNotMatch(messageEntry(message({ body: exact }), NOW), /┆/);
});

Deno.test("[C-01] times are relative for a week, then dates", () => {
  const at = (ms: number) => relativeTime(new Date(NOW - ms).toISOString(), NOW);
  assert.deepEqual(
    [at(0), at(59_000), at(61_000), at(7_200_000), at(3 * 86_400_000), at(-30_000)],
    ["0s ago", "59s ago", "1m ago", "2h ago", "3d ago", "in 30s"],
  );
  assert.equal(at(8 * 86_400_000), "2030-01-23 12:00Z");
});

Deno.test("[C-01] columns line up over wide and combining characters", () => {
  assert.equal(displayWidth("漢字"), 4);
  assert.equal(displayWidth("e\u0301"), 1);
  assert.equal(table([["漢字", "x"], ["abcde", "y"]]), "漢字   x\nabcde  y");
});

Deno.test("[Q-04] times of a filter: RFC 3339, local dates, ages; anything else is refused", () => {
  const time = (text: string) => parseTime(text, NOW, "--since");
  assert.equal(time("2030-01-31T09:00:00Z"), "2030-01-31T09:00:00.000Z");
  assert.equal(time("2030-01-31T09:00:00.5+02:00"), "2030-01-31T07:00:00.500Z");
  assert.equal(time("15m"), "2030-01-31T11:45:00.000Z");
  assert.equal(time("1w"), "2030-01-24T12:00:00.000Z");
  assert.equal(time("2030-01-31"), new Date(2030, 0, 31).toISOString());
  assert.equal(time("2030-01-31 09:30"), new Date(2030, 0, 31, 9, 30).toISOString());
  for (
    const bad of ["yesterday", "", "2030-13-01", "2030-02-30", "5", "-5m", "2030-01-31T25:00:00Z"]
  ) {
    assert.throws(() => time(bad), /--since .* is no time/, bad);
  }
});
