import assert from "node:assert/strict";
import { readReceipts } from "../../../lib/store/receipts.ts";
import { type FakeBroker, withQueue } from "../../helpers/queue_rig.ts";

const HOUR = 3_600_000;

const settlement = (broker: FakeBroker, outcome: "written" | "failed" = "written") => ({
  lease_token: broker.deliveries.at(-1)!.leaseToken,
  outcome,
});

Deno.test("[T-12] [T-19] a lease that nobody settles expires as a failed attempt and is tried again", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const id = await rig.send();
    await rig.advance(29_999);
    assert.equal(rig.queue.summary().activeLeases, 1);
    await rig.advance(1);
    const { message, attempts } = rig.queue.message(id);
    assert.equal(message.state, "pending");
    assert.equal(message.last_failure_reason, "lease_expired");
    assert.equal(attempts[0]!.outcome, "expired");
    assert.deepEqual(await rig.settle(beta), { accepted: false, reason: "lease_lost" });
    await rig.advance(5000);
    assert.equal(beta.deliveries.length, 2);
    assert.equal(beta.deliveries[1]!.attempt, 2);
  }));

Deno.test("[T-25] a broker that let a lease run out gets no further one until it speaks", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const [first] = [await rig.send(), await rig.send()];
    await rig.advance(30_000);
    await rig.advance(HOUR);
    assert.equal(beta.deliveries.length, 1);
    assert.equal(rig.state(first!).attempt_count, 1);
    assert.equal(rig.state(first!).waiting_reason, "broker_silent");
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    assert.equal(beta.deliveries.length, 2);
  }));

Deno.test("[T-25] a broker that attaches again reports its attempt: nothing is shown twice", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    const id = await rig.send();
    await rig.restart();
    const again = await rig.attach({ broker: 500, outstanding: settlement(beta) });
    assert.equal(rig.state(id).state, "injected");
    await rig.advance(HOUR);
    assert.equal(again.deliveries.length, 0);
    assert.deepEqual(rig.queue.message(id).attempts.map((attempt) => attempt.outcome), ["written"]);
  }));

Deno.test("[T-25] [T-26] [T-19] a lease that its broker never heard of is released at once, order kept", () =>
  withQueue(async (rig) => {
    // The service dies after the lease was durable, before the broker was told.
    await rig.attach({ broker: 500 });
    const [first, second] = [await rig.send(), await rig.send()];
    await rig.restart();
    const again = await rig.attach({ broker: 500, inProgress: null });
    assert.deepEqual(again.deliveries.map((delivery) => delivery.messageId), [first]);
    assert.equal(again.deliveries[0]!.attempt, 2);
    await rig.settle(again, "written");
    assert.deepEqual(again.deliveries.map((delivery) => delivery.messageId), [first, second]);
    assert.deepEqual(
      rig.queue.message(first!).attempts.map(({ outcome, reason }) => [outcome, reason]),
      [["interrupted", "not_received"], ["written", null]],
    );
  }));

Deno.test("[T-25] a lease that its broker says it is working on stays", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    const id = await rig.send();
    await rig.restart();
    const inProgress = beta.deliveries[0]!.leaseToken;
    const again = await rig.attach({ broker: 500, inProgress });
    assert.equal(again.deliveries.length, 0);
    assert.deepEqual(await rig.queue.settle(again.attached, settlement(beta)), { accepted: true });
    assert.equal(rig.state(id).state, "injected");
  }));

Deno.test("[T-25] a broker back in the middle of a delivery gets nothing else until it settles", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    const first = await rig.send();
    const second = await rig.send();
    await rig.queue.detach(beta.attached);
    const again = await rig.attach({ broker: 500 });
    assert.equal(again.deliveries.length, 0);
    const answer = await rig.queue.settle(again.attached, settlement(beta));
    await rig.settled();
    assert.deepEqual(answer, { accepted: true });
    assert.equal(rig.state(first).state, "injected");
    assert.deepEqual(again.deliveries.map((delivery) => delivery.messageId), [second]);
  }));

Deno.test("[T-25] a delivery taken over and then ended elsewhere does not block its window", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    const [first, second, third] = [await rig.send(), await rig.send(), await rig.send()];
    await rig.restart();
    let again = await rig.attach({ broker: 500 });
    await rig.queue.ack(first!);
    await rig.settled();
    assert.deepEqual(again.deliveries.map((delivery) => delivery.messageId), [second]);
    // Settled over the old connection, whose last frame is read after the new one attached.
    const old = again;
    again = await rig.attach({ broker: 500 });
    assert.equal(old.attached.live, false);
    await rig.queue.settle(old.attached, settlement(old));
    await rig.settled();
    assert.deepEqual(again.deliveries.map((delivery) => delivery.messageId), [third]);
    assert.equal(beta.deliveries.length, 1);
  }));

Deno.test("[T-19] a delivery that never reached its broker is made again after the lease", () =>
  withQueue(async (rig) => {
    await rig.attach({ broker: 500 });
    const id = await rig.send();
    await rig.restart();
    const again = await rig.attach({ broker: 500 }); // it knows of no attempt
    await rig.advance(30_000);
    assert.equal(rig.state(id).last_failure_reason, "lease_expired");
    await rig.advance(5000);
    assert.deepEqual(again.deliveries.map((delivery) => delivery.messageId), [id]);
  }));

