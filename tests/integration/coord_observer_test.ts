/** The observer: cursor, restarts, outages, replays, many tasks. */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import { TamqError } from "../../lib/base/errors.ts";
import { silentLog } from "../../lib/base/log.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { Observer } from "../../lib/coord/observer.ts";
import { Receipts } from "../../lib/coord/receipts.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { CoordStore } from "../../lib/coord/store/store.ts";
import { startHub } from "../../lib/hub/server.ts";
import { DEFAULT_PROFILE } from "../../lib/model/policy.ts";
import { FakeClock } from "../helpers/clock.ts";
import { withCoord } from "../helpers/coord_rig.ts";
import { hubSettingsIn, noWindow } from "../helpers/hub.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[K-01][K-02] 10,000 tasks are observed in bounded time and memory, once each, also after a restart", async () => {
  await withCoord(async (rig) => {
    await rig.task("t", { repo: "beta" });
    const [one] = (await rig.hub.changes(undefined)).changes;
    const template = JSON.stringify(one);
    // A hub of that many tasks, page by page; the pages come from nowhere, so that only the
    // observer's own time and memory count.
    rig.hub.changes = (cursor, { limit } = {}) => {
      const from = Number(cursor ?? 0);
      const changes = Array.from({ length: Math.min(limit!, 10_000 - from) }, (_, at) => {
        const change = JSON.parse(template);
        change.source_id = change.record.task_id = `t${from + at}`;
        return change;
      });
      const next = from + changes.length;
      return Promise.resolve({ changes, next_cursor: String(next), has_more: next < 10_000 });
    };
    const before = Deno.memoryUsage().rss;
    const start = performance.now();
    await rig.observer.look(rig.hub);
    const ms = performance.now() - start;
    assert.equal(rig.store.triggers.counts().waiting, 10_000);
    assert.ok(ms < 30_000, `${ms} ms`);
    const grown = (Deno.memoryUsage().rss - before) / 2 ** 20;
    assert.ok(grown < 150, `${grown} MiB`);
    const decided = performance.now();
    while (await rig.waker.turn()) { /* decides them all */ }
    const decideMs = performance.now() - decided;
    assert.equal(rig.transport.all.length, 0, "nobody is there to be woken");
    rig.store.setCursor(undefined);
    await rig.observer.look(rig.hub);
    assert.equal(rig.store.triggers.counts().waiting, 10_000);
    console.log(
      `    10,000 tasks observed in ${ms.toFixed(0)} ms, +${grown.toFixed(0)} MiB, ` +
        `decided in ${decideMs.toFixed(0)} ms`,
    );
  });
});

Deno.test("[K-01] a page seen again, late or out of order moves nothing back", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    const old = await rig.hub.changes(undefined);
    await rig.edit("t", { needs_human: true });
    await rig.step();
    const real = rig.hub.changes.bind(rig.hub);
    rig.hub.revisions.reset(); // this observer started after the old page was made
    rig.hub.changes = () => Promise.resolve({ ...old, has_more: false });
    await rig.step();
    rig.hub.changes = real;
    await rig.step();
    assert.equal(rig.transport.all.length, 0, "the state of an old page wakes nobody");
  });
});

Deno.test("[K-01] a hub that is another one is begun anew: nothing is lost, nothing is woken twice", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    const real = rig.hub.changes.bind(rig.hub);
    let told = false;
    rig.hub.changes = (cursor, options) => {
      if (told) return real(cursor, options);
      told = true;
      return Promise.reject(new TamqError("FAILED_PRECONDITION", "cursor_expired", "another"));
    };
    await rig.task("u", { repo: "beta" });
    await rig.step();
    assert.equal(rig.store.triggers.list({ limit: 9 }).length, 2);
    assert.equal(rig.transport.all.length, 1);
  });
});

