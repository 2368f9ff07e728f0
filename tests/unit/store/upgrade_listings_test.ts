/** A database of schema 3, brought to this one: what was withdrawn before is counted apart. */
import assert from "node:assert/strict";
import type { openDatabase } from "../../../lib/sqlite/open.ts";
import { readHistory } from "../../../lib/store/history.ts";
import { openForReading, openStore, SCHEMA_VERSION } from "../../../lib/store/store.ts";
import { FakeClock } from "../../helpers/clock.ts";
import { QueueRig } from "../../helpers/queue_rig.ts";
import { withTempDir } from "../../helpers/temp.ts";

const FIXTURE = new URL("../../fixtures/databases/schema-3.sqlite3.gz", import.meta.url);
const busyTimeoutMs = 50;
const TABLES = ["messages", "attempts", "endpoints", "receipts", "message_counts"];

async function oldDatabase(dir: string): Promise<string> {
  const packed = await Deno.open(FIXTURE);
  const path = `${dir}/tamq.sqlite3`;
  const file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  await packed.readable.pipeThrough(new DecompressionStream("gzip")).pipeTo(file.writable);
  return path;
}

Deno.test("[Q-02] [L-06] a database of schema 3 is upgraded after a backup, no row changes, and withdrawn messages are counted", () =>
  withTempDir(async (dir) => {
    const path = await oldDatabase(dir);
    const dump = (db: ReturnType<typeof openDatabase>) =>
      TABLES.map((table) => db.prepare(`SELECT * FROM ${table}`).all().map((row) => ({ ...row })));
    const old = openForReading(path, { busyTimeoutMs });
    const before = dump(old);
    assert.equal(readHistory(old, {}).messages.length, 5);
    old.close();

    const { db, store, migration } = await openStore(path, {
      busyTimeoutMs,
      clock: new FakeClock(),
    });
    assert.deepEqual([migration.from, migration.to], [3, SCHEMA_VERSION]);
    assert.match(migration.backup!, /\.v3\.20300101T000000Z.*\.backup$/);
    assert.deepEqual(dump(db), before);
    const { states, cancelled } = store.messages.counts();
    assert.deepEqual([states.failed, cancelled], [3, 2]);
    assert.equal(db.prepare("PRAGMA integrity_check").get()!.integrity_check, "ok");
    db.close();
  }));

Deno.test("[T-16] [T-27] [L-06] a message counts as withdrawn from its cancellation until it is repeated or acknowledged", () =>
  withTempDir(async (dir) => {
    const rig = new QueueRig(await oldDatabase(dir));
    await rig.boot();
    const counts = () => {
      const { states, cancelled } = rig.queue.summary();
      return [states.failed, cancelled];
    };
    const { messages } = rig.queue.history({});
    const id = (key: string) => messages.find((row) => row.idempotency_key === key)!.message_id;
    assert.deepEqual(counts(), [3, 2]);
    await rig.queue.cancel(id("pending"));
    assert.deepEqual(counts(), [4, 3]);
    await rig.queue.retry(id("cancelled"), {});
    assert.deepEqual(counts(), [3, 2]);
    await rig.queue.ack(id("withdrawn"));
    assert.deepEqual(counts(), [2, 1]);
    // It is found without looking at the others.
    const plan = rig.db.prepare(`EXPLAIN QUERY PLAN SELECT count(*) FROM messages
      WHERE state = 'failed' AND last_failure_reason = 'cancelled'`).all();
    assert.match(String(plan[0]!.detail), /messages_cancelled/);
    await rig.settled();
    rig.db.close();
  }));
