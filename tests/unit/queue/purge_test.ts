import assert from "node:assert/strict";
import type { TamqError } from "../../../lib/base/errors.ts";
import { onProbe } from "../../../lib/base/probe.ts";
import type { RequestOf, ResponseOf } from "../../../lib/protocol/operations.ts";
import { exportLines } from "../../../lib/store/export.ts";
import { purgeChoice } from "../../../lib/model/purge.ts";
import { readReceipts } from "../../../lib/store/receipts.ts";
import { addHistory } from "../../helpers/long_history.ts";
import { type FakeBroker, type QueueRig, withQueue } from "../../helpers/queue_rig.ts";

type Request = RequestOf<"purge">;
const reason = (error: TamqError) => error.reason;

/** Time goes on only when the rig moves it, so the rests between pieces are given here. */
async function whileTimePasses<T>(rig: QueueRig, work: Promise<T>): Promise<T> {
  let over = false;
  const done = () => void (over = true);
  work.then(done, done);
  while (!over) await rig.advance(1);
  return await work;
}

const call = (rig: QueueRig, request: Request) => whileTimePasses(rig, rig.queue.purge(request));

/** To its end, as a client does it. */
async function purge(rig: QueueRig, request: Request): Promise<ResponseOf<"purge">> {
  let answer = await call(rig, { ...request, execute: true });
  while (!answer.done) answer = await call(rig, { execute: true, receipt_id: answer.receipt_id! });
  return answer;
}

const left = (rig: QueueRig) =>
  rig.queue.history({ limit: 10_000 }).messages.map((message) => message.body).reverse();

/** One of each state, a day apart, oldest first; beta's window has written what it was given. */
async function fill(rig: QueueRig): Promise<void> {
  const day = 86_400_000;
  const beta = await rig.attach({ repo: "beta" });
  const one = async (body: string, fields: Partial<RequestOf<"send">> = {}, taker?: FakeBroker) => {
    const id = await rig.send({ idempotency_key: body, body, ...fields });
    if (taker !== undefined) await rig.settle(taker, "written");
    await rig.advance(day);
    return id;
  };
  await one("injected 0", {}, beta);
  await rig.queue.cancel(await one("failed 1", { target_repo: "gamma" }));
  await one("pending 2", { target_repo: "alpha" });
  await rig.queue.ack(await one("acknowledged 3", { target_repo: "gamma" }));
  rig.queue.setGate(beta.attached, false);
  await one("waiting 4");
  await rig.queue.cancel(await one("failed 5", { sender_repo: "local", target_repo: "alpha" }));
  rig.policy = { ...rig.policy, ackMode: "acknowledged" };
  const gamma = await rig.attach({ repo: "gamma" });
  const awaited = await rig.send({ body: "awaiting 6", target_repo: "gamma" });
  await rig.settle(gamma, "written");
  assert.equal(rig.state(awaited).state, "awaiting_ack");
}

