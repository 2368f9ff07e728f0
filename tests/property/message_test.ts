import assert from "node:assert/strict";
import fc from "fast-check";
import { type MessageEvent, type MessageStatus, transition } from "../../lib/model/message.ts";
import { backoffMs, isCapped } from "../../lib/model/retry_schedule.ts";

const event: fc.Arbitrary<MessageEvent> = fc.oneof(
  fc.constantFrom<MessageEvent>(
    { type: "lease" },
    { type: "lease" },
    { type: "ack" },
    { type: "retry" },
    { type: "cancel" },
    { type: "rebind" },
  ),
  fc.record({
    type: fc.constant("written" as const),
    ackMode: fc.constantFrom("injected", "acknowledged"),
    capped: fc.boolean(),
  }),
  fc.record({
    type: fc.constantFrom("write_failed", "lease_expired", "ack_timeout"),
    capped: fc.boolean(),
  }),
) as fc.Arbitrary<MessageEvent>;

Deno.test("[T-11] no order of events delivers an acknowledged message or forgets an attempt", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      let at: MessageStatus = { state: "pending", leased: false };
      let attempts = 0;
      let leases = 0;
      let acknowledged = false;
      for (const event of events) {
        const before = at;
        const result = transition(at, event);
        if (!result.ok) {
          assert.equal(result.error.state, before.state);
          continue;
        }
        const { next, attempts: count, noop, failure } = result.value;
        if (noop) assert.deepEqual(next, before);
        if (event.type === "lease") leases++;
        if (count === "increment") attempts++;
        if (count === "reset") attempts = leases = 0;
        acknowledged ||= event.type === "ack";
        // Once acknowledged, always acknowledged; nothing is delivered from then on.
        if (acknowledged) assert.deepEqual(next, { state: "acknowledged", leased: false });
        assert.equal(next.leased && next.state !== "pending", false);
        assert.equal(failure !== undefined, next.state === "failed" && event.type !== "rebind");
        assert.equal(attempts, leases);
        at = next;
      }
    }),
    { numRuns: 5000 },
  );
});

Deno.test("[T-13] whatever the schedule, a wait is one of its steps and a message is tried at most as often as allowed", () => {
  const policy = fc.record({
    backoffSeconds: fc.array(fc.integer({ min: 1, max: 86_400 }), { minLength: 1, maxLength: 16 }),
    maxAttempts: fc.integer({ min: 1, max: 9 }),
  });
  fc.assert(fc.property(policy, (policy) => {
    let tried = 0;
    do {
      tried++;
      assert.ok(policy.backoffSeconds.includes(backoffMs(policy, tried) / 1000));
    } while (!isCapped(policy, tried));
    assert.equal(tried, policy.maxAttempts);
  }));
});
