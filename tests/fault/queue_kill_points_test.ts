/**
 * Ends the process at chosen writes and syncs of the database, and looks at what it had promised.
 * Processes really killed at a share of these calls; and every one of them by the trace of a run:
 * what a killed process leaves is exactly what it had written.
 */
import assert from "node:assert/strict";
import { Disk, readTrace, traceInto } from "../helpers/disk_trace.ts";
import { eachOf, entryCommand, needs, run } from "../helpers/fault_tools.ts";
import { keepsPromises } from "../helpers/promises.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { withTempDir } from "../helpers/temp.ts";

const canTrace = await needs("strace");
/** Enough for more than 150 of each call. */
const ROUNDS = "4";

/** Runs the steps on a new database; kills at the `at`-th `call`. Returns what was answered. */
async function stepsKilledAt(path: string, call: string, at: number): Promise<string[]> {
  // Not with --seccomp-bpf: strace 6.1 then injects nothing.
  const trace = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`];
  // The runtime writes databases of its own: only ours are counted.
  const ours = ["", "-wal", "-journal"].flatMap((ending) => ["-P", path + ending]);
  const inject = ["-e", `inject=${call}:signal=SIGKILL:when=${at}`];
  const steps = entryCommand("queue_steps_entry.ts", path, ROUNDS);
  const { out, err, signal, code } = await run(["strace", ...trace, ...ours, ...inject, ...steps]);
  const lines = out.split("\n").slice(0, -1);
  // Anything but a kill or the end would make every run pass, and none of them the last.
  assert.ok(signal === "SIGKILL" || lines.at(-1) === "done" && code === 0, err);
  return lines;
}

for (const [call, usual] of [["fsync", 180], ["pwrite64", 1650]] as const) {
  Deno.test({
    name: `[L-04] killed at a ${call} of any transition, every answered step is kept`,
    ignore: !canTrace,
    fn: () =>
      withTempDir(async (dir) => {
        const random = new Seeded();
        // An ordinary run tries 150 of the calls and more; TAMQ_FAULT_KILL_POINTS=1 tries each.
        const every = faultCount("KILL_POINTS", Math.floor(usual / 160));
        let killed = 0;
        let ended = false;
        const points = function* () {
          for (let at = 1 + random.below(every); !ended; at += every) yield at;
        };
        await eachOf(points(), 3, async (at) => {
          const path = `${dir}/${at}.sqlite3`;
          const lines = await stepsKilledAt(path, call, at);
          await keepsPromises(path, lines, `seed ${random.seed}, ${call} ${at}`);
          if (lines.at(-1) === "done") ended = true;
          else killed++;
          for (const ending of ["", "-wal", "-shm", "-journal"]) {
            await Deno.remove(path + ending).catch(() => {});
          }
        });
        console.log(`killed at ${killed} calls of ${call}`);
        assert.ok(killed >= 150, `only ${killed} were killed: is the call still the one used?`);
      }),
  });
}

Deno.test({
  name: "[L-04] killed before any write, sync, cut or removal at all, every answered step is kept",
  ignore: !canTrace,
  fn: () =>
    withTempDir(async (dir) => {
      const path = `${dir}/traced.sqlite3`;
      const steps = entryCommand("queue_steps_entry.ts", path, faultCount("TRACE_ROUNDS", 2) + "");
      const { out, err } = await run([...traceInto(`${dir}/trace`), ...steps]);
      assert.match(out, /^done$/m, err);
      const events = readTrace(await Deno.readTextFile(`${dir}/trace`), path);
      const disk = new Disk();
      let points = 0;
      for (const event of events) {
        if (event.type !== "said" && event.type !== "sync") {
          const copy = `${dir}/after.sqlite3`;
          await Promise.all(
            ["-wal", "-shm", "-journal"].map((ending) =>
              Deno.remove(copy + ending).catch(() => {})
            ),
          );
          for (const [ending, bytes] of disk.killed()) {
            Deno.writeFileSync(copy + ending, bytes, { mode: 0o600 });
          }
          await keepsPromises(copy, disk.said, `before call ${points}`);
          points++;
        }
        disk.apply(event);
      }
      console.log(`looked at ${points} points`);
      assert.ok(points >= 500, `${points}`);
    }, "/dev/shm"),
});