Deno.test("[Q-08] each filter chooses, the union is purged, and live messages never", () =>
  withQueue(async (rig) => {
    await fill(rig);
    const all = left(rig);
    assert.equal(all.length, 7);
    const at = (day: number) => `2030-01-0${1 + day}T00:00:00Z`;
    const cases: [Request, string[]][] = [
      [{ before: at(3) }, ["injected 0", "failed 1"]],
      [{ before: "2040-01-01T00:00:00Z" }, [
        "injected 0",
        "failed 1",
        "acknowledged 3",
        "failed 5",
      ]],
      [{ repo: "alpha" }, ["failed 5"]],
      [{ repo: "gamma" }, ["failed 1", "acknowledged 3"]],
      [{ state: "failed" }, ["failed 1", "failed 5"]],
      [{ before: at(1), state: "failed" }, ["injected 0", "failed 1", "failed 5"]],
      [{ before: at(1), repo: "alpha" }, ["injected 0", "failed 5"]],
      [{ max_bytes: 0 }, ["injected 0", "failed 1", "acknowledged 3", "failed 5"]],
      [{ max_bytes: 1_000_000_000 }, []],
      [{ before: at(0) }, []],
    ];
    for (const [request, gone] of cases) {
      const plan = await call(rig, request);
      const chosen = { ...request, ...(plan.through === null ? {} : { through: plan.through }) };
      const bodies = [...exportLines(rig.db, {}, purgeChoice(chosen))].flat()
        .map((line) => JSON.parse(line).body);
      assert.deepEqual(bodies, gone, JSON.stringify(request));
      assert.equal(plan.messages, gone.length, JSON.stringify(request));
      assert.deepEqual(left(rig), all, "counting purges nothing");
    }
    const plan = await call(rig, { state: "failed" });
    assert.deepEqual([plan.oldest_at, plan.newest_at], [
      "2030-01-02T00:00:00.000Z",
      "2030-01-06T00:00:00.000Z",
    ]);
    assert.deepEqual([plan.done, plan.receipt_id, plan.through], [true, null, null]);

    const done = await purge(rig, { before: at(1), repo: "alpha" });
    assert.equal(done.messages, 2);
    assert.deepEqual(left(rig), all.filter((body) => body !== "injected 0" && body !== "failed 5"));
    const rest = await purge(rig, { max_bytes: 0 });
    assert.equal(rest.messages, 2);
    assert.deepEqual(left(rig), ["pending 2", "waiting 4", "awaiting 6"]);
    const orphans =
      "SELECT count(*) AS n FROM attempts WHERE message NOT IN (SELECT seq FROM messages)";
    assert.equal(rig.db.prepare(orphans).get()!.n, 0);
    assert.deepEqual(rig.queue.summary().states, {
      pending: 2,
      awaiting_ack: 1,
      injected: 0,
      acknowledged: 0,
      failed: 0,
    });
    assert.deepEqual(rig.db.prepare("PRAGMA foreign_key_check").all(), []);
  }));

Deno.test("[Q-08] a bound on the size takes the oldest, and no more than it needs", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ repo: "beta" });
    for (let i = 0; i < 400; i++) {
      await rig.send({ body: `${i}`.padStart(8000, "x"), idempotency_key: `k${i}` });
      await rig.settle(beta, "written");
    }
    const { history_bytes: before } = await call(rig, { max_bytes: 0 });
    assert.ok(before > 400 * 8192 && before < 400 * 3.5 * 4096, `${before}`);
    const bound = Math.round(before / 2);
    const plan = await call(rig, { max_bytes: bound });
    assert.ok(plan.messages >= 190 && plan.messages <= 215, `${plan.messages}`);
    const done = await purge(rig, { max_bytes: bound, through: plan.through! });
    assert.equal(done.messages, plan.messages, "what was counted is what goes");
    assert.ok(done.history_bytes <= bound * 1.03, `${done.history_bytes} of ${bound}`);
    assert.ok(done.history_bytes >= bound * 0.9, `${done.history_bytes} of ${bound}`);
    const { body } = rig.db.prepare("SELECT body FROM messages ORDER BY seq LIMIT 1").get()!;
    assert.equal(String(body).replace(/x/g, ""), String(plan.messages), "the oldest went");
    // The file itself is shorter.
    const size = Deno.statSync(rig.path).size;
    assert.ok(size < before * 0.6, `${size} of ${before}`);
    assert.equal(rig.db.prepare("PRAGMA freelist_count").get()!.freelist_count, 0);
    assert.equal(rig.db.prepare("PRAGMA integrity_check").get()!.integrity_check, "ok");
  }));

