import assert from "node:assert/strict";
import type { TamqError } from "../../../lib/base/errors.ts";
import { DEFAULT_ROUTING } from "../../../lib/model/controls.ts";
import type { Place } from "../../../lib/model/ports.ts";
import { DEFAULT_POLICY } from "../../../lib/model/retry_schedule.ts";
import { readHistory } from "../../../lib/store/history.ts";
import { readReceipts } from "../../../lib/store/receipts.ts";
import { type FakeBroker, type QueueRig, withQueue } from "../../helpers/queue_rig.ts";

const HELD = "held: not allowed";
const ids = (broker: FakeBroker) => broker.deliveries.map((delivery) => delivery.messageId);
const pair = (sender_repo: string, target_repo: string) => ({ sender_repo, target_repo });

/** What a worker said in its window. */
function say(rig: QueueRig, from: FakeBroker, to: string, provenance = "worker") {
  return rig.send({
    ...pair(from.window.repo, to),
    provenance: provenance as "worker",
  }, provenance === "cli" ? from.workerOrigin : from.origin);
}

Deno.test("[B-18] windows of one tmux session may write to each other, whichever was opened first", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    const beta = await rig.attach({ repo: "beta" });
    const there = await say(rig, alpha, "beta");
    const back = await say(rig, beta, "alpha", "cli");
    assert.deepEqual([ids(beta), ids(alpha)], [[there], [back]]);
    assert.deepEqual(rig.queue.controls.summary().held, []);
  }));

Deno.test("[B-18] between sessions a worker's message is admitted, held and seen; allow lets it go, one way", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha", session: "$1" });
    const beta = await rig.attach({ repo: "beta", session: "$2" });
    const request = rig.request({ ...pair("alpha", "beta"), provenance: "worker" });
    const answer = await rig.queue.send(request, alpha.origin);
    assert.equal(answer.held, true);
    assert.equal((await rig.queue.send(request, alpha.origin)).held, true);
    const second = await say(rig, alpha, "beta", "cli");
    const back = await say(rig, beta, "alpha");
    for (const id of [answer.message_id, second, back]) {
      assert.equal(rig.state(id).waiting_reason, HELD);
      assert.equal(rig.state(id).state, "pending");
    }
    assert.deepEqual(ids(beta), []);
    // Also for a reader of the database alone.
    const stored = readHistory(rig.db, {}).messages.map((row) => row.waiting_reason);
    assert.deepEqual(stored, [HELD, HELD, HELD]);
    assert.deepEqual(rig.queue.controls.summary().held, [
      { ...pair("alpha", "beta"), messages: 2 },
      { ...pair("beta", "alpha"), messages: 1 },
    ]);

    assert.deepEqual(await rig.queue.controls.allow(pair("alpha", "beta")), {
      pairs: [pair("alpha", "beta")],
      released: 2,
    });
    await rig.settled();
    assert.deepEqual(ids(beta), [answer.message_id]);
    await rig.settle(beta);
    assert.deepEqual(ids(beta), [answer.message_id, second]);
    assert.equal(rig.state(back).waiting_reason, HELD);
    assert.deepEqual(rig.queue.controls.summary().allowed, [pair("alpha", "beta")]);

    await rig.queue.controls.allow({ ...pair("alpha", "beta"), both: true });
    await rig.settled();
    assert.deepEqual(ids(alpha), [back]);
    await rig.queue.controls.allow({ ...pair("alpha", "beta"), remove: true });
    assert.equal(rig.state(await say(rig, alpha, "beta")).waiting_reason, HELD);
    assert.deepEqual(rig.queue.controls.summary().allowed, [pair("beta", "alpha")]);
    const receipts = readReceipts(rig.db, 10).filter((receipt) => receipt.kind === "operator");
    assert.deepEqual(receipts.map((receipt) => receipt.data.op), ["allow", "allow", "allow"]);
  }));

Deno.test("[B-18] a held message costs no attempt however long it waits, and can be withdrawn", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, readySeconds: 60 };
    const alpha = await rig.attach({ repo: "alpha", session: "$1" });
    const beta = await rig.attach({ repo: "beta", session: "$2", open: false });
    const [id, other] = [await say(rig, alpha, "beta"), await say(rig, alpha, "beta")];
    rig.queue.setGate(beta.attached, false, "busy");
    await rig.advance(24 * 3_600_000);
    assert.equal(rig.state(id).attempt_count, 0);
    await rig.queue.cancel(other);
    assert.equal(rig.state(other).state, "failed");
    await rig.queue.controls.allow(pair("alpha", "beta"));
    await rig.advance(59_000); // its wait for the gate has only begun
    assert.equal(rig.state(id).attempt_count, 0);
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    assert.deepEqual(ids(beta), [id]);
  }));

