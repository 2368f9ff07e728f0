import assert from "node:assert/strict";
import { onProbe } from "../../../lib/base/probe.ts";
import { DEFAULT_POLICY } from "../../../lib/model/retry_schedule.ts";
import type { FakeBroker } from "../../helpers/queue_rig.ts";
import { withQueue } from "../../helpers/queue_rig.ts";

const ids = (broker: FakeBroker) => broker.deliveries.map((delivery) => delivery.messageId);

Deno.test("[T-25] a message is pushed to an open window, one outstanding at a time, in order", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const sent = [await rig.send(), await rig.send(), await rig.send()];
    assert.deepEqual(ids(beta), sent.slice(0, 1));
    for (let done = 1; done <= 3; done++) {
      assert.deepEqual(await rig.settle(beta), { accepted: true });
      assert.deepEqual(ids(beta), sent.slice(0, done + 1));
    }
    for (const id of sent) assert.equal(rig.state(id).state, "injected");
    const first = beta.deliveries[0]!;
    assert.equal(first.attempt, 1);
    assert.deepEqual(first.envelope, {
      message_id: sent[0],
      sender_repo: "local",
      provenance: "cli",
      body: "please rebase",
      ack_requested: false,
    });
  }));

Deno.test("[T-12] a lease is durable before anything is delivered", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ open: false });
    const id = await rig.send();
    let deliveredBeforeCommit = false;
    const stop = onProbe("commit.before", () => {
      deliveredBeforeCommit ||= beta.deliveries.length > 0;
    });
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    stop();
    assert.equal(deliveredBeforeCommit, false);
    assert.equal(beta.deliveries.length, 1);
    const row = rig.store.messages.byId(id)!;
    assert.equal(row.leaseToken, beta.deliveries[0]!.leaseToken);
    assert.equal(row.attemptCount, 1);
  }));

Deno.test("[T-12] a lease that could not be made durable is not delivered, and is tried again", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ open: false });
    const id = await rig.send();
    let failures = 2;
    const stop = onProbe("commit.before", () => {
      if (failures-- > 0) throw new Error("disk I/O error");
    });
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    assert.equal(beta.deliveries.length, 0);
    assert.equal(rig.state(id).attempt_count, 0);
    await rig.advance(1000);
    await rig.advance(1000);
    stop();
    assert.equal(beta.deliveries.length, 1);
    assert.equal(rig.state(id).attempt_count, 1);
  }));

Deno.test("[T-13] a closed gate takes no lease and consumes no attempt, and says why it waits", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ open: false });
    const id = await rig.send();
    assert.equal(rig.state(id).waiting_reason, "gate: not open yet");
    rig.queue.setGate(beta.attached, false, "agent busy");
    await rig.advance(600_000);
    assert.equal(rig.state(id).attempt_count, 0);
    assert.equal(rig.state(id).waiting_reason, "gate: agent busy");
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    assert.deepEqual(ids(beta), [id]);
    assert.equal(rig.state(id).waiting_reason, null);
  }));

Deno.test("[T-13] a gate closed for an hour costs a message that waited so long one failed attempt", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, readySeconds: 3600, maxAttempts: 2 };
    const beta = await rig.attach();
    rig.queue.setGate(beta.attached, false, "busy");
    const old = await rig.send();
    await rig.advance(1_800_000);
    const young = await rig.send();
    await rig.advance(1_799_999);
    assert.equal(rig.state(old).attempt_count, 0);
    await rig.advance(1);
    assert.equal(rig.state(old).attempt_count, 1);
    assert.equal(rig.state(old).last_failure_reason, "ready_timeout");
    assert.equal(rig.state(young).attempt_count, 0);
    await rig.advance(1_800_000);
    assert.equal(rig.state(young).attempt_count, 1);
    await rig.advance(1_805_000);
    assert.equal(rig.state(old).state, "failed");
    assert.equal(rig.state(old).last_failure_reason, "ready_timeout");
    assert.deepEqual(rig.queue.message(old).attempts.map((attempt) => attempt.reason), [
      "ready_timeout",
      "ready_timeout",
    ]);
    assert.equal(beta.deliveries.length, 0);
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    assert.deepEqual(ids(beta), [young]);
  }));

Deno.test("[T-26] a target-level failure backs the whole target off, also over a restart", () =>
  withQueue(async (rig) => {
    let beta = await rig.attach({ broker: 500 });
    const [first, second] = [await rig.send(), await rig.send()];
    await rig.settle(beta, "failed", { reason: "dialog", scope: "target" });
    await rig.advance(4000);
    assert.deepEqual(ids(beta), [first]);
    assert.equal(rig.state(second!).waiting_reason, "backoff");
    await rig.restart();
    beta = await rig.attach({ broker: 500 });
    assert.deepEqual(ids(beta), []);
    await rig.advance(999);
    assert.deepEqual(ids(beta), []);
    await rig.advance(1);
    assert.deepEqual(ids(beta), [first]);
    await rig.settle(beta);
    assert.deepEqual(ids(beta), [first, second]);
  }));

Deno.test("[T-26] a target-level failure at the cap leaves the target alone for a while, too", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, maxAttempts: 1 };
    const beta = await rig.attach();
    const [first, second] = [await rig.send(), await rig.send()];
    await rig.settle(beta, "failed", { reason: "dialog" });
    assert.equal(rig.state(first!).state, "failed");
    assert.deepEqual(ids(beta), [first]);
    await rig.advance(5000);
    assert.deepEqual(ids(beta), [first, second]);
  }));