Deno.test("[T-10, Q-08] keys survive a purge: a repetition has the same id, another request conflicts", () =>
  withQueue(async (rig) => {
    const first = await rig.attach({ repo: "beta", server: 100 });
    const bound = rig.request({ idempotency_key: "bound", endpoint_id: "tmux-amq-100" });
    const free = rig.request({ idempotency_key: "free" });
    const ids: string[] = [];
    for (const request of [bound, free]) {
      ids.push((await rig.queue.send(request, {})).message_id);
      await rig.settled();
      await rig.settle(first, "written");
    }
    assert.equal((await purge(rig, { state: "injected" })).messages, 2);
    await rig.restart();
    await rig.attach({ repo: "beta", server: 100 });
    await rig.attach({ repo: "beta", server: 101 });
    const answer = (fields: Partial<RequestOf<"send">>) =>
      rig.queue.send(rig.request(fields), {}).then(
        ({ message_id, deduplicated, state }) => [ids.indexOf(message_id), deduplicated, state],
        reason,
      );
    const same = [0, true, "injected"];
    assert.deepEqual(await answer({ ...bound }), same);
    assert.deepEqual(await answer({ ...bound, endpoint_id: undefined }), same, "no endpoint");
    assert.deepEqual(await answer({ ...free }), [1, true, "injected"]);
    assert.equal(await answer({ ...bound, body: "other" }), "idempotency_conflict");
    assert.equal(await answer({ ...bound, target_repo: "gamma" }), "idempotency_conflict");
    assert.equal(await answer({ ...bound, endpoint_id: "tmux-amq-101" }), "idempotency_conflict");
    assert.equal(await answer({ ...free, endpoint_id: "tmux-amq-101" }), "idempotency_conflict");
    // Another client's key of the same name is another key.
    assert.deepEqual((await answer({ ...bound, client_id: "other" }))[1], false);
    assert.deepEqual(left(rig), ["please rebase"], "only that one is new");
  }));

Deno.test("[T-10, T-18] a purged message whose endpoint is gone answers to its replacement as well", () =>
  withQueue(async (rig) => {
    const first = await rig.attach({ repo: "beta", server: 100 });
    const request = rig.request({ idempotency_key: "k", endpoint_id: "tmux-amq-100" });
    const { message_id } = await rig.queue.send(request, {});
    await rig.settled();
    await rig.settle(first, "written");
    await purge(rig, { state: "injected" });
    await rig.queue.detach(first.attached);
    rig.processes.end(100);
    await rig.advance(10_000);
    const second = await rig.attach({ repo: "beta", server: 101 });
    const again = await rig.queue.send({ ...request, endpoint_id: "tmux-amq-101" }, {});
    assert.deepEqual([again.message_id, again.deduplicated], [message_id, true]);
    await rig.settled();
    assert.deepEqual(second.deliveries, [], "and nothing is delivered again");
  }));

Deno.test("[Q-08] the receipt has filters and counts, no bodies, and is true after every commit", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ repo: "beta" });
    for (let i = 0; i < 700; i++) {
      await rig.send({ body: "a secret text", idempotency_key: `secret-key-${i}` });
      await rig.settle(beta, "written");
    }
    const receipts = () => readReceipts(rig.db, 100).filter(({ kind }) => kind === "purge");
    let commits = 0;
    const stop = onProbe("commit.before", () => {
      const [receipt] = receipts();
      const gone = 700 - Number(rig.db.prepare("SELECT count(*) AS n FROM messages").get()!.n);
      assert.equal(receipt!.data.messages, gone, "receipt and removal are one transaction");
      commits++;
    });
    try {
      await purge(rig, { state: "injected", before: "2030-01-01T00:00:00Z" });
    } finally {
      stop();
    }
    assert.ok(commits >= 4, "at most 250 a transaction");
    const [receipt, ...more] = receipts();
    assert.deepEqual(more, []);
    const { bytes, newest_at, oldest_at, history_bytes: _, ...data } = receipt!.data;
    assert.deepEqual(data, {
      before: Date.UTC(2030, 0, 1),
      repo: null,
      state: "injected",
      through: null,
      max_bytes: null,
      settled_before: null,
      messages: 700,
      position: null,
      finished: true,
    });
    assert.ok(Number(bytes) > 700 * 13 && oldest_at !== null && newest_at !== null);
    assert.doesNotMatch(JSON.stringify(receipts()), /secret/);
  }));

Deno.test("[Q-08] a purge that was cut off goes on where it was, also with the next service", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ repo: "beta" });
    for (let i = 0; i < 600; i++) {
      await rig.send({ body: `${i}` });
      await rig.settle(beta, "written");
    }
    // Ended at the second transaction that removes something.
    let pieces = 0;
    const stop = onProbe("commit.after", () => {
      if (left(rig).length < 600 && ++pieces === 2) rig.queue.stop();
    });
    const cut = call(rig, { state: "injected", execute: true });
    await assert.rejects(cut, (error: TamqError) => reason(error) === "shutting_down");
    stop();
    await rig.restart();
    const some = left(rig).length;
    assert.equal(some, 100, "two pieces of 250 are gone");
    const [receipt] = readReceipts(rig.db, 100).filter(({ kind }) => kind === "purge");
    assert.equal(receipt!.data.messages, 500);
    const rest = await purge(rig, { receipt_id: receipt!.id });
    assert.deepEqual([rest.messages, rest.done, left(rig).length], [600, true, 0]);
    // What is finished stays so.
    assert.deepEqual((await purge(rig, { receipt_id: receipt!.id })).messages, 600);
  }));