Deno.test("[B-18] a window that opens beside the sender's lets go what waited for it; one elsewhere does not", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha", session: "$1" });
    const id = await say(rig, alpha, "beta");
    assert.equal(rig.state(id).waiting_reason, HELD);
    await rig.attach({ repo: "gamma", session: "$1" });
    const elsewhere = await rig.attach({ repo: "beta", session: "$1", server: 200 });
    assert.equal(rig.state(id).waiting_reason, HELD, "another server's $1 is another session");
    const beside = await rig.attach({ repo: "beta", session: "$1" });
    await rig.settled();
    assert.deepEqual([ids(elsewhere), ids(beside)], [[], [id]]);
  }));

Deno.test("[B-18] opened together is remembered while one of them is closed, and over a restart", () =>
  withQueue(async (rig) => {
    await rig.attach({ repo: "alpha", broker: 500 });
    const beta = await rig.attach({ repo: "beta", broker: 501 });
    await rig.queue.detach(beta.attached);
    await rig.restart();
    const alpha = await rig.attach({ repo: "alpha", broker: 500 });
    const id = await say(rig, alpha, "beta");
    assert.equal(rig.state(id).waiting_reason, "not_attached");
    const adopted = await rig.send({
      ...pair("beta", "alpha"),
      provenance: "worker",
    }, { adopted: { repo: "beta" } });
    assert.deepEqual(ids(alpha), [adopted]);
    // Another tmux server knows nothing of it.
    const apart = await rig.attach({ repo: "alpha", server: 200, broker: 600 });
    assert.equal(rig.state(await say(rig, apart, "beta")).waiting_reason, HELD);
  }));

Deno.test("[B-18] a person's words, a shell's and the engine's are never held; a replay's are, like the worker's", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha", session: "$1" });
    const beta = await rig.attach({ repo: "beta", session: "$2" });
    const free = [
      await say(rig, alpha, "beta", "operator"),
      await rig.send({ target_repo: "beta" }),
      await rig.send({
        client_id: "coordination-engine",
        sender_repo: "coordination-engine",
        target_repo: "beta",
        provenance: "coordination_engine",
      }),
      await say(rig, beta, "beta"), // to itself
    ];
    for (const id of free) assert.notEqual(rig.state(id).waiting_reason, HELD);
    const { results } = await rig.queue.replay({
      batch: "b",
      endpoint_id: beta.window.endpointId,
      entries: [
        { ...pair("alpha", "beta"), body: "again" },
        { ...pair("local", "beta"), body: "a person's" },
      ],
    }, {});
    const reasons = results.map((result) => {
      assert.ok(result.ok);
      return rig.state(result.message_id!).waiting_reason;
    });
    assert.deepEqual(reasons, [HELD, "queued"]);
  }));

Deno.test("[B-18] configuration: pairs, everything open, and sessions that do not count", () =>
  withQueue(async (rig) => {
    rig.routing = {
      ...DEFAULT_ROUTING,
      together: false,
      allow: [{ sender: "alpha", target: "beta" }],
    };
    await rig.restart();
    const alpha = await rig.attach({ repo: "alpha", broker: 500 });
    const beta = await rig.attach({ repo: "beta", broker: 501 });
    const allowed = await say(rig, alpha, "beta");
    const held = await say(rig, beta, "alpha");
    assert.deepEqual(ids(beta), [allowed]);
    assert.equal(rig.state(held).waiting_reason, HELD);
    assert.deepEqual(rig.queue.controls.summary().allowed, [pair("alpha", "beta")]);
    // A service that starts with another configuration lets go what that one allows.
    rig.routing = { ...DEFAULT_ROUTING, open: true };
    await rig.restart();
    await rig.attach({ repo: "alpha", broker: 500 });
    assert.notEqual(rig.state(held).waiting_reason, HELD);
    assert.equal(rig.queue.controls.summary().open, true);
  }));

