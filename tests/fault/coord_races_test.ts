/** Several engines against one database: each race has one winner. */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import { newId } from "../../lib/base/ids.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { CoordStore } from "../../lib/coord/store/store.ts";
import { textLines } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";

const RACES = Number(Deno.env.get("TAMQ_RACES") ?? 1500);
const ENGINES = 8;

Deno.test("[K-06][K-08] 1,500 races of eight engines for one database: one winner each, fencing tokens all different", async () => {
  await withTempDir(async (dir) => {
    const path = `${dir}/coord.sqlite3`;
    const { store } = await CoordStore.open({ path, clock: systemClock, busyTimeoutMs: 1000 });
    await store.commit(() => {
      for (let i = 0; i < RACES; i++) {
        const trigger = {
          id: newId(systemClock, systemRandom),
          source: "task",
          source_id: `t${i}`,
          source_revision: "1",
          target_repo: `r${i}`,
          reason: "task_actionable",
          observed_at: "2030-01-01T00:00:00.000Z",
        } as const;
        assert.ok(store.triggers.add(trigger, 0, 5));
        assert.ok(!store.triggers.add({ ...trigger, id: "other" }, 0, 5), "collapsed (K-02)");
      }
    });
    await store.close();
    const root = new URL("../../", import.meta.url).pathname;
    const engines = Array.from({ length: ENGINES }, () => {
      const child = new Deno.Command(Deno.execPath(), {
        args: [
          "run",
          "-A",
          "--no-check",
          "--quiet",
          "--frozen",
          `--config=${root}deno.json`,
          `${root}tests/helpers/coord_claimer_entry.ts`,
          path,
        ],
        stdin: "piped",
        stdout: "piped",
        stderr: "inherit",
      }).spawn();
      return { child, lines: textLines(child.stdout) };
    });
    for (const { lines } of engines) assert.equal((await lines.next()).value, "ready");
    for (const { child } of engines) {
      const writer = child.stdin.getWriter();
      await writer.write(new Uint8Array(1));
      await writer.close();
    }
    const wins = await Promise.all(engines.map(async ({ child, lines }) => {
      const won = JSON.parse((await lines.next()).value!) as [string, number][];
      await lines.next();
      await child.status;
      return won;
    }));
    const all = wins.flat();
    assert.equal(all.length, RACES, "somebody wins each");
    assert.equal(new Set(all.map(([id]) => id)).size, RACES, "and nobody twice");
    assert.equal(new Set(all.map(([, token]) => token)).size, RACES);
    assert.ok(wins.filter((won) => won.length > 0).length > 1, "they did meet");
  });
});
