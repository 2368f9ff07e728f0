import assert from "node:assert/strict";
import {
  EVENT_TYPES,
  isTerminal,
  type MessageEvent,
  type MessageStatus,
  STATES,
  transition,
} from "../../../lib/model/message.ts";

const STATUSES: Record<string, MessageStatus> = {
  waiting: { state: "pending", leased: false },
  leased: { state: "pending", leased: true },
  awaiting: { state: "awaiting_ack", leased: false },
  injected: { state: "injected", leased: false },
  acked: { state: "acknowledged", leased: false },
  failed: { state: "failed", leased: false },
};

const EVENTS: Record<string, MessageEvent> = {
  lease: { type: "lease" },
  "written inj": { type: "written", ackMode: "injected", capped: false },
  "written inj cap": { type: "written", ackMode: "injected", capped: true },
  "written ack": { type: "written", ackMode: "acknowledged", capped: false },
  "written ack cap": { type: "written", ackMode: "acknowledged", capped: true },
  "write_failed": { type: "write_failed", capped: false },
  "write_failed cap": { type: "write_failed", capped: true },
  "lease_expired": { type: "lease_expired", capped: false },
  "lease_expired cap": { type: "lease_expired", capped: true },
  "ack_timeout": { type: "ack_timeout", capped: false },
  "ack_timeout cap": { type: "ack_timeout", capped: true },
  ack: { type: "ack" },
  retry: { type: "retry" },
  cancel: { type: "cancel" },
  rebind: { type: "rebind" },
};

// Written by hand from the contract. A cell is the next status, `=` for "allowed, changes nothing",
// `stay` for "stays, but its binding changes", or a refusal: L lease_lost, A already_leased,
// S invalid_state. `+` counts an attempt, `0` resets them, `!x` fails with x.
const TABLE = `
                   | waiting          | leased         | awaiting            | injected | acked | failed
lease              | leased+          | A              | S                   | S        | S     | S
written inj        | L                | injected       | L                   | L        | L     | L
written inj cap    | L                | injected       | L                   | L        | L     | L
written ack        | L                | awaiting       | L                   | L        | L     | L
written ack cap    | L                | awaiting       | L                   | L        | L     | L
write_failed       | L                | waiting        | L                   | L        | L     | L
write_failed cap   | L                | failed!cause   | L                   | L        | L     | L
lease_expired      | L                | waiting        | L                   | L        | L     | L
lease_expired cap  | L                | failed!cause   | L                   | L        | L     | L
ack_timeout        | S                | S              | waiting             | S        | S     | S
ack_timeout cap    | S                | S              | failed!ack_timeout  | S        | S     | S
ack                | acked            | acked          | acked               | acked    | =     | acked
retry              | S                | S              | S                   | S        | S     | waiting0
cancel             | failed!cancelled | A              | S                   | S        | S     | S
rebind             | stay             | stay           | stay                | =        | =     | stay
`;

const REFUSALS: Record<string, string> = {
  L: "lease_lost",
  A: "already_leased",
  S: "invalid_state",
};

Deno.test("[T-11] every status meets every event exactly as the table says", () => {
  const rows = TABLE.trim().split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  const columns = rows.shift()!.slice(-6);
  assert.deepEqual(columns, Object.keys(STATUSES));
  assert.deepEqual(rows.map((row) => row[0]), Object.keys(EVENTS));
  for (const [name, ...cells] of rows) {
    cells.forEach((cell, index) => {
      const from = STATUSES[columns[index]!]!;
      const got = transition(from, EVENTS[name!]!);
      const where = `${columns[index]} × ${name}`;
      if (REFUSALS[cell!] !== undefined) {
        assert.equal(got.ok, false, where);
        assert.deepEqual(got.ok ? {} : got.error, {
          reason: REFUSALS[cell!],
          state: from.state,
          event: EVENTS[name!]!.type,
        }, where);
        return;
      }
      assert.ok(got.ok, where);
      const [, next, count, failure] = /^(=|[a-z]+)([+0]?)(?:!(.+))?$/.exec(cell!)!;
      const stays = next === "=" || next === "stay";
      assert.deepEqual(got.value.next, stays ? from : STATUSES[next!], where);
      assert.equal(got.value.noop, next === "=", where);
      assert.equal(got.value.failure, failure, where);
      assert.equal(
        got.value.attempts,
        count === "+" ? "increment" : count === "0" ? "reset" : "keep",
        where,
      );
    });
  }
});

Deno.test("[T-11] the table above covers every event and every state", () => {
  const types = new Set(Object.values(EVENTS).map((event) => event.type));
  assert.deepEqual([...types].sort(), [...EVENT_TYPES].sort());
  const states = new Set(Object.values(STATUSES).map((status) => status.state));
  assert.deepEqual([...states].sort(), [...STATES].sort());
});

Deno.test("terminal states are those that nothing changes by itself", () => {
  assert.deepEqual(STATES.filter(isTerminal), ["injected", "acknowledged", "failed"]);
});
