import assert from "node:assert/strict";
import type { TamqError } from "../../../lib/base/errors.ts";
import { readReceipts } from "../../../lib/store/receipts.ts";
import { type FakeBroker, type QueueRig, withQueue } from "../../helpers/queue_rig.ts";

const BURST = 5;
const HOUR = 3_600_000;
const guarded = (rig: QueueRig) => void (rig.guard = { burst: BURST, perHour: 60 });

function worker(rig: QueueRig, from: FakeBroker, to: string, provenance = "worker" as const) {
  const fields = { sender_repo: from.window.repo, target_repo: to, provenance };
  return rig.send(fields, from.origin);
}

async function refusal(work: Promise<unknown>): Promise<TamqError> {
  try {
    await work;
  } catch (error) {
    return error as TamqError;
  }
  throw new Error("it was admitted");
}

/** Every window answers each message with one to the next, until a refusal stops the ring. */
async function ring(rig: QueueRig, names: string[]): Promise<{ sent: number; stop: TamqError }> {
  const windows = new Map<string, FakeBroker>();
  for (const repo of names) windows.set(repo, await rig.attach({ repo }));
  let at = 0;
  for (let sent = 0;; sent++) {
    assert.ok(sent <= 200, "nothing stops the ring");
    const from = windows.get(names[at % names.length]!)!;
    const to = windows.get(names[++at % names.length]!)!;
    try {
      await worker(rig, from, to.window.repo);
    } catch (error) {
      return { sent, stop: error as TamqError };
    }
    await rig.settle(to);
    await rig.advance(200); // it thinks
  }
}

for (const names of [["alpha", "beta"], ["alpha", "beta", "gamma"]]) {
  Deno.test(`[B-14] ${names.length} programs that answer each other are stopped within a bounded number of messages`, () =>
    withQueue(async (rig) => {
      const { sent, stop } = await ring(rig, names);
      assert.equal(sent, names.length * BURST);
      assert.equal(stop.code, "RESOURCE_EXHAUSTED");
      assert.equal(stop.reason, "storm_guard");
      assert.match(stop.message, /alpha → beta is blocked/);
      assert.match(stop.hint!, /tamq unblock alpha beta/);
    }, guarded));
}

Deno.test("[B-14] what is refused leaves no message, and is counted where status shows it", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    for (let i = 0; i < BURST; i++) await worker(rig, alpha, "beta");
    for (let i = 0; i < 3; i++) {
      assert.equal((await refusal(worker(rig, alpha, "beta"))).reason, "storm_guard");
    }
    assert.equal(rig.queue.history({}).messages.length, BURST);
    const { ok, blocked, detail } = rig.queue.controls.summary();
    assert.equal(ok, false);
    assert.match(detail, /^1 pair blocked/);
    assert.deepEqual(blocked, [{
      sender_repo: "alpha",
      target_repo: "beta",
      since: "2030-01-01T00:00:00.000Z",
      refused: 3,
    }]);
    const storms = readReceipts(rig.db, 50).filter((receipt) => receipt.kind === "storm");
    assert.deepEqual(storms.map((receipt) => receipt.data.sender_repo), ["alpha"]);
  }, guarded));

Deno.test("[B-14] one pair's block concerns no other pair, no other kind of sender, and no repetition", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    const first = rig.request({
      sender_repo: "alpha",
      target_repo: "beta",
      provenance: "worker",
    });
    const { message_id } = await rig.queue.send(first, alpha.origin);
    for (let i = 1; i < BURST; i++) await worker(rig, alpha, "beta");
    await refusal(worker(rig, alpha, "beta"));
    await worker(rig, alpha, "gamma");
    const again = await rig.queue.send(first, alpha.origin);
    assert.deepEqual([again.message_id, again.deduplicated], [message_id, true]);
    for (let i = 0; i < 3 * BURST; i++) {
      await rig.send({ target_repo: "beta" });
      await rig.send({
        sender_repo: "alpha",
        target_repo: "beta",
        provenance: "operator",
      }, alpha.origin);
      await rig.send({
        client_id: "coordination-engine",
        sender_repo: "coordination-engine",
        target_repo: "beta",
        provenance: "coordination_engine",
      });
    }
  }, guarded));

Deno.test("[B-14] the allowance grows back with time; a block does not go by itself", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    for (let i = 0; i < BURST; i++) await worker(rig, alpha, "beta");
    await rig.advance(HOUR / 60);
    await worker(rig, alpha, "beta"); // one a minute
    await refusal(worker(rig, alpha, "beta"));
    await rig.advance(24 * HOUR);
    assert.equal((await refusal(worker(rig, alpha, "beta"))).reason, "storm_guard");
  }, guarded));

Deno.test("[B-14] a block outlives the service; unblock lifts it, with a whole allowance", () =>
  withQueue(async (rig) => {
    let alpha = await rig.attach({ repo: "alpha", broker: 500 });
    for (let i = 0; i < BURST; i++) await worker(rig, alpha, "beta");
    await refusal(worker(rig, alpha, "beta"));
    await rig.restart();
    alpha = await rig.attach({ repo: "alpha", broker: 500 });
    await refusal(worker(rig, alpha, "beta"));
    const pair = { sender_repo: "alpha", target_repo: "beta" };
    assert.deepEqual(await rig.queue.controls.unblock(pair), { ...pair, refused: 2 });
    for (let i = 0; i < BURST; i++) await worker(rig, alpha, "beta");
    await refusal(worker(rig, alpha, "beta"));
    // Also in the service that has seen the allowance run out.
    await rig.queue.controls.unblock(pair);
    for (let i = 0; i < BURST; i++) await worker(rig, alpha, "beta");
    await refusal(worker(rig, alpha, "beta"));
    const error = await refusal(
      rig.queue.controls.unblock({ sender_repo: "beta", target_repo: "alpha" }),
    );
    assert.equal(error.reason, "not_blocked");
    assert.match(error.hint!, /alpha → beta/);
  }, guarded));
