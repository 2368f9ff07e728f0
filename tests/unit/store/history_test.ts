import assert from "node:assert/strict";
import type { TamqError } from "../../../lib/base/errors.ts";
import { readHistory, readMessage } from "../../../lib/store/history.ts";
import { readReceipts } from "../../../lib/store/receipts.ts";
import { openForReading } from "../../../lib/store/store.ts";
import { addHistory } from "../../helpers/long_history.ts";
import { type QueueRig, withQueue } from "../../helpers/queue_rig.ts";

async function fill(rig: QueueRig): Promise<string[]> {
  const ids: string[] = [];
  const broker = await rig.attach({ repo: "alpha", server: 7, open: false });
  for (let i = 0; i < 12; i++) {
    const worker = i % 2 === 0;
    ids.push(
      await rig.send({
        correlation_id: i % 3 === 0 ? "trigger" : undefined,
        target_repo: i % 4 === 0 ? "gamma" : "beta",
        sender_repo: worker ? "alpha" : "local",
        provenance: worker ? "worker" : "cli",
        body: `message ${i}`,
      }, worker ? broker.origin : {}),
    );
    await rig.advance(1000);
  }
  await rig.queue.cancel(ids[3]!);
  await rig.queue.ack(ids[5]!);
  return ids;
}

const seen = (page: { messages: { message_id: string }[] }, ids: string[]) =>
  page.messages.map((message) => ids.indexOf(message.message_id));

