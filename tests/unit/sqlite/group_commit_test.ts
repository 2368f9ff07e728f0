import assert from "node:assert/strict";
import { TamqError } from "../../../lib/base/errors.ts";
import { onProbe } from "../../../lib/base/probe.ts";
import { GroupCommit } from "../../../lib/sqlite/group_commit.ts";
import { type Database, openDatabase } from "../../../lib/sqlite/open.ts";
import { FakeClock } from "../../helpers/clock.ts";
import { withTempDir } from "../../helpers/temp.ts";

interface Bench {
  db: Database;
  path: string;
  commit: GroupCommit;
  clock: FakeClock;
  insert: (x: number) => void;
  rows: () => number[];
}

function withCommit(body: (bench: Bench) => Promise<void>) {
  return withTempDir(async (dir) => {
    const path = `${dir}/t.sqlite3`;
    const db = openDatabase(path, { busyTimeoutMs: 200 });
    db.prepare(`CREATE TABLE t (x INTEGER PRIMARY KEY, pad TEXT NOT NULL DEFAULT '',
      parent INTEGER REFERENCES t (x) DEFERRABLE INITIALLY DEFERRED) STRICT`).run();
    const clock = new FakeClock();
    const commit = new GroupCommit(db, { path, clock, busyTimeoutMs: 200 });
    const insertion = db.prepare("INSERT INTO t (x) VALUES (?)");
    try {
      await body({
        db,
        path,
        commit,
        clock,
        insert: (x) => void insertion.run(x),
        rows: () => db.prepare("SELECT x FROM t ORDER BY x").all().map((row) => Number(row.x)),
      });
    } finally {
      db.close();
    }
  });
}

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error) => error instanceof TamqError ? error.reason : `error: ${error.message}`,
  );

function countCommits(): { count: () => number; stop: () => void } {
  let commits = 0;
  const stop = onProbe("commit.after", () => commits++);
  return { count: () => commits, stop };
}

Deno.test("[Q-03] the work of one turn is one transaction, answered in order after its commit", () =>
  withCommit(async ({ commit, insert, rows }) => {
    const commits = countCommits();
    const order: number[] = [];
    const all = [1, 2, 3].map((x) =>
      commit.run(() => (insert(x), x)).then((value) => {
        assert.equal(commits.count(), 1);
        order.push(value);
      })
    );
    assert.equal(commits.count(), 0);
    await Promise.all(all);
    commits.stop();
    assert.deepEqual(order, [1, 2, 3]);
    assert.deepEqual(rows(), [1, 2, 3]);
  }));

Deno.test("[Q-03] a job that throws undoes itself alone", () =>
  withCommit(async ({ commit, insert, rows }) => {
    const answers = await Promise.all([
      outcome(commit.run(() => insert(1))),
      outcome(commit.run(() => {
        insert(2);
        throw new TamqError("NOT_FOUND", "unknown_target", "no");
      })),
      outcome(commit.run(() => (insert(3), "three"))),
    ]);
    assert.deepEqual(answers, [undefined, "unknown_target", "three"]);
    assert.deepEqual(rows(), [1, 3]);
  }));

Deno.test("[Q-03] a commit that fails rejects every waiter and leaves nothing", () =>
  withCommit(async ({ commit, db, insert, rows }) => {
    const orphan = db.prepare("INSERT INTO t (x, parent) VALUES (9, 99)");
    const answers = await Promise.all([
      outcome(commit.run(() => insert(1))),
      outcome(commit.run(() => void orphan.run())), // found out by COMMIT only
      outcome(commit.run(() => insert(3))),
    ]);
    for (const answer of answers) assert.match(String(answer), /FOREIGN KEY/);
    assert.deepEqual(rows(), []);
    await commit.run(() => insert(4));
    assert.deepEqual(rows(), [4]);
  }));

