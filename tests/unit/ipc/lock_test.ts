import assert from "node:assert/strict";
import { identify } from "../../../lib/base/proc.ts";
import { liveHolder, lockPath, readHolder, tryServiceLock } from "../../../lib/ipc/lock.ts";
import { ensureStateDir } from "../../../lib/ipc/state_dir.ts";
import { withTempDir } from "../../helpers/temp.ts";

const me = { ...identify(Deno.pid)!, socket: "/x/tamq.sock", service_id: "s1", version: "1" };

Deno.test("[L-02] one lock a state directory; who holds it can be read; freed it can be had again", async () => {
  await withTempDir(async (dir) => {
    const first = (await tryServiceLock(dir))!;
    first.publish(me);
    assert.equal(await tryServiceLock(dir), undefined);
    assert.deepEqual(liveHolder(dir), me);
    assert.equal(Deno.statSync(lockPath(dir)).mode! & 0o777, 0o600);
    first.release();
    assert.equal(readHolder(dir), undefined);
    const second = await tryServiceLock(dir);
    assert.ok(second);
    second.release();
  });
});

Deno.test("[L-02] text left by a dead, reused or garbled holder never counts as a live one", async () => {
  await withTempDir(async (dir) => {
    const texts = [
      "",
      "not json",
      "[]",
      "null",
      '{"pid":"1"}',
      '{"pid":-4,"start":"x","socket":"/s"}',
      JSON.stringify({ ...me, start: "another boot:1" }), // the pid was given to somebody else
    ];
    for (const text of texts) {
      Deno.writeTextFileSync(lockPath(dir), text);
      assert.equal(liveHolder(dir), undefined, text);
      const lock = (await tryServiceLock(dir))!;
      assert.ok(lock, text);
      lock.publish(me);
      assert.deepEqual(liveHolder(dir), me, text);
      lock.release();
    }
  });
});

Deno.test("[C-02] a lock file that is a link, whole or dangling, is refused and nothing is made through it", async () => {
  await withTempDir(async (dir) => {
    const foreign = `${dir}/foreign`;
    const expected = { reason: "file_unusable", message: /service\.lock is a symbolic link/ };
    Deno.symlinkSync(foreign, lockPath(dir));
    await assert.rejects(tryServiceLock(dir), expected);
    assert.throws(() => Deno.lstatSync(foreign), Deno.errors.NotFound);
    Deno.writeTextFileSync(foreign, "theirs");
    await assert.rejects(tryServiceLock(dir), expected);
    assert.equal(Deno.readTextFileSync(foreign), "theirs");
    Deno.removeSync(lockPath(dir));
    (await tryServiceLock(dir))!.release();
  });
});

Deno.test("[C-02] the state directory is made for its owner alone", async () => {
  await withTempDir((dir) => {
    ensureStateDir(`${dir}/a/b`);
    assert.equal(Deno.statSync(`${dir}/a`).mode! & 0o777, 0o700);
    assert.equal(Deno.statSync(`${dir}/a/b`).mode! & 0o777, 0o700);
    Deno.writeTextFileSync(`${dir}/file`, "");
    assert.throws(() => ensureStateDir(`${dir}/file`), {
      reason: "state_dir_unusable",
      message: new RegExp(`${dir}/file`),
    });
    if (Deno.uid() === 0) {
      Deno.mkdirSync(`${dir}/theirs`);
      Deno.chownSync(`${dir}/theirs`, 65534, 65534);
      assert.throws(() => ensureStateDir(`${dir}/theirs`), { reason: "state_dir_not_ours" });
    }
  });
});

Deno.test("[C-02] a state directory of ours that others may enter is closed again; one with other things in it is refused", async () => {
  await withTempDir((dir) => {
    const mode = (path: string) => (Deno.statSync(path).mode ?? 0) & 0o7777;
    const make = (name: string, ...files: string[]) => {
      const path = `${dir}/${name}`;
      Deno.mkdirSync(path);
      for (const file of files) Deno.writeTextFileSync(`${path}/${file}`, "");
      Deno.chmodSync(path, 0o755);
      return path;
    };
    for (const path of [make("empty"), make("used", "tamq.sqlite3", "notes.txt")]) {
      assert.match(ensureStateDir(path)!, /was open to others \(mode 0755\); it is 0700 now/);
      assert.equal(mode(path), 0o700);
      assert.equal(ensureStateDir(path), undefined);
    }
    const shared = make("shared", "notes.txt");
    assert.throws(() => ensureStateDir(shared), {
      code: "PERMISSION_DENIED",
      reason: "state_dir_open",
      hint: `set TAMQ_STATE_DIR to a directory of its own, or close this one: chmod 700 ${shared}`,
    });
    assert.equal(mode(shared), 0o755);
  });
});
