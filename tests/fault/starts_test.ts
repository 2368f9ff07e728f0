/** Many shells start the service at once, and do not agree about where its socket is. */
import assert from "node:assert/strict";
import { identify } from "../../lib/base/proc.ts";
import { liveHolder } from "../../lib/socket.ts";
import { faultCount } from "../helpers/seeded.ts";
import { runProcess, World } from "../helpers/world.ts";

const STARTS = faultCount("STARTS", 50);

/** Living services whose state is in `dir`. */
function services(dir: string): number[] {
  const found: number[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const env = Deno.readTextFileSync(`/proc/${name}/environ`);
      const argv = Deno.readTextFileSync(`/proc/${name}/cmdline`);
      if (env.includes(`TAMQ_STATE_DIR=${dir}\0`) && argv.includes("--detached-child")) {
        found.push(Number(name));
      }
    } catch {
      // gone
    }
  }
  return found;
}

Deno.test(`[L-01] [L-02] ${STARTS} processes start the service at once from shells with different XDG_RUNTIME_DIR: one serves`, async () => {
  await using world = await World.create(["beta"]);
  const stateDir = `${world.dir}/state/tamq`;
  const shells = ["run", "other", "third"].map((name) => ({
    ...world.env,
    XDG_RUNTIME_DIR: `${world.dir}/${name}`,
  }));
  try {
    for (let round = 0; round < 2; round++) {
      const starts = await Promise.all(
        Array.from({ length: STARTS }, (_, n) =>
          runProcess(world.argv(["serve", "--detach"]), {
            env: shells[n % shells.length],
            clearEnv: true,
          })),
      );
      for (const { code, stderr } of starts) assert.equal(code, 0, stderr);
      const holder = liveHolder(stateDir);
      assert.deepEqual(services(stateDir), [holder?.pid]);
      // Every shell finds that one, also one that knows no such directory at all.
      const { XDG_RUNTIME_DIR: _, ...bare } = world.env;
      for (const [n, env] of [...shells, bare].entries()) {
        const sent = await runProcess(world.argv(["send", `To:beta: ${n}`]), {
          env,
          clearEnv: true,
        });
        assert.equal(sent.code, 0, sent.stderr);
      }
      const rows = await world.history();
      assert.equal(rows.length, (round + 1) * (shells.length + 1));
      // The second round begins with what a killed service leaves behind.
      const dead = identify(holder!.pid)!;
      Deno.kill(dead.pid, "SIGKILL");
      while (identify(dead.pid)?.start === dead.start) { /* until the kernel has ended it */ }
    }
  } finally {
    for (const pid of services(stateDir)) Deno.kill(pid, "SIGKILL");
  }
});
