/** The State Hub's promises about disk, size and load. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { systemClock } from "../../lib/base/clock.ts";
import { silentLog } from "../../lib/base/log.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { startHub } from "../../lib/hub/server.ts";
import { HubStore } from "../../lib/hub/store/hub_store.ts";
import { HubProcess, hubSettingsIn, noWindow } from "../helpers/hub.ts";
import { withTempDir } from "../helpers/temp.ts";

const KILLS = 12;
const WRITERS = 8;

Deno.test("[K-19][L-04][Q-01] kill -9 of the hub under load loses nothing acknowledged and doubles nothing", async () => {
  await withTempDir(async (dir) => {
    const acknowledged = new Map<string, number>();
    let tried = 0;
    for (let round = 0; round < KILLS; round++) {
      const process = await HubProcess.start(dir);
      const client = new StateHubClient({ address: { unix: process.hub.socket }, backoffMs: [] });
      // The blow falls after a number of answers that differs in each round.
      const blow = 5 + round * 7;
      let answers = 0;
      const write = async () => {
        for (;;) {
          const id = `t${++tried}`;
          try {
            await client.call("createTask", { body: { task_id: id, title: "T", repo: "alpha" } });
            acknowledged.set(id, 1);
            const edited = await client.call("editTask", {
              params: { task_id: id },
              ifMatch: 1,
              body: { status: "ready" },
            });
            acknowledged.set(id, edited.value.revision);
          } catch {
            return;
          }
          if (++answers === blow) process.kill();
        }
      };
      await Promise.all(Array.from({ length: WRITERS }, write));
      await process[Symbol.asyncDispose]();
      client.close();
    }
    await using process = await HubProcess.start(dir);
    using client = new StateHubClient({ address: { unix: process.hub.socket } });
    const kept = new Map<string, number>();
    let cursor: string | undefined;
    do {
      const page = (await client.call("listTasks", { query: { cursor, limit: 500 } })).value;
      for (const task of page.items) {
        assert.ok(!kept.has(task.task_id));
        kept.set(task.task_id, task.revision);
      }
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    assert.ok(acknowledged.size > KILLS * 5);
    for (const [id, revision] of acknowledged) {
      assert.ok((kept.get(id) ?? 0) >= revision, `${id} was acknowledged at revision ${revision}`);
    }
    // The feed tells of each exactly once.
    const fed = new Set<string>();
    let place: string | undefined;
    for (let more = true; more;) {
      const page = await client.changes(place, { limit: 500 });
      for (const change of page.changes) {
        assert.ok(!fed.has(change.source_id));
        fed.add(change.source_id);
      }
      place = page.next_cursor;
      more = page.has_more;
    }
    assert.deepEqual([...fed].sort(), [...kept.keys()].sort());
    const db = new DatabaseSync(process.hub.database, { readOnly: true });
    assert.equal(db.prepare("PRAGMA integrity_check").get()!.integrity_check, "ok");
    db.close();
  });
});

Deno.test("[K-19] a change whose answer was lost is made once, when it is repeated after a restart", async () => {
  await withTempDir(async (dir) => {
    const body = { idempotency_key: "lost-answer", title: "T", repo: "alpha" };
    const first = await HubProcess.start(dir);
    const one = new StateHubClient({ address: { unix: first.hub.socket } });
    const { value } = await one.call("createTask", { body });
    one.close();
    first.kill();
    await first.ended();
    await using second = await HubProcess.start(dir);
    using two = new StateHubClient({ address: { unix: second.hub.socket } });
    const again = await two.call("createTask", { body });
    assert.equal(again.value.task_id, value.task_id);
    assert.equal((await two.call("listTasks", {})).value.items.length, 1);
  });
});

Deno.test("[K-01][K-19] a feed of 10,000 tasks is read in bounded pages, each task once", async () => {
  const COUNT = 10_000;
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    const { database: path, busyTimeoutMs } = hub;
    const clock = systemClock;
    const store = await HubStore.open({ path, clock, random: systemRandom, busyTimeoutMs });
    await Promise.all(Array.from({ length: COUNT }, (_, i) =>
      store.mutate({
        key: undefined,
        digest: "",
        kind: "task",
        idOf: (task) => task.task_id,
        again: (id) => store.tasks.get(id),
        work: () =>
          store.tasks.create({
            task_id: `t${i}`,
            title: "T",
            repo: "alpha",
            description: "x".repeat(6000),
            status: "ready",
          }),
      })));
    await store.close();
    const running = await startHub({ hub, version: "0", log: silentLog, windowOf: noWindow });
    const client = new StateHubClient({ address: { unix: hub.socket } });
    const seen = new Set<string>();
    let cursor: string | undefined;
    let pages = 0;
    for (let more = true; more; pages++) {
      const page = await client.changes(cursor, { limit: 500 });
      assert.ok(JSON.stringify(page).length < 3 << 20, "a page has its bound in bytes, too");
      for (const change of page.changes) seen.add(change.source_id);
      cursor = page.next_cursor;
      more = page.has_more;
    }
    assert.equal(seen.size, COUNT);
    assert.ok(pages > COUNT / 500, `${pages} pages: some ended by their bytes`);
    assert.equal((await client.changes(cursor)).changes.length, 0);
    client.close();
    await running.stop();
  });
});
