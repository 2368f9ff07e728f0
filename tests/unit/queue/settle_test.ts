import assert from "node:assert/strict";
import { onProbe } from "../../../lib/base/probe.ts";
import { DEFAULT_POLICY } from "../../../lib/model/retry_schedule.ts";
import { withQueue } from "../../helpers/queue_rig.ts";

Deno.test("[T-12] [T-13] failures back off 5, 15, 60 seconds and fail at the fourth attempt", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const id = await rig.send();
    for (const [index, wait] of [5000, 15000, 60000].entries()) {
      await rig.settle(beta, "failed", { reason: `try ${index + 1}` });
      const message = rig.state(id);
      assert.equal(message.state, "pending");
      assert.equal(message.attempt_count, index + 1);
      assert.equal(message.last_failure_reason, `try ${index + 1}`);
      assert.equal(Date.parse(message.next_attempt_at!) - rig.clock.now(), wait);
      assert.equal(message.lease_expires_at, null);
      await rig.advance(wait - 1);
      assert.equal(beta.deliveries.length, index + 1);
      await rig.advance(1);
      assert.equal(beta.deliveries.length, index + 2);
    }
    await rig.settle(beta, "stalled");
    const message = rig.state(id);
    assert.equal(message.state, "failed");
    assert.equal(message.attempt_count, 4);
    assert.equal(message.last_failure_reason, "stalled");
    await rig.advance(10_000_000);
    assert.equal(beta.deliveries.length, 4);
    assert.deepEqual(rig.queue.message(id).attempts.map((attempt) => attempt.outcome), [
      "failed",
      "failed",
      "failed",
      "stalled",
    ]);
  }));

Deno.test("[T-12] only the very token of the lease settles it, once, from its own window", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const gamma = await rig.attach({ repo: "gamma" });
    const id = await rig.send();
    const lease_token = beta.deliveries[0]!.leaseToken;
    const lost = { accepted: false, reason: "lease_lost" };
    const settle = (who: typeof beta, token: string) =>
      rig.queue.settle(who.attached, { lease_token: token, outcome: "written" });
    assert.deepEqual(await settle(beta, "0".repeat(26)), lost);
    assert.deepEqual(await settle(gamma, lease_token), lost);
    assert.equal(rig.queue.summary().activeLeases, 1);
    assert.deepEqual(await settle(beta, lease_token), { accepted: true });
    const before = rig.queue.message(id);
    assert.deepEqual(
      await rig.queue.settle(beta.attached, { lease_token, outcome: "failed" }),
      lost,
    );
    assert.deepEqual(rig.queue.message(id), before);
  }));

Deno.test("[T-14] injected mode: written or displayed completes the message", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    for (const outcome of ["written", "displayed"] as const) {
      const id = await rig.send();
      await rig.settle(beta, outcome);
      const { message, attempts } = rig.queue.message(id);
      assert.equal(message.state, "injected");
      assert.equal(message.injected_at, "2030-01-01T00:00:00.000Z");
      assert.deepEqual(attempts.map((attempt) => attempt.outcome), [outcome]);
    }
  }));

Deno.test("[T-14] acknowledged mode: the same id again after the deadline, failed at the cap", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, ackMode: "acknowledged", maxAttempts: 2 };
    const beta = await rig.attach();
    const id = await rig.send();
    assert.equal(beta.deliveries[0]!.envelope.ack_requested, true);
    await rig.settle(beta);
    assert.equal(rig.state(id).state, "awaiting_ack");
    assert.equal(rig.state(id).ack_deadline_at, "2030-01-01T00:00:30.000Z");
    await rig.advance(29_999);
    assert.equal(beta.deliveries.length, 1);
    await rig.advance(1);
    assert.deepEqual(beta.deliveries.map((delivery) => delivery.messageId), [id, id]);
    assert.equal(beta.deliveries[1]!.attempt, 2);
    await rig.settle(beta);
    await rig.advance(30_000);
    assert.equal(rig.state(id).state, "failed");
    assert.equal(rig.state(id).last_failure_reason, "ack_timeout");
  }));

