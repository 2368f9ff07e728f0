import assert from "node:assert/strict";
import { TamqError } from "../../../lib/base/errors.ts";
import { openDatabase } from "../../../lib/sqlite/open.ts";
import { withTempDir } from "../../helpers/temp.ts";

const OPTIONS = { busyTimeoutMs: 50 };

function refusal(work: () => unknown): TamqError {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof TamqError, String(error));
    return error;
  }
  throw new Error("nothing was refused");
}

const mode = (path: string) => Deno.statSync(path).mode! & 0o777;

Deno.test("[Q-01] a new database has a write-ahead log, full synchronisation and foreign keys", () =>
  withTempDir((dir) => {
    const db = openDatabase(`${dir}/state/tamq.sqlite3`, OPTIONS);
    const pragma = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0];
    assert.equal(pragma("journal_mode"), "wal");
    assert.equal(pragma("synchronous"), 2);
    assert.equal(pragma("foreign_keys"), 1);
    assert.equal(pragma("busy_timeout"), 50);
    db.close();
  }));

Deno.test("[C-02] directory 0700, database and its companions 0600", () =>
  withTempDir((dir) => {
    const path = `${dir}/a/b/tamq.sqlite3`;
    const db = openDatabase(path, OPTIONS);
    db.prepare("CREATE TABLE t (x)").run();
    assert.equal(mode(`${dir}/a`), 0o700);
    assert.equal(mode(`${dir}/a/b`), 0o700);
    for (const file of [path, `${path}-wal`, `${path}-shm`]) assert.equal(mode(file), 0o600);
    db.close();
    // As `cp` of a backup leaves it.
    Deno.chmodSync(path, 0o644);
    openDatabase(path, OPTIONS).close();
    assert.equal(mode(path), 0o600);
  }));

Deno.test("an absent database is not created by reading", () =>
  withTempDir((dir) => {
    const path = `${dir}/none/tamq.sqlite3`;
    const error = refusal(() => openDatabase(path, { ...OPTIONS, readOnly: true }));
    assert.equal(error.reason, "store_missing");
    assert.match(error.message, new RegExp(path));
    assert.equal([...Deno.readDirSync(dir)].length, 0);
  }));

Deno.test("what cannot be a database is refused with its path and a way out", () =>
  withTempDir((dir) => {
    const junk = `${dir}/junk.sqlite3`;
    Deno.writeTextFileSync(junk, "this is no database. ".repeat(300));
    Deno.mkdirSync(`${dir}/folder`);
    Deno.writeTextFileSync(`${dir}/file`, "");
    for (
      const [path, reason] of [
        [junk, "store_corrupt"],
        [`${dir}/folder`, "store_unreadable"],
        [`${dir}/file/tamq.sqlite3`, "store_unreadable"],
      ] as const
    ) {
      for (const readOnly of [false, true]) {
        if (readOnly && path.includes("/file/")) continue;
        const error = refusal(() => openDatabase(path, { ...OPTIONS, readOnly }));
        assert.equal(error.reason, reason, path);
        assert.ok(error.message.includes(path.replace("/tamq.sqlite3", "")), error.message);
        assert.ok(error.hint);
      }
    }
    assert.equal(Deno.readTextFileSync(junk).slice(0, 7), "this is");
  }));

Deno.test("[C-02] [Q-01] a link that leads to no database is refused as such, one that does is used", () =>
  withTempDir((dir) => {
    const path = `${dir}/tamq.sqlite3`;
    Deno.symlinkSync(`${dir}/elsewhere.sqlite3`, path);
    for (const readOnly of [false, true]) {
      const error = refusal(() => openDatabase(path, { ...OPTIONS, readOnly }));
      assert.equal(error.reason, "store_unreadable");
      assert.ok(error.message.startsWith(`${path}: is a symbolic link`), error.message);
      assert.match(error.hint!, /move the link away/);
      assert.deepEqual([...Deno.readDirSync(dir)].map((entry) => entry.name), ["tamq.sqlite3"]);
    }
    openDatabase(`${dir}/elsewhere.sqlite3`, OPTIONS).close();
    for (const readOnly of [false, true]) openDatabase(path, { ...OPTIONS, readOnly }).close();
  }));

Deno.test("[Q-01] a database that somebody else keeps locked is busy after the timeout", () =>
  withTempDir((dir) => {
    const path = `${dir}/tamq.sqlite3`;
    const holder = openDatabase(path, OPTIONS);
    holder.prepare("BEGIN IMMEDIATE").run();
    assert.equal(refusal(() => openDatabase(path, OPTIONS)).reason, "store_busy");
    holder.prepare("ROLLBACK").run();
    openDatabase(path, OPTIONS).close();
    holder.close();
  }));

Deno.test("[Q-03] readers see the last commit while a writer is at work", () =>
  withTempDir((dir) => {
    const path = `${dir}/tamq.sqlite3`;
    const writer = openDatabase(path, OPTIONS);
    writer.prepare("CREATE TABLE t (x INTEGER) STRICT").run();
    writer.prepare("BEGIN IMMEDIATE").run();
    writer.prepare("INSERT INTO t VALUES (1)").run();
    const reader = openDatabase(path, { ...OPTIONS, readOnly: true });
    const count = () => reader.prepare("SELECT count(*) AS n FROM t").get()!.n;
    assert.equal(count(), 0);
    writer.prepare("COMMIT").run();
    assert.equal(count(), 1);
    assert.throws(() => reader.prepare("INSERT INTO t VALUES (2)").run(), /readonly/);
    reader.close();
    writer.close();
  }));
