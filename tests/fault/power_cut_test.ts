/**
 * The machine loses power: what was answered is on the disk. Each test runs a second time with
 * `synchronous=NORMAL`, which must lose answers: otherwise it would prove nothing.
 */
import assert from "node:assert/strict";
import { Disk, readTrace, traceInto } from "../helpers/disk_trace.ts";
import { entryCommand, needs, run } from "../helpers/fault_tools.ts";
import { keepsPromises } from "../helpers/promises.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { withTempDir } from "../helpers/temp.ts";

const canMount = await needs("loop");
const canTrace = await needs("strace");
const CUTS = faultCount("POWER_CUTS", 40);

interface Cuts {
  answered: number;
  lost: number;
  cutsWithLoss: number;
  damaged: number;
}

function cutPower(synchronous: string | undefined, cuts: number, seed: number): Promise<Cuts> {
  return withTempDir(async (dir) => {
    const env: Record<string, string> = synchronous === undefined
      ? {}
      : { TEST_SYNCHRONOUS: synchronous };
    const entry = entryCommand("power_cut_entry.ts", dir, String(cuts), String(seed));
    const { out, err } = await run(["unshare", "-m", ...entry], env);
    assert.match(out, /^\{/, err);
    return JSON.parse(out);
  }, "/dev/shm");
}

Deno.test({
  name: `[L-04] [Q-03] ${CUTS} power cuts lose no answered message; a weaker setting does`,
  ignore: !canMount,
  async fn() {
    const { seed } = new Seeded();
    const { answered, ...rest } = await cutPower(undefined, CUTS, seed);
    console.log(`${answered} answered over ${CUTS} cuts, seed ${seed}: ${JSON.stringify(rest)}`);
    assert.deepEqual(rest, { lost: 0, cutsWithLoss: 0, damaged: 0 });
    assert.ok(answered > CUTS);

    const control = await cutPower("NORMAL", Math.max(5, Math.floor(CUTS / 8)), seed);
    console.log(`synchronous=NORMAL: ${JSON.stringify(control)}`);
    assert.ok(control.lost > 0, "the simulation would not notice a loss");
  },
});

/** At random points of a traced run: every sector that was not synced is there or not. */
async function cutTrace(synchronous: string | undefined, cuts: number): Promise<string[]> {
  const random = new Seeded();
  return await withTempDir(async (dir) => {
    const path = `${dir}/traced.sqlite3`;
    const env: Record<string, string> = synchronous === undefined
      ? {}
      : { TEST_SYNCHRONOUS: synchronous };
    const steps = entryCommand("queue_steps_entry.ts", path, "3");
    const { out, err } = await run([...traceInto(`${dir}/trace`), ...steps], env);
    assert.match(out, /^done$/m, err);
    const events = readTrace(await Deno.readTextFile(`${dir}/trace`), path);
    // Before "opened" nothing is promised, and directory entries are no part of the simulation.
    const opened = events.findIndex((event) => event.type === "said");
    const share = cuts / (events.length - opened);
    const disk = new Disk();
    const broken: string[] = [];
    let done = 0;
    for (const [at, event] of events.entries()) {
      for (let n = share; at > opened && random.next() < n; n--) {
        const copy = `${dir}/after.sqlite3`;
        await Promise.all(
          ["-wal", "-shm", "-journal"].map((ending) => Deno.remove(copy + ending).catch(() => {})),
        );
        for (const [ending, bytes] of disk.cut(random)) {
          Deno.writeFileSync(copy + ending, bytes, { mode: 0o600 });
        }
        done++;
        await keepsPromises(copy, disk.said, `seed ${random.seed}, event ${at}`)
          .catch((error) => broken.push(error.message));
      }
      disk.apply(event);
    }
    console.log(`${done} cuts with synchronous=${synchronous ?? "FULL"}: ${broken.length} lost`);
    return broken;
  }, "/dev/shm");
}

Deno.test({
  name: "[L-04] [Q-03] whatever part of the unsynced sectors survives, every answered step is kept",
  ignore: !canTrace,
  async fn() {
    assert.deepEqual(await cutTrace(undefined, faultCount("SECTOR_CUTS", 800)), []);
    const control = await cutTrace("NORMAL", 100);
    assert.ok(control.length > 0, "the simulation would not notice a loss");
  },
});