Deno.test("[B-18] allow wants registered names", () =>
  withQueue(async (rig) => {
    await assert.rejects(rig.queue.controls.allow(pair("alpha", "bata")), (error: TamqError) => {
      assert.equal(error.reason, "unknown_repository");
      assert.match(error.hint!, /"beta"/);
      return true;
    });
  }));

Deno.test("[B-18] pause holds every delivery, also over a restart; resume delivers in order and restarts the waits", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, readySeconds: 60 };
    let beta = await rig.attach({ broker: 500 });
    await rig.queue.controls.pause();
    const sent = [await rig.send(), await rig.send()];
    assert.equal(rig.state(sent[0]!).waiting_reason, "paused");
    assert.equal(rig.queue.controls.summary().paused_at, "2030-01-01T00:00:00.000Z");
    await rig.restart();
    beta = await rig.attach({ broker: 500 });
    rig.queue.setGate(beta.attached, false, "busy");
    await rig.advance(3_600_000);
    assert.deepEqual(ids(beta), []);
    assert.equal(rig.state(sent[0]!).attempt_count, 0, "paused time is no wait for the window");
    assert.equal(rig.state(sent[0]!).waiting_reason, "paused");
    await rig.advance(30_000); // between two looks at the closed gate: the next comes after resume
    assert.deepEqual(await rig.queue.controls.resume(), { resumed: true });
    await rig.advance(59_000);
    assert.equal(rig.state(sent[0]!).attempt_count, 0);
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    await rig.settle(beta);
    assert.deepEqual(ids(beta), sent);
    assert.deepEqual(await rig.queue.controls.resume(), { resumed: false });
    assert.equal(rig.queue.controls.summary().paused_at, null);
  }));

Deno.test("[B-18] pause during a delivery: that one ends, the next waits", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach();
    const [first, second] = [await rig.send(), await rig.send()];
    await rig.queue.controls.pause();
    assert.deepEqual(await rig.settle(beta), { accepted: true });
    assert.equal(rig.state(first!).state, "injected");
    assert.deepEqual(ids(beta), [first]);
    assert.equal(rig.state(second!).waiting_reason, "paused");
    await rig.queue.controls.resume();
    await rig.settled();
    assert.deepEqual(ids(beta), [first, second]);
  }));

Deno.test("[B-11] a window in mode hold is given what release let go, not what came after", () =>
  withQueue(async (rig) => {
    rig.policy = { ...DEFAULT_POLICY, readySeconds: 60 };
    let beta = await rig.attach({ mode: "hold", broker: 500 });
    const sent = [await rig.send(), await rig.send()];
    rig.queue.setGate(beta.attached, false, "busy");
    await rig.advance(3_600_000);
    rig.queue.setGate(beta.attached, true);
    await rig.settled();
    assert.deepEqual(ids(beta), []);
    assert.equal(rig.state(sent[0]!).attempt_count, 0);
    assert.match(rig.state(sent[0]!).waiting_reason!, /^held: the window/);
    assert.deepEqual(await rig.queue.controls.release({ repo: "beta" }), { released: 2 });
    await rig.settled();
    assert.deepEqual(ids(beta), sent.slice(0, 1));
    const later = await rig.send();
    await rig.settle(beta);
    await rig.restart(); // what was released stays released
    beta = await rig.attach({ mode: "hold", broker: 500 });
    assert.deepEqual(ids(beta), []); // the second was handed out already and is being written
    assert.match(rig.state(later).waiting_reason!, /^held: the window/);
    assert.equal(rig.state(sent[1]!).attempt_count, 1);
    assert.deepEqual(await rig.queue.controls.release({ repo: "beta" }), { released: 1 });
  }));

Deno.test("[B-18, B-13] last words of a window that was never attached go to those that stand beside it, in that very tmux server", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha", session: "$1" });
    const last = (place: Partial<Place>) =>
      rig.send({ ...pair("beta", "alpha"), provenance: "worker" }, {
        adopted: {
          repo: "beta",
          place: { endpointId: "tmux-amq-100", generation: "boot:100", session: "$1", ...place },
        },
      });
    const beside = await last({});
    assert.deepEqual(ids(alpha), [beside]);
    for (
      const place of [{ session: "$2" }, { generation: "boot:7" }, { endpointId: "tmux-amq-200" }]
    ) assert.equal(rig.state(await last(place)).waiting_reason, HELD);
  }));
