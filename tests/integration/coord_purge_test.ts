/** What engine and hub forget when they are told to, and what they never do. */
import assert from "node:assert/strict";
import { purgeEngine } from "../../lib/coord/store/purge.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { startHub } from "../../lib/hub/server.ts";
import { purgeHub } from "../../lib/hub/store/purge.ts";
import { silentLog } from "../../lib/base/log.ts";
import { openDatabase } from "../../lib/sqlite/open.ts";
import { sizeAdvisory, usedBytes } from "../../lib/sqlite/size.ts";
import { FakeClock } from "../helpers/clock.ts";
import { withCoord } from "../helpers/coord_rig.ts";
import { hubSettingsIn, noWindow } from "../helpers/hub.ts";
import { withTempDir } from "../helpers/temp.ts";
import { World } from "../helpers/world.ts";

const DAY = 86_400_000;

Deno.test("[K-22][Q-07] the engine's purge takes old texts and published receipts; nobody is woken twice for it, what is held or not published stays", async () => {
  await withCoord(async (rig) => {
    const { store, leases, clock } = rig;
    rig.transport.open("alpha");
    await rig.task("old");
    await rig.step();
    const [lease] = store.leases.held();
    const handle = { leaseId: lease!.leaseId, token: lease!.fencingToken };
    await store.commit(() => {
      leases.worker(handle, { type: "acknowledge" });
      for (const summary of ["half", "all"]) {
        leases.checkpoint(handle, { summary, files_changed: [], blocked_reason: null });
      }
      leases.worker(handle, { type: "release", result: "completed" });
    });
    await store.commit(() => {
      for (const { seq } of store.journal.unpublishedReceipts(100)) {
        store.journal.receiptPublished(seq, clock.now());
      }
      for (const { seq } of store.journal.unpublishedCheckpoints(100)) {
        store.journal.checkpointPublished(seq, clock.now());
      }
    });
    clock.advance(400 * DAY);
    await rig.task("new", { repo: "beta" });
    rig.transport.open("beta");
    await rig.step();
    const waiting = store.journal.unpublished();
    const path = `${rig.dir}/coord.sqlite3`;
    const purge = (execute: boolean) =>
      purgeEngine(path, { before: clock.now() - 365 * DAY, execute, busyTimeoutMs: 1000 });
    const counts = purge(false);
    assert.deepEqual({ ...counts, receipts: counts.receipts! > 4 }, {
      prompts: 1,
      checkpoints: 1,
      receipts: true,
    });
    assert.deepEqual(purge(true), counts);
    assert.deepEqual(purge(false), { prompts: 0, checkpoints: 0, receipts: 0 });
    assert.equal(store.journal.unpublished(), waiting);
    assert.ok(store.leases.held()[0]!.prompt.includes("new"), "the held one's text stays");
    assert.match(store.journal.latestCheckpoint("task", "old", "alpha")!.record, /"all"/);
    // The hub tells of everything again.
    rig.observer.doubt();
    await rig.step();
    assert.equal(rig.transport.all.length, 2);
    assert.equal(store.leases.list(false, 9).length, 2);
  });
});

