/** A database that an earlier schema left, brought to this one. */
import assert from "node:assert/strict";
import { schemaVersion } from "../../../lib/sqlite/migrator.ts";
import { openDatabase } from "../../../lib/sqlite/open.ts";
import { exportLines } from "../../../lib/store/export.ts";
import { readHistory, readMessage } from "../../../lib/store/history.ts";
import { openForReading, openStore, SCHEMA_VERSION } from "../../../lib/store/store.ts";
import { countPurge } from "../../../lib/purge_offline.ts";
import { FakeClock } from "../../helpers/clock.ts";
import { QueueRig } from "../../helpers/queue_rig.ts";
import { withTempDir } from "../../helpers/temp.ts";

const FIXTURES = new URL("../../fixtures/databases/", import.meta.url);
const busyTimeoutMs = 50;

/** A copy of the database that schema 1 left, made by the program of that time. */
async function oldDatabase(dir: string): Promise<string> {
  const packed = await Deno.open(new URL("schema-1.sqlite3.gz", FIXTURES));
  const path = `${dir}/tamq.sqlite3`;
  const file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  await packed.readable.pipeThrough(new DecompressionStream("gzip")).pipeTo(file.writable);
  return path;
}

const STATES = {
  injected: "injected",
  acknowledged: "acknowledged",
  failed: "failed",
  replayed: "injected",
  awaiting: "awaiting_ack",
  leased: "pending",
  pending: "pending",
};

Deno.test("[Q-02] a database of schema 1 is upgraded after a backup, and every message stays as it was", () =>
  withTempDir(async (dir) => {
    const path = await oldDatabase(dir);
    const old = openDatabase(path, { readOnly: true, busyTimeoutMs });
    assert.equal(schemaVersion(old), 1);
    const tables = ["messages", "attempts", "endpoints", "receipts", "message_counts"];
    const dump = (db: typeof old, table: string) =>
      db.prepare(`SELECT * FROM ${table}`).all().map((row) => ({ ...row }));
    const before = tables.map((table) => dump(old, table));
    old.close();

    const { db, migration } = await openStore(path, { busyTimeoutMs, clock: new FakeClock() });
    assert.deepEqual([migration.from, migration.to], [1, SCHEMA_VERSION]);
    assert.equal(migration.backup, `${path}.v1.20300101T000000Z.backup`);
    const after = tables.map((table) => dump(db, table));
    const columns = Object.keys(before[0]![0]!);
    const kept = after[0]!.map((row) =>
      Object.fromEntries(columns.map((name) => [name, row[name]]))
    );
    assert.deepEqual([kept, ...after.slice(1)], before);
    const states = db.prepare("SELECT idempotency_key AS k, state AS s FROM messages").all();
    assert.deepEqual(Object.fromEntries(states.map((row) => [row.k, row.s])), STATES);
    assert.equal(db.prepare("PRAGMA integrity_check").get()!.integrity_check, "ok");
    assert.deepEqual(db.prepare("PRAGMA foreign_key_check").all(), []);
    db.close();

    const copy = openDatabase(migration.backup!, { readOnly: true, busyTimeoutMs });
    assert.equal(schemaVersion(copy), 1);
    assert.deepEqual(tables.map((table) => dump(copy, table)), before);
    assert.equal(Deno.statSync(migration.backup!).mode! & 0o777, 0o600);
    copy.close();
  }));

Deno.test("[Q-02, T-10] the upgraded database serves: old keys, old deliveries, purges", () =>
  withTempDir(async (dir) => {
    const rig = new QueueRig(await oldDatabase(dir));
    await rig.boot();
    const repeat = (key: string, body: string) =>
      rig.queue.send(rig.request({ idempotency_key: key, body }), {});
    const known = await repeat("pending", "waits").catch((error) => error);
    assert.equal(known.reason, "idempotency_conflict", "another target");
    const again = await repeat("injected", "first\nsecond line");
    assert.deepEqual([again.deduplicated, again.state], [true, "injected"]);
    const alpha = await rig.attach({ repo: "alpha" });
    assert.equal(alpha.deliveries[0]!.envelope.body, "waits");
    await rig.settle(alpha, "written");
    // Not in the first half second of another test's clock: the wait between pieces is the rig's.
    const purged = rig.queue.purge({ state: "injected", execute: true });
    let over = false;
    void purged.finally(() => over = true);
    while (!over) await rig.advance(10);
    assert.equal((await purged).messages, 3);
    assert.equal((await repeat("injected", "first\nsecond line")).message_id, again.message_id);
    await rig.queue.stop();
    rig.db.close();
  }));

Deno.test("[Q-02, Q-04, Q-05] before its upgrade an old database is readable: history, message, export, count", () =>
  withTempDir(async (dir) => {
    const path = await oldDatabase(dir);
    const db = openForReading(path, { busyTimeoutMs });
    const { messages } = readHistory(db, {});
    assert.deepEqual(
      messages.map((message) => message.idempotency_key),
      Object.keys(STATES).reverse(),
    );
    assert.equal(messages[0]!.replay, null);
    assert.equal(readHistory(db, { repo: "alpha" }).messages.length, 1);
    assert.equal(readMessage(db, messages[0]!.message_id)!.message.body, "waits");
    assert.equal([...exportLines(db, {})].flat().length, 7);
    const plan = countPurge(db, { state: "failed" }, undefined);
    assert.equal(plan.messages, 1);
    assert.ok(plan.historyBytes > 0);
    assert.equal(schemaVersion(db), 1, "nothing was changed");
    db.close();
  }));