Deno.test("[K-01][K-03] a hub that tells of the future and then of the past, or hides a record and shows it again: the task is woken for, once", async () => {
  await withCoord(async (rig) => {
    await rig.task("ahead");
    await rig.task("hidden", { repo: "beta" });
    await rig.step();
    // Another page for one look, as it stands in another time.
    const real = rig.hub.changes.bind(rig.hub);
    const [ahead] = (await real(undefined)).changes.map((change) => structuredClone(change));
    Object.assign(ahead!.record, {
      revision: 99,
      wake: { revision: 99, reason: "task_actionable" },
    });
    rig.hub.changes = (cursor) =>
      Promise.resolve({ changes: [ahead!], next_cursor: cursor!, has_more: false });
    await rig.step();
    const states = () => rig.store.triggers.ofSource("ahead").map(({ decision }) => decision);
    assert.deepEqual(states(), ["session_absent", "superseded"]);
    // And a record that cannot be had although the feed told of it.
    const call = rig.hub.call.bind(rig.hub);
    rig.hub.call = (name, request) =>
      name === "getTask"
        ? Promise.reject(new TamqError("NOT_FOUND", "unknown_task", "no"))
        : call(name, request);
    rig.transport.open("beta");
    await rig.step();
    assert.equal(rig.store.triggers.ofSource("hidden")[0]!.decision, "source_gone");
    assert.equal(rig.transport.all.length, 0);

    rig.hub.call = call;
    rig.hub.changes = real;
    rig.transport.open("alpha", { endpoint: "tmux-amq-2" });
    await rig.step();
    assert.deepEqual(rig.transport.all.map(({ request }) => request.trigger.source_id).sort(), [
      "ahead",
      "hidden",
    ]);
    assert.deepEqual(states(), ["superseded", "actionable"]);
    for (let i = 0; i < 3; i++) {
      rig.observer.doubt();
      rig.clock.advance(100_000);
      await rig.step();
    }
    assert.equal(rig.transport.all.length, 2, "read again, woken once");
  });
});

Deno.test("[K-01] what a feed left out is found at the hourly look; a hub that forgets every place is read once a look", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.step();
    await rig.task("t");
    const real = rig.hub.changes.bind(rig.hub);
    const { next_cursor } = await real(undefined);
    rig.hub.changes = () => Promise.resolve({ changes: [], next_cursor, has_more: false });
    await rig.step();
    rig.hub.changes = real;
    await rig.step();
    assert.equal(rig.transport.all.length, 0, "left out");
    rig.clock.advance(3_600_000);
    await rig.step();
    assert.equal(rig.transport.all.length, 1);

    let asked = 0;
    rig.hub.changes = async (cursor, options) => {
      asked++;
      if (cursor !== undefined) {
        throw new TamqError("FAILED_PRECONDITION", "cursor_expired", "gone");
      }
      return { ...await real(cursor, options), has_more: true };
    };
    await assert.rejects(rig.observer.look(rig.hub), { reason: "cursor_expired" });
    assert.equal(asked, 3);
    assert.equal(rig.transport.all.length, 1);
  });
});

Deno.test("[K-01] while the hub is down it is asked with growing pauses; a change is seen as soon as it is back", async () => {
  await withTempDir(async (dir) => {
    const clock = new FakeClock();
    const hub = await hubSettingsIn(dir);
    const path = `${dir}/coord.sqlite3`;
    const { store } = await CoordStore.open({ path, clock, busyTimeoutMs: 1000 });
    const rules = { profile: DEFAULT_PROFILE, configVersion: "c0" };
    const random = systemRandom;
    let tries = 0;
    let tried = Promise.withResolvers<void>();
    let seen = false;
    const observer = new Observer({
      store,
      connect: () => {
        tries++;
        tried.resolve();
        return new StateHubClient({ address: { unix: hub.socket }, backoffMs: [] });
      },
      receipts: new Receipts({ sink: store.journal, rules, clock, random }),
      clock,
      random,
      log: silentLog,
      pollMs: 15_000,
      onObserved: () => seen = true,
    });
    observer.start();
    await tried.promise;
    for (const pause of [1000, 2000, 4000, 8000]) {
      while (clock.timers === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      const before = tries;
      clock.advance(pause - 1);
      assert.equal(tries, before, `no earlier than after ${pause} ms`);
      tried = Promise.withResolvers();
      clock.advance(1);
      await tried.promise;
    }
    assert.equal(observer.health.reachable, false);
    const running = await startHub({
      hub,
      version: "0",
      log: silentLog,
      windowOf: noWindow,
      clock: systemClock,
    });
    observer.nudge();
    // Not the time of a poll passes from here on: a nudge brings the next look, then the subscription.
    const before = clock.monotonic();
    const moment = async () => {
      clock.advance(1);
      await new Promise((resolve) => setTimeout(resolve, 1));
      assert.ok(clock.monotonic() - before < 15_000, "only a poll would see it");
    };
    while (!seen) await moment();
    assert.equal(observer.health.reachable, true);
    const client = new StateHubClient({ address: { unix: hub.socket } });
    await client.call("createTask", {
      body: { task_id: "t", title: "T", repo: "alpha", status: "ready" },
    });
    while (store.triggers.ofSource("t").length === 0) await moment();
    client.close();
    await observer.stop();
    await running.stop();
    await store.close();
  });
});