Deno.test("[K-22][Q-07] the hub's purge takes receipts, old checkpoints and messages that are dealt with; tasks stay, and the feed goes on", async () => {
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    const clock = new FakeClock();
    const start = () => startHub({ hub, version: "0", log: silentLog, windowOf: noWindow, clock });
    const at = () => new Date(clock.now()).toISOString();
    let running = await start();
    using client = new StateHubClient({ address: { unix: hub.socket } });
    const message = async () => {
      const body = { target_repo: "a", subject: "s", body: "b", requests_action: false };
      return (await client.call("createMessage", { body })).value.message_id;
    };
    const checkpoint = (summary: string) =>
      client.call("createCheckpoint", {
        body: {
          lease_id: "l",
          task_id: "t",
          repo: "a",
          summary,
          files_changed: [],
          blocked_reason: null,
          recorded_at: at(),
        },
      });
    await client.call("createTask", { body: { task_id: "t", title: "T", repo: "a" } });
    const done = await message();
    await client.call("ackMessage", { params: { message_id: done }, body: {} });
    const open = await message();
    await checkpoint("half");
    await checkpoint("all");
    const receipt = (id: string) =>
      client.call("publishReceipt", {
        body: {
          receipt_id: id,
          idempotency_key: id,
          kind: "lease",
          status: "offered",
          recorded_at: at(),
        },
      });
    await receipt("r1");
    clock.advance(400 * DAY);
    await receipt("r2");
    const { next_cursor } = await client.changes(undefined);
    await running.stop();

    const before = clock.now() - 365 * DAY;
    const options = { before, busyTimeoutMs: 1000 };
    const counts = purgeHub(hub.database, { ...options, execute: false });
    assert.deepEqual({ ...counts, keys: counts.keys! > 3 }, {
      receipts: 1,
      checkpoints: 1,
      messages: 1,
      keys: true,
    });
    assert.deepEqual(purgeHub(hub.database, { ...options, execute: true }), counts);
    running = await start();
    try {
      const ids = (await client.changes(undefined)).changes.map(({ source_id }) => source_id);
      assert.ok(ids.includes("t") && ids.includes(open) && ids.includes("r2"));
      assert.ok(!ids.includes(done) && !ids.includes("r1"));
      await client.call("createTask", { body: { task_id: "u", title: "U", repo: "a" } });
      const later = (await client.changes(next_cursor)).changes.map(({ source_id }) => source_id);
      assert.ok(later.includes("u"), "the cursor of before still holds");
      const { items } = (await client.call("listCheckpoints", { query: {} })).value;
      assert.deepEqual(items.map(({ summary }) => summary), ["all"]);
    } finally {
      await running.stop();
    }
  });
});

Deno.test("[K-22][T-27] tamq hub purge and coord purge: counted first, never beside a running process", async () => {
  await using world = await World.create();
  await world.mustTamq(["hub", "serve", "--detach"]);
  await world.mustTamq(["coord", "serve", "--detach"]);
  try {
    await world.mustTamq(["hub", "message", "add", "x", "--to", "alpha"]);
    const [row] = (await world.mustTamq(["hub", "message", "list", "--json"])).split("\n");
    await world.mustTamq(["hub", "message", "ack", JSON.parse(row!).message_id]);
    const dry = await world.mustTamq(["hub", "purge", "--before", "0s"]);
    assert.match(dry, /1 messages.*\n.*add --yes to purge/);
    const refused = await world.tamq(["hub", "purge", "--before", "0s", "--yes", "--json"]);
    assert.equal(JSON.parse(refused.stderr).reason, "still_running");
    assert.match(JSON.parse(refused.stderr).hint, /tamq hub stop/);
    const coord = await world.mustTamq(["coord", "purge", "--json"]);
    assert.equal(JSON.parse(coord).purged, false);
  } finally {
    await world.mustTamq(["coord", "stop"]);
    await world.mustTamq(["hub", "stop"]);
  }
  const purged = JSON.parse(
    await world.mustTamq(["hub", "purge", "--before", "0s", "--yes", "--json"]),
  );
  assert.deepEqual([purged.purged, purged.messages], [true, 1]);
  assert.equal(Deno.lstatSync(`${world.dir}/state/tamq/hub/hub.sqlite3`).mode! & 0o777, 0o600);
});

Deno.test("[K-22][Q-07] a database beyond 100 MB is told of, by what it holds and not by the length of its file", async () => {
  assert.equal(sizeAdvisory("State Hub data", "tamq hub purge", 100_000_000), undefined);
  assert.equal(
    sizeAdvisory("State Hub data", "tamq hub purge", 123_400_000),
    "Size of State Hub data is 123 MB, exceeding 100MB. Consider using 'tamq hub purge'.",
  );
  await withTempDir((dir) => {
    const db = openDatabase(`${dir}/x.sqlite3`, { busyTimeoutMs: 1000 });
    try {
      db.exec("CREATE TABLE t (x BLOB)");
      const empty = usedBytes(db);
      db.exec("INSERT INTO t VALUES (zeroblob(1000000))");
      assert.ok(usedBytes(db) - empty > 990_000);
      db.exec("DELETE FROM t");
      assert.ok(usedBytes(db) - empty < 10_000);
    } finally {
      db.close();
    }
    return Promise.resolve();
  });
});
