/** Ends the process at chosen writes and syncs of the database, and looks at what it had promised. */
import assert from "node:assert/strict";
import { openStore } from "../../lib/store/store.ts";
import { FakeClock } from "../helpers/clock.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { withTempDir } from "../helpers/temp.ts";

const ENTRY = new URL("../helpers/queue_steps_entry.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

const canTrace = await (async () => {
  try {
    const probe = new Deno.Command("strace", {
      args: ["-o", "/dev/null", "true"],
      stdout: "null",
      stderr: "null",
    });
    return (await probe.output()).success;
  } catch {
    return false;
  }
})();

/** Runs the steps on a new database; kills at the `at`-th `call`. Returns what was answered. */
async function stepsKilledAt(path: string, call: string, at: number): Promise<string[]> {
  const trace = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`];
  const inject = ["-e", `inject=${call}:signal=SIGKILL:when=${at}`];
  const run = ["run", "-A", "--no-check", "--frozen", "--config", CONFIG, ENTRY, path];
  const { stdout, stderr, signal, code } = await new Deno.Command("strace", {
    args: [...trace, ...inject, Deno.execPath(), ...run],
  }).output();
  const lines = new TextDecoder().decode(stdout).split("\n").slice(0, -1);
  // Anything but a kill or the end would make every run pass, and none of them the last.
  const ended = lines.at(-1) === "done" && code === 0;
  assert.ok(signal === "SIGKILL" || ended, new TextDecoder().decode(stderr));
  return lines;
}

async function verify(path: string, lines: readonly string[], where: string): Promise<void> {
  const { db, store } = await openStore(path, { busyTimeoutMs: 1000, clock: new FakeClock() });
  try {
    assert.deepEqual(Object.values(db.prepare("PRAGMA integrity_check").get()!), ["ok"], where);
    const last = new Map<string, string>();
    for (const line of lines) {
      const [, id, states] = line.split(" ");
      if (id !== undefined) last.set(id, states!);
    }
    for (const [id, states] of last) {
      const state = store.messages.byId(id)?.state;
      assert.ok(
        state !== undefined && states.split(",").includes(state),
        `${where}: ${id} ${state}`,
      );
    }
    // Promised or one more: the step under way may have become durable without its answer.
    const stored = Object.values(store.messages.counts().states).reduce((a, b) => a + b);
    assert.ok(stored >= last.size && stored <= last.size + 1, where);
  } finally {
    db.close();
  }
}

for (const call of ["fsync", "pwrite64"]) {
  Deno.test({
    name: `[L-04] killed at a ${call} of any transition, every answered step is kept`,
    ignore: !canTrace,
    fn: () =>
      withTempDir(async (dir) => {
        const random = new Seeded();
        // An ordinary run tries some of the calls; TAMQ_FAULT_KILL_POINTS=1 tries each.
        const every = faultCount("KILL_POINTS", call === "fsync" ? 1 : 6);
        let killed = 0;
        for (let at = 1 + random.below(every);; at += every) {
          const path = `${dir}/${at}.sqlite3`;
          const lines = await stepsKilledAt(path, call, at);
          await verify(path, lines, `seed ${random.seed}, ${call} ${at}`);
          if (lines.at(-1) === "done") break;
          killed++;
        }
        assert.ok(killed >= 5, `only ${killed} runs were killed: is the call still the one used?`);
      }),
  });
}
