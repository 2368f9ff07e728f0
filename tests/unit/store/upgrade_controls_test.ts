/** A database of schema 2, brought to this one: nothing that was admitted before is held. */
import assert from "node:assert/strict";
import { schemaVersion } from "../../../lib/sqlite/migrator.ts";
import { openDatabase } from "../../../lib/sqlite/open.ts";
import { readHistory } from "../../../lib/store/history.ts";
import { openForReading, openStore, SCHEMA_VERSION } from "../../../lib/store/store.ts";
import { FakeClock } from "../../helpers/clock.ts";
import { QueueRig } from "../../helpers/queue_rig.ts";
import { withTempDir } from "../../helpers/temp.ts";

const FIXTURE = new URL("../../fixtures/databases/schema-2.sqlite3.gz", import.meta.url);
const busyTimeoutMs = 50;
const KEYS = ["kept", "old", "spoken", "pending"];

async function oldDatabase(dir: string): Promise<string> {
  const packed = await Deno.open(FIXTURE);
  const path = `${dir}/tamq.sqlite3`;
  const file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  await packed.readable.pipeThrough(new DecompressionStream("gzip")).pipeTo(file.writable);
  return path;
}

Deno.test("[Q-02, B-18] a database of schema 2 is upgraded after a backup: messages stay as they were, none is held", () =>
  withTempDir(async (dir) => {
    const path = await oldDatabase(dir);
    const tables = ["messages", "attempts", "endpoints", "receipts", "purged_keys"];
    const dump = (db: ReturnType<typeof openDatabase>, table: string) =>
      db.prepare(`SELECT * FROM ${table}`).all().map((row) => ({ ...row }));
    const old = openDatabase(path, { readOnly: true, busyTimeoutMs });
    const before = tables.map((table) => dump(old, table));
    old.close();

    const { db, migration } = await openStore(path, { busyTimeoutMs, clock: new FakeClock() });
    assert.deepEqual([migration.from, migration.to], [2, SCHEMA_VERSION]);
    assert.match(migration.backup!, /\.v2\.20300101T000000Z.*\.backup$/);
    const added = before[0]!.map((row) => ({ ...row, held: 0 }));
    assert.deepEqual(tables.map((table) => dump(db, table)), [added, ...before.slice(1)]);
    assert.equal(db.prepare("PRAGMA integrity_check").get()!.integrity_check, "ok");
    assert.deepEqual(db.prepare("PRAGMA foreign_key_check").all(), []);
    db.close();
  }));

Deno.test("[Q-02, Q-04] before its upgrade a database of schema 2 is readable", () =>
  withTempDir(async (dir) => {
    const db = openForReading(await oldDatabase(dir), { busyTimeoutMs });
    const { messages } = readHistory(db, {});
    assert.deepEqual(messages.map((message) => message.idempotency_key), [...KEYS].reverse());
    assert.deepEqual(messages[2]!.replay, { batch: "batch", original_message_id: "old" });
    assert.equal(schemaVersion(db), 2);
    db.close();
  }));

Deno.test("[Q-02, B-18] the upgraded database serves: what was admitted without a policy is delivered", () =>
  withTempDir(async (dir) => {
    const rig = new QueueRig(await oldDatabase(dir));
    await rig.boot();
    const alpha = await rig.attach({ repo: "alpha", session: "$8" });
    assert.equal(alpha.deliveries[0]!.envelope.body, "waits");
    const beta = await rig.attach({ repo: "beta", session: "$9" });
    await rig.advance(10_000);
    assert.deepEqual(beta.deliveries.map(({ envelope }) => envelope.body), ["spoken"]);
    const again = await rig.queue.send(
      rig.request({ idempotency_key: "gone", body: "purged since" }),
      {},
    );
    assert.equal(again.deduplicated, true);
    await rig.queue.stop();
    rig.db.close();
  }));
