import assert from "node:assert/strict";
import { TamqError } from "../../../lib/base/errors.ts";
import { migrate, type Migration, schemaVersion } from "../../../lib/sqlite/migrator.ts";
import { type Database, openDatabase } from "../../../lib/sqlite/open.ts";
import { openForReading, SCHEMA_VERSION } from "../../../lib/store/store.ts";
import { FakeClock } from "../../helpers/clock.ts";
import { withTempDir } from "../../helpers/temp.ts";

const one: Migration = {
  version: 1,
  name: "one",
  statements: ["CREATE TABLE messages (x TEXT) STRICT", "INSERT INTO messages VALUES ('kept')"],
  touchesMessages: false,
};
const two: Migration = {
  version: 2,
  name: "two",
  statements: ["ALTER TABLE messages ADD COLUMN y INTEGER"],
  touchesMessages: true,
};
const broken: Migration = {
  version: 2,
  name: "broken",
  statements: ["ALTER TABLE messages ADD COLUMN y INTEGER", "SELECT nonsense FROM nowhere"],
  touchesMessages: false,
};

function withDatabase(body: (db: Database, path: string, dir: string) => Promise<void>) {
  return withTempDir(async (dir) => {
    const path = `${dir}/tamq.sqlite3`;
    const db = openDatabase(path, { busyTimeoutMs: 50 });
    try {
      await body(db, path, dir);
    } finally {
      db.close();
    }
  });
}

const reasonOf = (error: unknown) => error instanceof TamqError ? error.reason : String(error);
const clock = new FakeClock();
const backups = (dir: string) =>
  [...Deno.readDirSync(dir)].map((entry) => entry.name).filter((name) => name.endsWith(".backup"));

Deno.test("[Q-02] migrations go forward once, and the version is recorded", () =>
  withDatabase(async (db, path, dir) => {
    assert.equal(schemaVersion(db), 0);
    assert.deepEqual(await migrate(db, path, [one, two], clock), {
      from: 0,
      to: 2,
      backup: undefined,
    });
    assert.equal(schemaVersion(db), 2);
    assert.deepEqual(await migrate(db, path, [one, two], clock), {
      from: 2,
      to: 2,
      backup: undefined,
    });
    assert.equal(db.prepare("SELECT count(*) AS n FROM messages").get()!.n, 1);
    assert.deepEqual(backups(dir), []);
  }));

Deno.test("[Q-02] two processes that migrate one database at once do it once", () =>
  withDatabase(async (db, path, dir) => {
    await migrate(db, path, [one], clock);
    const other = openDatabase(path, { busyTimeoutMs: 1000 });
    // Both have seen version 1 before either has finished its backup.
    await Promise.all([db, other].map((each) => migrate(each, path, [one, two], clock)));
    assert.deepEqual([db, other].map(schemaVersion), [2, 2]);
    assert.equal(backups(dir).length, 2);
    other.close();
  }));

Deno.test("[Q-02] a backup with the time in its name precedes a change of message tables", () =>
  withDatabase(async (db, path, dir) => {
    await migrate(db, path, [one], clock);
    const report = await migrate(db, path, [one, two], clock);
    assert.deepEqual(backups(dir), ["tamq.sqlite3.v1.20300101T000000Z.backup"]);
    assert.equal(report.backup, `${dir}/${backups(dir)[0]}`);
    assert.equal(Deno.statSync(report.backup!).mode! & 0o777, 0o600);
    const copy = openDatabase(report.backup!, { busyTimeoutMs: 50 });
    assert.equal(schemaVersion(copy), 1);
    assert.equal(copy.prepare("SELECT x FROM messages").get()!.x, "kept");
    copy.close();
  }));

Deno.test("[Q-02] a migration that fails leaves everything as it was", () =>
  withDatabase(async (db, path) => {
    await migrate(db, path, [one], clock);
    await assert.rejects(migrate(db, path, [one, broken], clock), /nowhere/);
    assert.equal(schemaVersion(db), 1);
    assert.deepEqual(db.prepare("SELECT name FROM pragma_table_info('messages')").all().length, 1);
    await migrate(db, path, [one, two], clock);
    assert.equal(schemaVersion(db), 2);
  }));

Deno.test("[Q-02] a newer schema and a changed migration are refused, and name the file", () =>
  withDatabase(async (db, path) => {
    await migrate(db, path, [one, two], clock);
    await assert.rejects(migrate(db, path, [one], clock), (error) => {
      assert.equal(reasonOf(error), "schema_newer");
      assert.ok((error as TamqError).message.includes(path));
      return true;
    });
    const edited = { ...one, statements: [...one.statements, "SELECT 1"] };
    await assert.rejects(
      migrate(db, path, [edited, two], clock),
      (error) => reasonOf(error) === "schema_changed",
    );
    assert.equal(schemaVersion(db), 2);
  }));

Deno.test("[Q-02] reading refuses a newer schema as well", () =>
  withDatabase(async (db, path) => {
    const many = Array.from({ length: SCHEMA_VERSION + 1 }, (_, index) => ({
      version: index + 1,
      name: "x",
      statements: ["SELECT 1"],
      touchesMessages: false,
    }));
    await migrate(db, path, many, clock);
    assert.throws(
      () => openForReading(path, { busyTimeoutMs: 50 }),
      (error) => reasonOf(error) === "schema_newer",
    );
  }));

Deno.test("[Q-02] a migration tried again within the same second makes a backup of its own", () =>
  withDatabase(async (db, path, dir) => {
    // The service was killed between backup and migration, and started again at once: it failed to
    // start with "file exists" until the second was over. Found by killing at every write.
    await migrate(db, path, [one], clock);
    await assert.rejects(migrate(db, path, [one, { ...broken, touchesMessages: true }], clock));
    const report = await migrate(db, path, [one, two], clock);
    assert.equal(report.backup, `${path}.v1.20300101T000000Z.2.backup`);
    assert.equal(backups(dir).length, 2);
  }));