Deno.test("[Q-08] a purge without a filter, or with one that is none, purges nothing", () =>
  withQueue(async (rig) => {
    await fill(rig);
    const refused = (request: Request) =>
      call(rig, { ...request, execute: true }).then(() => "purged", reason);
    assert.equal(await refused({}), "no_filter");
    assert.equal(await refused({ settled_before: "2040-01-01T00:00:00Z" }), "no_filter");
    assert.equal(await refused({ before: "yesterday" }), "invalid_time");
    assert.equal(await refused({ through: "x" }), "invalid_cursor");
    assert.equal(await refused({ receipt_id: 99 }), "unknown_receipt");
    const start = readReceipts(rig.db, 100).find(({ kind }) => kind === "start")!;
    assert.equal(await refused({ receipt_id: start.id }), "unknown_receipt", "another's receipt");
    assert.equal(left(rig).length, 7);
    // What has changed since is spared.
    assert.equal(
      (await purge(rig, { max_bytes: 0, settled_before: "2030-01-02T12:00:00Z" })).messages,
      1,
    );
  }));

Deno.test("[Q-08] deliveries go on while a purge runs: sends are admitted, leased and settled between its pieces", () =>
  withQueue(async (rig) => {
    const beta = await rig.attach({ repo: "beta" });
    for (let i = 0; i < 2000; i++) {
      await rig.send({ body: `old ${i}` });
      await rig.settle(beta, "written");
    }
    const events: string[] = [];
    const purging = rig.queue.purge({ state: "injected", execute: true });
    let over = false;
    void purging.finally(() => over = true);
    let sent = 0;
    // One piece, one message, and so on: neither waits for the other to be done.
    while (!over) {
      await rig.advance(1);
      events.push(`${left(rig).length - sent} old`);
      if (sent < 5) {
        const handed = beta.deliveries.length;
        await rig.send({ body: `new ${sent++}` });
        assert.equal(beta.deliveries.length, handed + 1, "delivered at once");
        assert.equal((await rig.settle(beta, "written")).accepted, true);
      }
    }
    assert.ok(new Set(events).size >= 5, `the purge went on in pieces: ${events}`);
    assert.ok((await purging).messages >= 2000);
  }));

Deno.test("[Q-08] [Q-03] many counts and purges at once do one piece a turn of the loop, and each ends", () =>
  withQueue(async (rig) => {
    addHistory(rig.db, 9000, 10);
    const store = rig.store.purge;
    let pieces = 0;
    const survey = store.survey.bind(store);
    store.survey = (...args) => (pieces++, survey(...args));
    const remove = store.remove.bind(store);
    store.remove = (...args) => (pieces++, remove(...args));
    const before = "2020-01-01T00:00:30Z";
    const work = Promise.all([
      ...Array.from({ length: 8 }, () => rig.queue.purge({ before })),
      ...Array.from({ length: 3 }, () => rig.queue.purge({ before, execute: true })),
    ]);
    let over = false;
    const done = () => void (over = true);
    work.then(done, done);
    let most = 0;
    let all = 0;
    while (!over) {
      pieces = 0;
      await rig.advance(0);
      most = Math.max(most, pieces);
      all += pieces;
    }
    const answers = await work;
    assert.equal(most, 1);
    assert.ok(all > 8 * 3, `${all}`);
    for (const { messages } of answers.slice(0, 8)) assert.ok(messages <= 29, `${messages}`);
    const purged = answers.slice(8).reduce((sum, { messages }) => sum + messages, 0);
    assert.equal(purged, 29, "each message went once");
    assert.equal(rig.queue.summary().states.injected, 9000 - 29);
  }));