Deno.test("[Q-03] a full disk rejects with store_full, and the next commit works again", () =>
  withCommit(async ({ commit, db, path, insert, rows }) => {
    const pages = Number(db.prepare("PRAGMA page_count").get()!.page_count);
    db.prepare(`PRAGMA max_page_count = ${pages + 1}`).get();
    const fat = db.prepare("INSERT INTO t (x, pad) VALUES (?, ?)");
    let failure: TamqError | undefined;
    const answers = await Promise.all([
      outcome(commit.run(() => insert(1))),
      commit.run(() => {
        for (let x = 10; x < 40; x++) fat.run(x, "x".repeat(4000));
      }).catch((error) => failure = error),
      outcome(commit.run(() => insert(2))),
    ]);
    assert.ok(failure instanceof TamqError);
    assert.equal(failure.reason, "store_full");
    assert.equal(failure.code, "RESOURCE_EXHAUSTED");
    assert.ok(failure.message.includes(path));
    // SQLite has rolled all of it back: nobody may be told otherwise.
    assert.deepEqual([answers[0], answers[2]], ["store_full", "store_full"]);
    assert.deepEqual(rows(), []);
    await commit.run(() => insert(3));
    db.prepare("PRAGMA max_page_count = 100000").get();
    await commit.run(() => fat.run(50, "x".repeat(40000)));
    assert.deepEqual(rows(), [3, 50]);
  }));

Deno.test("[Q-01] while another process writes, work waits and then runs exactly once", () =>
  withCommit(async ({ commit, clock, path, insert, rows }) => {
    const other = openDatabase(path, { busyTimeoutMs: 10 });
    other.prepare("BEGIN IMMEDIATE").run();
    let runs = 0;
    const answer = commit.run(() => {
      runs++;
      insert(1);
    });
    await Promise.resolve();
    for (let i = 0; i < 3; i++) clock.advance(20);
    assert.equal(runs, 0);
    other.prepare("ROLLBACK").run();
    other.close();
    clock.advance(20);
    await answer;
    assert.equal(runs, 1);
    assert.deepEqual(rows(), [1]);
    assert.equal(clock.timers, 0);
  }));

Deno.test("[Q-01] a lock held past the busy timeout is reported, and nothing was run", () =>
  withCommit(async ({ commit, clock, path, insert, rows }) => {
    const other = openDatabase(path, { busyTimeoutMs: 10 });
    other.prepare("BEGIN IMMEDIATE").run();
    const answer = outcome(commit.run(() => insert(1)));
    await Promise.resolve();
    for (let i = 0; i < 12; i++) clock.advance(20);
    assert.equal(await answer, "store_busy");
    other.prepare("ROLLBACK").run();
    other.close();
    await commit.run(() => insert(2));
    assert.deepEqual(rows(), [2]);
  }));

Deno.test("drain waits for everything handed in", () =>
  withCommit(async ({ commit, insert, rows }) => {
    await commit.drain();
    for (let x = 1; x <= 1300; x++) commit.run(() => insert(x));
    assert.equal(commit.pending, 1300);
    await commit.drain();
    assert.equal(rows().length, 1300);
  }));

Deno.test("[L-04] nothing is committed to a database that was removed or replaced, and all is well when it is back", () =>
  withCommit(async ({ commit, insert, rows, path }) => {
    const run = (x: number) => outcome(commit.run(() => (insert(x), x)));
    assert.equal(await run(1), 1);
    Deno.renameSync(path, `${path}.away`);
    assert.deepEqual(await Promise.all([run(2), run(3)]), ["store_lost", "store_lost"]);
    Deno.copyFileSync(`${path}.away`, path);
    assert.equal(await run(4), "store_lost", "a copy is another file");
    assert.throws(() => commit.checkPresence(), { reason: "store_lost" });
    Deno.renameSync(`${path}.away`, path);
    commit.checkPresence();
    assert.equal(await run(5), 5);
    assert.deepEqual(rows(), [1, 5]);
  }));
