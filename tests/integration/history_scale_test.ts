/**
 * Long histories: memory that does not grow with them, reads that stay quick, purges that hold
 * nothing up. `TAMQ_FAULT_HISTORY=1000000` runs them with a million messages (20 minutes, 4 GB).
 */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import { readHistory } from "../../lib/store/history.ts";
import { openForReading } from "../../lib/store/store.ts";
import { type HistoryWorld, jsonLines, withHistory } from "../helpers/history_world.ts";
import { addHistory } from "../helpers/long_history.ts";
import { measured, peakMegabytes } from "../helpers/memory.ts";
import { faultCount } from "../helpers/seeded.ts";

const MANY = faultCount("HISTORY", 20_000);
const FEW = 1000;
const BODY_BYTES = 2000;
/**
 * The messages alone would not fit: a command that kept them would end here. Without it the garbage
 * collector takes its time up to some 200 MB.
 */
const HEAP = { DENO_V8_FLAGS: "--max-old-space-size=36" };
/**
 * That heap when it is full, and buffers outside of it, which a busy machine frees late. The cap on
 * the heap is what proves the bound: whoever kept all messages would end by it.
 */
const SLACK_MB = 96;

async function lineCount(path: string): Promise<number> {
  let count = 0;
  using file = await Deno.open(path);
  const buffer = new Uint8Array(1 << 16);
  for (let n; (n = await file.read(buffer)) !== null;) {
    for (const byte of buffer.subarray(0, n)) if (byte === 10) count++;
  }
  return count;
}

function quickness(world: HistoryWorld): number {
  const db = openForReading(world.settings.database, { busyTimeoutMs: 1000 });
  const times = Array.from({ length: 25 }, () => {
    const began = systemClock.monotonic();
    assert.equal(readHistory(db, { limit: 50 }).messages.length, 50);
    return systemClock.monotonic() - began;
  });
  db.close();
  return times.sort((a, b) => a - b)[12]!;
}

Deno.test(`[Q-05] [Q-06] [Q-04] exporting and replaying ${MANY} messages takes no more memory than ${FEW}; history stays quick`, () =>
  withHistory(async (world) => {
    const peaks: Record<string, { export: number; replay: number; service: number }> = {};
    const quick: number[] = [];
    const env = { ...world.env, ...HEAP };
    for (const count of [FEW, MANY]) {
      await world.withStore(({ db }) => {
        const there = Number(db.prepare("SELECT count(*) AS n FROM messages").get()!.n);
        addHistory(db, count - there, BODY_BYTES);
      });
      quick.push(quickness(world));
      const file = `${world.dir}/${count}.jsonl`;
      const exported = await measured(world.argv(["export", file]), env);
      assert.equal(exported.code, 0, exported.stderr);
      assert.equal(await lineCount(file), count);

      const service = await world.start();
      await using _window = await world.closedWindow();
      const args = world.argv(["replay", file, "--endpoint", world.endpoint, "--json"]);
      const replayed = await measured(args, env);
      assert.equal(replayed.code, 0, replayed.stderr);
      const { sent, deduplicated, bad } = JSON.parse(replayed.stdout);
      assert.deepEqual([sent + deduplicated, bad], [count, 0]);
      peaks[count] = {
        export: exported.peak,
        replay: replayed.peak,
        service: peakMegabytes(service.pid)!,
      };
      await world.stop();
      // The replayed ones go again, so that the next round counts from what it had.
      await world.withStore(({ db }) => {
        db.prepare("DELETE FROM messages WHERE provenance = 'replay'").run();
      });
      await Deno.remove(file);
    }
    const [few, many] = [peaks[FEW]!, peaks[MANY]!];
    for (const part of ["export", "replay", "service"] as const) {
      const grown = many[part] - few[part];
      assert.ok(grown < SLACK_MB, `${part}: ${few[part]} MB became ${many[part]} MB`);
    }
    assert.ok(quick[1]! < quick[0]! * 3 + 5, `history: ${quick[0]} ms became ${quick[1]} ms`);
  }));

Deno.test(`[Q-08] while ${MANY} messages are purged, new ones are delivered before the purge is over`, () =>
  withHistory(async (world) => {
    await world.withStore(({ db }) => addHistory(db, MANY, BODY_BYTES));
    const { size } = Deno.statSync(world.settings.database);
    await world.start();
    await using beta = await world.receiver();
    let over = false;
    const argv = world.argv(["purge", "--max-size", "0", "--yes", "--json"]);
    const purging = measured(argv, world.env).finally(() => over = true);
    let delivered = 0;
    const ids: string[] = [];
    while (!over) {
      const { message_id } = await world.send(`during ${delivered}`);
      assert.deepEqual(await beta.next(1), [message_id]);
      if (!over) delivered++;
      ids.push(message_id);
    }
    const { code, stdout, stderr } = await purging;
    assert.equal(code, 0, stderr);
    const { messages } = JSON.parse(stdout);
    assert.ok(messages >= MANY, stdout);
    assert.ok(delivered >= 20, `${delivered} were delivered meanwhile`);
    const left = jsonLines((await world.tamq(["export"])).stdout);
    assert.ok(left.length <= ids.length, "the old ones are gone");
    assert.ok(Deno.statSync(world.settings.database).size < size / 3, "the space is given back");
    // Every key is still known.
    await world.stop();
    await world.withStore(({ db }) => {
      assert.equal(db.prepare("SELECT count FROM purged_total").get()!.count, messages);
      assert.equal(db.prepare("SELECT count(*) AS n FROM purged_keys").get()!.n, messages);
      assert.equal(db.prepare("PRAGMA integrity_check").get()!.integrity_check, "ok");
    });
  }));