Deno.test("[Q-04] history is newest first and filtered by repository, state, correlation and time", () =>
  withQueue(async (rig) => {
    const ids = await fill(rig);
    const history = (filters: Parameters<typeof rig.queue.history>[0]) =>
      seen(rig.queue.history(filters), ids);
    assert.deepEqual(history({}), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert.deepEqual(history({ repo: "gamma" }), [8, 4, 0]);
    assert.deepEqual(history({ repo: "alpha" }), [10, 8, 6, 4, 2, 0]);
    assert.deepEqual(history({ repo: "local", limit: 2 }), [11, 9]);
    assert.deepEqual(history({ state: "failed" }), [3]);
    assert.deepEqual(history({ state: "acknowledged" }), [5]);
    assert.deepEqual(history({ state: "injected" }), []);
    assert.deepEqual(history({ correlation_id: "trigger" }), [9, 6, 3, 0]);
    const at = (second: number) => `2030-01-01T00:00:${String(second).padStart(2, "0")}Z`;
    assert.deepEqual(history({ since: at(9), until: at(11) }), [10, 9]);
    assert.deepEqual(history({ since: "2030-01-01T01:00:10+01:00" }), [11, 10]);
    assert.deepEqual(history({ repo: "alpha", correlation_id: "trigger" }), [6, 0]);
    assert.deepEqual(history({ endpoint_id: "tmux-amq-7" }), []);
  }));

Deno.test("[Q-04] [Q-03] a search through a long history holds the service up for one page at a time, and finds all", () =>
  withQueue(async (rig) => {
    addHistory(rig.db, 25_000, 10);
    const ids = await fill(rig);
    const search = (filters: Parameters<typeof rig.queue.history>[0]) => {
      const found: string[] = [];
      const sizes: number[] = [];
      let cursor: string | undefined;
      for (;;) {
        const page = rig.queue.history({ ...filters, cursor });
        found.push(...page.messages.map((message) => message.message_id));
        sizes.push(page.messages.length);
        if (page.next_cursor === null) return { found, sizes };
        cursor = page.next_cursor;
      }
    };
    // As a reader of the file does it, in one go.
    const whole = (filters: Parameters<typeof rig.queue.history>[0]) =>
      readHistory(rig.db, { ...filters, limit: 30_000 }).messages.map((one) => one.message_id);
    const old = search({ until: "2020-01-01T00:00:05Z" });
    assert.deepEqual(old.sizes, [0, 0, 4]);
    assert.deepEqual(old.found, whole({ until: "2020-01-01T00:00:05Z" }));
    assert.deepEqual(search({ since: "2100-01-01T00:00:00Z" }).sizes, [0, 0, 0]);
    const elsewhere = search({ endpoint_id: "tmux-amq-9", repo: "beta" });
    assert.deepEqual(elsewhere.sizes, [0, 0, 0]);
    const recent = search({ since: "2029-01-01T00:00:00Z", limit: 5 });
    assert.deepEqual(recent.found, [...ids].reverse());
    const middle = { since: "2020-01-01T02:46:30Z", until: "2020-01-01T02:46:50Z" };
    assert.deepEqual(search(middle).found, whole(middle));
    assert.equal(search(middle).found.length, 20);
    const { found } = search({ since: "2020-01-01T00:00:00Z", limit: 10_000 });
    assert.deepEqual([found.length, new Set(found).size], [25_012, 25_012]);
    // What waits, failed or is done with is found at once.
    for (const state of ["pending", "awaiting_ack", "failed", "acknowledged"]) {
      const plan = rig.db.prepare(`EXPLAIN QUERY PLAN SELECT body FROM messages m
        WHERE m.state = '${state}' ORDER BY m.seq DESC LIMIT 51`).all();
      assert.match(String(plan[0]!.detail), /INDEX messages_(pending|awaiting|failed|acknow)/);
      assert.equal(plan.length, 1, "and needs no sorting");
    }
  }));

Deno.test("[Q-04] pages join without gap or repetition, also while messages arrive", () =>
  withQueue(async (rig) => {
    const ids = await fill(rig);
    const got: number[] = [];
    let cursor: string | undefined;
    do {
      const page = rig.queue.history({ repo: "beta", limit: 2, cursor });
      got.push(...seen(page, ids));
      cursor = page.next_cursor ?? undefined;
      await rig.send();
    } while (cursor !== undefined);
    assert.deepEqual(got, [11, 10, 9, 7, 6, 5, 3, 2, 1]);
  }));

Deno.test("[Q-04] a page is bounded in bytes, and the next one goes on", () =>
  withQueue(async (rig) => {
    const ids: string[] = [];
    for (let i = 0; i < 130; i++) ids.push(await rig.send({ body: "x".repeat(8192) }));
    const first = rig.queue.history({ limit: 10000 });
    assert.ok(first.messages.length < 70 && first.messages.length > 60);
    assert.ok(first.next_cursor !== null);
    const got = seen(first, ids);
    for (let cursor: string | null = first.next_cursor; cursor !== null;) {
      const page = rig.queue.history({ limit: 10000, cursor });
      got.push(...seen(page, ids));
      cursor = page.next_cursor;
    }
    assert.deepEqual(got, ids.map((_, index) => 129 - index));
  }));

Deno.test("times and cursors that are none are refused", () =>
  withQueue((rig) => {
    const reason = (filters: Parameters<typeof rig.queue.history>[0]) => {
      try {
        rig.queue.history(filters);
        return "ok";
      } catch (error) {
        return (error as TamqError).reason;
      }
    };
    for (
      const since of ["yesterday", "2030-01-01", "2030-13-01T00:00:00Z", "2030-02-30T00:00:00Z", ""]
    ) {
      assert.equal(reason({ since }), "invalid_time", since);
    }
    for (const cursor of ["x", "-1", "1 OR 1", "9".repeat(16)]) {
      assert.equal(reason({ cursor }), "invalid_cursor", cursor);
    }
    return Promise.resolve();
  }));

Deno.test("[Q-04] history and messages are read with the service stopped and beside a running one", () =>
  withQueue(async (rig) => {
    const ids = await fill(rig);
    const read = () => {
      const db = openForReading(rig.path, { busyTimeoutMs: 50 });
      try {
        assert.deepEqual(seen(readHistory(db, { repo: "gamma", limit: 2 }), ids), [8, 4]);
        const one = readMessage(db, ids[3]!);
        assert.equal(one?.message.last_failure_reason, "cancelled");
        assert.equal(one?.message.body, "message 3");
        assert.equal(readMessage(db, "nobody"), undefined);
      } finally {
        db.close();
      }
    };
    read();
    await rig.queue.stop();
    rig.db.close();
    read();
    await rig.boot();
  }));

Deno.test("[T-17] a message comes back after a restart with all its fields and attempts", () =>
  withQueue(async (rig) => {
    const metadata = { lease_id: "l", nested: { deep: [1, "ü", null] } };
    const id = await rig.send({ correlation_id: "c-1", metadata, body: "line\n\n\ttwo ü" });
    const broker = await rig.attach({ server: 9 });
    await rig.settle(broker, "failed", { reason: "dialog" });
    const before = rig.queue.message(id);
    assert.equal(before.message.waiting_reason, "backoff");
    await rig.restart();
    assert.deepEqual(rig.queue.message(id), before);
    assert.deepEqual(before.message.metadata, metadata);
    assert.equal(before.message.body, "line\n\n\ttwo ü");
    assert.deepEqual(before.attempts, [{
      attempt: 1,
      endpoint_id: "tmux-amq-9",
      started_at: "2030-01-01T00:00:00.000Z",
      ended_at: "2030-01-01T00:00:00.000Z",
      outcome: "failed",
      reason: "dialog",
    }]);
  }));

Deno.test("[E-03] what an attach negotiated stands in endpoint and receipt, without bodies", () =>
  withQueue(async (rig) => {
    const broker = await rig.attach({ repo: "alpha", server: 7 });
    await rig.send({ target_repo: "alpha", body: "top secret body" });
    const endpoint = rig.store.endpoints.get(broker.window.endpointRef)!;
    assert.deepEqual(endpoint.capabilities, ["bounded_delivery_ack_v1"]);
    assert.equal(endpoint.protocol, "0.1");
    assert.equal(endpoint.session, "work");
    assert.equal(endpoint.disconnectedAt, null);
    await rig.queue.detach(broker.attached);
    await rig.queue.stop();
    const receipts = readReceipts(rig.db, 10);
    assert.deepEqual(receipts.map((receipt) => receipt.kind), [
      "shutdown",
      "detach",
      "attach",
      "start",
    ]);
    const attach = receipts[2]!.data;
    assert.equal(attach.endpoint_id, "tmux-amq-7");
    assert.equal(attach.repo, "alpha");
    assert.deepEqual(attach.command, ["agent"]);
    assert.equal(attach.protocol, "0.1");
    const text = JSON.stringify(receipts);
    assert.doesNotMatch(text, /secret/);
    assert.ok(!text.includes(broker.deliveries[0]!.leaseToken));
  }));