Deno.test("[T-15] a late acknowledgement wins over failure and is idempotent", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, maxAttempts: 1 };
    const beta = await rig.attach();
    const id = await rig.send();
    await rig.settle(beta, "failed");
    assert.equal(rig.state(id).state, "failed");
    const { message } = await rig.queue.ack(id);
    assert.equal(message.state, "acknowledged");
    await rig.advance(1000);
    assert.deepEqual((await rig.queue.ack(id)).message, message);
  }));

Deno.test("[T-15] an acknowledgement cancels retry, deadline and a delivery under way", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, ackMode: "acknowledged" };
    const beta = await rig.attach();
    const awaiting = await rig.send();
    await rig.settle(beta);
    await rig.queue.ack(awaiting);
    const leased = await rig.send();
    await rig.queue.ack(leased);
    assert.equal(rig.queue.summary().activeLeases, 0);
    assert.deepEqual(await rig.settle(beta), { accepted: false, reason: "lease_lost" });
    assert.equal(rig.queue.message(leased).attempts[0]!.outcome, "interrupted");
    const backedOff = await rig.send();
    await rig.settle(beta, "failed", { scope: "message" });
    await rig.queue.ack(backedOff);
    await rig.advance(1_000_000);
    assert.equal(beta.deliveries.length, 3);
    for (const id of [awaiting, leased, backedOff]) {
      assert.equal(rig.state(id).state, "acknowledged");
    }
  }));

Deno.test("[T-16] retry starts a failed message over and refuses every other state", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, maxAttempts: 1 };
    const beta = await rig.attach();
    const id = await rig.send();
    await assert.rejects(rig.queue.retry(id, {}), /it is pending/);
    await rig.settle(beta, "failed");
    const { message } = await rig.queue.retry(id, {});
    assert.equal(message.state, "pending");
    assert.equal(message.attempt_count, 0);
    await rig.advance(5000);
    assert.equal(beta.deliveries.at(-1)!.attempt, 1);
    await rig.settle(beta);
    await assert.rejects(rig.queue.retry(id, {}), /it is injected/);
    assert.deepEqual(rig.queue.message(id).attempts.map((attempt) => attempt.attempt), [1, 1]);
    await assert.rejects(rig.queue.retry("nobody", {}), /no message nobody/);
  }));

Deno.test("[T-27] a worker's program cannot retry", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const id = await rig.send();
    await assert.rejects(
      rig.queue.retry(id, beta.workerOrigin),
      (error) => (error as { reason?: string }).reason === "worker_refused",
    );
  }));

Deno.test("[T-27] cancel withdraws what waits, never what is being delivered or done", () =>
  withQueue(async (rig) => {
    const waiting = await rig.send();
    assert.equal((await rig.queue.cancel(waiting)).message.last_failure_reason, "cancelled");
    const beta = await rig.attach();
    assert.equal(beta.deliveries.length, 0);
    const id = await rig.send();
    await assert.rejects(rig.queue.cancel(id), /being delivered right now/);
    await rig.settle(beta);
    await assert.rejects(rig.queue.cancel(id), /it is injected/);
  }));

Deno.test("a settlement that could not be made durable is rejected and can be repeated", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const [first, second] = [await rig.send(), await rig.send()];
    const stop = onProbe("commit.before", () => {
      throw new Error("disk I/O error");
    });
    await assert.rejects(rig.settle(beta), /cannot be read or written/);
    stop();
    await rig.settled();
    assert.equal(beta.deliveries.length, 1);
    assert.deepEqual(await rig.settle(beta), { accepted: true });
    assert.equal(rig.state(first!).state, "injected");
    assert.equal(beta.deliveries[1]?.messageId, second);
  }));
