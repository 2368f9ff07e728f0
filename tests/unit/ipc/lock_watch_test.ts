import assert from "node:assert/strict";
import { turn } from "../../../lib/base/clock.ts";
import { identify } from "../../../lib/base/proc.ts";
import { lockPath, readHolder, tryServiceLock } from "../../../lib/ipc/lock.ts";
import { LockWatch } from "../../../lib/ipc/lock_watch.ts";
import { withTempDir } from "../../helpers/temp.ts";

const me = { ...identify(Deno.pid)!, socket: "/x/tamq.sock", service_id: "s1", version: "1" };

function readable(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

/** A watch that is closed after `body`, and how often it has reported. */
async function watching(
  dir: string,
  body: (watch: LockWatch, seen: { count: number; next(): Promise<void> }) => Promise<void>,
): Promise<void> {
  let news = Promise.withResolvers<void>();
  const seen = { count: 0, next: () => news.promise };
  const watch = new LockWatch(dir, () => {
    seen.count++;
    news.resolve();
    news = Promise.withResolvers<void>();
  });
  try {
    await body(watch, seen);
  } finally {
    await watch.close();
  }
}

Deno.test("[K-09][L-02] the holder's coming, going and replacement are reported, and what it wrote can be read then", async () => {
  await withTempDir(async (dir) => {
    await watching(`${dir}/coord`, async (watch, seen) => {
      assert.equal(watch.arm(), undefined);
      assert.equal(Deno.statSync(`${dir}/coord`).mode! & 0o777, 0o700);
      for (const service_id of ["s1", "s2"]) {
        const lock = (await tryServiceLock(`${dir}/coord`))!;
        lock.publish({ ...me, service_id });
        while (readHolder(`${dir}/coord`)?.service_id !== service_id) await seen.next();
        lock.release();
        while (readHolder(`${dir}/coord`) !== undefined) await seen.next();
      }
    });
  });
});

Deno.test("[K-09] neither other files nor reading the lock are reported: whoever looks when told would never end", async () => {
  await withTempDir(async (dir) => {
    const coord = `${dir}/coord`;
    await watching(coord, async (watch, seen) => {
      Deno.mkdirSync(coord, { mode: 0o700 });
      Deno.writeTextFileSync(lockPath(coord), "");
      assert.equal(watch.arm(), undefined);
      Deno.writeTextFileSync(`${coord}/coord.sqlite3-wal`, "x");
      readHolder(coord);
      Deno.removeSync(`${coord}/coord.sqlite3-wal`);
      // Events come in their order: once this one is seen, which is told, all before it were.
      using other = Deno.watchFs(coord, { recursive: false });
      Deno.chmodSync(coord, 0o700);
      for await (const { paths } of other) if (paths.includes(coord)) break;
      while (seen.count === 0) await turn();
      for (let i = 0; i < 10; i++) await turn();
      assert.equal(seen.count, 1);
    });
  });
});

Deno.test("[K-09] a directory that is removed or moved away is told of, made anew and watched again", async () => {
  await withTempDir(async (dir) => {
    const coord = `${dir}/coord`;
    await watching(coord, async (watch, seen) => {
      for (
        const lose of [
          () => Deno.removeSync(coord, { recursive: true }),
          () => Deno.renameSync(coord, `${dir}/elsewhere`),
        ]
      ) {
        assert.equal(watch.arm(), undefined);
        let told = seen.next();
        lose();
        // The kernel tells of a change to the directory before it tells of its end.
        for (let made = false; !made; made = readable(coord)) {
          await told;
          told = seen.next();
          assert.equal(watch.arm(), undefined);
        }
        const lock = (await tryServiceLock(coord))!;
        lock.publish(me);
        await told;
        lock.release();
      }
    });
  });
});

Deno.test("[K-09] what cannot be watched says why, and is watched as soon as it can be", async () => {
  await withTempDir(async (dir) => {
    const coord = `${dir}/coord`;
    Deno.writeTextFileSync(coord, "a file in the way");
    await watching(coord, async (watch, seen) => {
      assert.match(watch.arm()!, new RegExp(`${coord}`));
      Deno.removeSync(coord);
      assert.equal(watch.arm(), undefined);
      const told = seen.next();
      (await tryServiceLock(coord))!.release();
      await told;
    });
  });
});

Deno.test("[K-09] more events than are kept for us: that some were lost is taken for a change", async () => {
  await withTempDir(async (dir) => {
    await watching(dir, async (watch, seen) => {
      assert.equal(watch.arm(), undefined);
      const told = seen.next();
      // Nothing is read meanwhile, so the lock's own event is not among those that are kept.
      for (let i = 0; i < 5000; i++) Deno.writeTextFileSync(`${dir}/wal${i % 3}`, "x");
      Deno.writeTextFileSync(lockPath(dir), "");
      await told;
    });
  });
});