Deno.test("[T-19] leases found at a start live at least five seconds for their brokers", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    const id = await rig.send();
    await rig.crash();
    rig.clock.advance(HOUR);
    await rig.boot();
    await rig.advance(4999);
    assert.equal(rig.queue.summary().activeLeases, 1);
    await rig.attach({ broker: 500, outstanding: settlement(beta) });
    assert.equal(rig.state(id).state, "injected");
  }));

Deno.test("[T-19] leases whose brokers do not come back expire five seconds after a late start", () =>
  withQueue(async (rig) => {
    await rig.attach({ broker: 500 });
    const id = await rig.send();
    await rig.crash();
    rig.clock.advance(HOUR);
    await rig.boot();
    await rig.advance(5000);
    assert.equal(rig.state(id).last_failure_reason, "lease_expired");
  }));

Deno.test("[T-19] a broker whose process is gone has failed its attempt at once", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    const id = await rig.send();
    rig.processes.end(500);
    await rig.queue.detach(beta.attached);
    const { message, attempts } = rig.queue.message(id);
    assert.equal(message.last_failure_reason, "broker_lost");
    assert.equal(message.attempt_count, 1);
    assert.equal(attempts[0]!.outcome, "failed");
    // Dies a moment after its connection: found within a second, not at the lease's end.
    const next = await rig.attach({ broker: 501 });
    await rig.advance(5000);
    assert.equal(next.deliveries.length, 1);
    await rig.queue.detach(next.attached);
    assert.equal(rig.queue.summary().activeLeases, 1);
    rig.processes.end(501);
    await rig.advance(1000);
    assert.equal(rig.state(id).last_failure_reason, "broker_lost");
    assert.equal(rig.state(id).attempt_count, 2);
    // And while the service was away.
    const third = await rig.attach({ broker: 502 });
    await rig.advance(15_000);
    assert.equal(third.deliveries.length, 1);
    await rig.crash();
    rig.processes.end(502);
    await rig.boot();
    assert.equal(rig.state(id).attempt_count, 3);
    assert.equal(rig.state(id).last_failure_reason, "broker_lost");
    assert.equal(rig.queue.summary().activeLeases, 0);
  }));

Deno.test("[T-25] a broker that dies at the same moment as the claim is never handed the message", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ open: false });
    const id = await rig.send();
    rig.queue.setGate(beta.attached, true); // the claim is in the next commit
    await rig.queue.detach(beta.attached);
    await rig.settled();
    assert.equal(beta.deliveries.length, 0);
    assert.equal(rig.queue.summary().activeLeases, 0);
    assert.equal(rig.state(id).state, "pending");
  }));

for (
  const [name, jump] of [["+1 h", HOUR], ["-1 h", -HOUR], ["+3 d", 72 * HOUR], [
    "-3 d",
    -72 * HOUR,
  ]] as const
) {
  Deno.test(`[T-12] a wall clock that jumps ${name} neither ends a lease early nor keeps it`, () =>
    withQueue(async (rig) => {
      await rig.attach();
      const id = await rig.send();
      await rig.advance(10_000);
      rig.clock.jump(jump);
      await rig.advance(19_999);
      assert.equal(rig.queue.summary().activeLeases, 1);
      await rig.advance(1);
      assert.equal(rig.queue.summary().activeLeases, 0);
      assert.equal(rig.state(id).last_failure_reason, "lease_expired");
    }));
}

Deno.test("[T-13] a wall clock set back while the service was down delays no retry beyond the schedule", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    await rig.send();
    await rig.settle(beta, "failed");
    await rig.crash();
    rig.clock.jump(-72 * HOUR);
    await rig.boot();
    const again = await rig.attach({ broker: 500 });
    await rig.advance(300_000);
    assert.equal(again.deliveries.length, 1);
  }));

Deno.test("[L-03] stopping takes no lease, keeps queue and leases, and leaves a receipt", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ broker: 500 });
    const leased = await rig.send();
    const waiting = await rig.send({ body: "secret" });
    const late = rig.queue.send(rig.request(), {});
    await rig.queue.stop();
    const admitted = await late; // answered before the end, so it is kept
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    assert.equal(beta.deliveries.length, 1);
    assert.equal(rig.clock.timers, 0);
    assert.equal(rig.queue.summary().activeLeases, 1);
    const receipt = readReceipts(rig.db, 1)[0]!;
    assert.equal(receipt.kind, "shutdown");
    assert.equal(receipt.data.pending, 3);
    assert.doesNotMatch(JSON.stringify(receipt), /secret/);
    const endpoint = rig.store.endpoints.get(beta.window.endpointRef)!;
    assert.equal(endpoint.disconnectedAt, rig.clock.now());
    rig.db.close();
    await rig.boot();
    for (const id of [leased, waiting, admitted.message_id]) {
      assert.equal(rig.state(id).state, "pending");
    }
    await rig.attach({ broker: 500, outstanding: settlement(beta) });
    assert.equal(rig.state(leased).state, "injected");
  }));

Deno.test("an idle queue keeps no timer that fires again and again", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    await rig.send();
    await rig.settle(beta);
    await rig.advance(HOUR);
    assert.equal(rig.clock.timers, 0);
  }));