Deno.test("[T-26] a message-level failure lets younger messages pass", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const [first, second, third] = [await rig.send(), await rig.send(), await rig.send()];
    await rig.settle(beta, "failed", { reason: "too long for the line", scope: "message" });
    assert.deepEqual(ids(beta), [first, second]);
    await rig.settle(beta);
    await rig.settle(beta);
    assert.deepEqual(ids(beta), [first, second, third]);
    await rig.advance(5000);
    assert.deepEqual(ids(beta), [first, second, third, first]);
  }));

Deno.test("[T-26] messages that await acknowledgement or failed do not block younger ones", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, ackMode: "acknowledged", maxAttempts: 1 };
    const beta = await rig.attach();
    const [first, second, third] = [await rig.send(), await rig.send(), await rig.send()];
    await rig.settle(beta);
    assert.equal(rig.state(first!).state, "awaiting_ack");
    await rig.settle(beta, "failed", { scope: "message" });
    assert.equal(rig.state(second!).state, "failed");
    assert.deepEqual(ids(beta), [first, second, third]);
  }));

Deno.test("[T-18] an unbound message waits with no endpoint and goes to the only one that comes", () =>
  withQueue(async (rig) => {
    const id = await rig.send();
    assert.equal(rig.state(id).waiting_reason, "not_attached");
    assert.equal(rig.state(id).endpoint_id, null);
    const beta = await rig.attach({ server: 5 });
    assert.deepEqual(ids(beta), [id]);
  }));

Deno.test("[T-18] with several endpoints an unbound message waits until one is left", () =>
  withQueue(async (rig) => {
    const id = await rig.send();
    const one = await rig.attach({ server: 1, open: false });
    const two = await rig.attach({ server: 2, open: false });
    rig.queue.setGate(one.attached, true);
    rig.queue.setGate(two.attached, true);
    await rig.settled();
    assert.deepEqual([ids(one), ids(two)], [[], []]);
    assert.equal(rig.state(id).waiting_reason, "ambiguous_endpoint");
    await rig.queue.detach(one.attached);
    await rig.settled();
    assert.deepEqual(ids(two), [id]);
  }));

Deno.test("[T-18] a message tried at one live endpoint is not moved to another that opens", () =>
  withQueue(async (rig) => {
    const one = await rig.attach({ server: 1 });
    const id = await rig.send();
    await rig.settle(one, "failed", { scope: "message" });
    const two = await rig.attach({ server: 2 });
    await rig.advance(5000);
    assert.deepEqual([ids(one), ids(two)], [[id, id], []]);
  }));

Deno.test("[E-02] one window a repository and endpoint; a dead broker's window is replaced", () =>
  withQueue(async (rig) => {
    const first = await rig.attach({ broker: 500 });
    const id = await rig.send();
    assert.equal(ids(first).length, 1);
    await assert.rejects(
      rig.attach({ broker: 501 }),
      (error) => (error as { reason?: string }).reason === "already_attached",
    );
    rig.processes.end(500);
    const second = await rig.attach({ broker: 501 });
    assert.equal(first.attached.live, false);
    assert.deepEqual(rig.attachments.all(), [second.attached]);
    // The dead broker's attempt is over, recorded with its reason.
    assert.equal(rig.state(id).last_failure_reason, "broker_lost");
    await rig.queue.detach(first.attached); // its late end of file changes nothing
    assert.deepEqual(rig.attachments.all(), [second.attached]);
    await rig.attach({ server: 2, broker: 502 }); // another endpoint may host it as well
  }));

Deno.test("[B-04] a process belongs to the nearest broker or worker among its ancestors", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha", broker: 500 });
    const beta = await rig.attach({ repo: "beta", broker: 600 });
    const owner = (...pids: number[]) => {
      const found = rig.attachments.ownerOf(pids);
      return found && [found.attached.window.repo, found.isBroker];
    };
    assert.deepEqual(owner(500, 100, 1), ["alpha", true]);
    assert.deepEqual(owner(9999, 100_500, 500, 100), ["alpha", false]);
    assert.deepEqual(owner(9999, 500), ["alpha", false]);
    assert.deepEqual(owner(100_500), ["alpha", false]);
    assert.deepEqual(owner(7, 100_600, 600, 100_500, 500), ["beta", false]);
    assert.equal(owner(7, 8, 9), undefined);
    await rig.queue.detach(beta.attached);
    assert.deepEqual(owner(7, 100_600, 600, 100_500, 500), ["alpha", false]);
    await rig.queue.detach(alpha.attached);
    assert.equal(owner(500), undefined);
  }));

Deno.test("claims do not read history: the plan uses the index of waiting messages alone", () =>
  withQueue((rig) => {
    const plan = rig.db.prepare(
      `EXPLAIN QUERY PLAN SELECT seq FROM messages m INDEXED BY messages_claim
       WHERE m.target_repo = ? AND m.state = 'pending' AND m.held = 0
       AND m.lease_token IS NULL AND m.endpoint = ? ORDER BY m.seq LIMIT 1`,
    ).all("beta", 1).map((row) => String(row.detail));
    assert.deepEqual(plan, [
      "SEARCH m USING INDEX messages_claim (target_repo=? AND endpoint=?)",
    ]);
    return Promise.resolve();
  }));

Deno.test("[T-25] [T-13] what is sent between a claim's commit and its answer is delivered at once, not with the next event", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ repo: "beta" });
    await rig.send({ body: "first" });
    assert.equal(beta.deliveries.length, 1);
    // The commit that settles the first one also looks for the next, and finds none. The second is
    // sent before that look has heard so, by somebody who was answered with the same commit.
    const sent = rig.commit.run(() => {})
      .then(() => rig.queue.send(rig.request({ body: "second" }), {}));
    await rig.settle(beta, "written");
    await sent;
    await rig.settled();
    assert.deepEqual(beta.deliveries.map(({ envelope }) => envelope.body), ["first", "second"]);
  }));
