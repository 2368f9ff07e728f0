/** The service is killed while windows become another program (B-17): nothing is lost, nothing is twice. */
import assert from "node:assert/strict";
import { pause, systemClock } from "../../lib/base/clock.ts";
import { agent, become, inWords, logged, processes, worldOf } from "../helpers/upgrades.ts";
import type { Row } from "../helpers/world.ts";

/** Moments after the start of an upgrade, milliseconds: before, amid and after the service's restart. */
const MOMENTS = [100, 400, 800, 1200, 1600, 2000, 2600, 3200];

Deno.test("[B-13][B-17][T-25] a service killed at any moment of an upgrade costs no message and repeats none", async () => {
  await using world = await worldOf("alpha", "beta");
  const log = `${world.dir}/beta.log`;
  await world.open(agent("counting_worker.ts", "beta", `${world.dir}/alpha.log`), "alpha");
  await world.open(agent("line_worker.ts", log), "beta");
  await world.mustTamq(["allow", "alpha", "beta"]);
  await world.untilScreen("beta", "ready");
  const before = [await processes(world, "alpha"), await processes(world, "beta")];
  const pidOf = async () => {
    const { code, stdout } = await world.tamq(["ping", "--json"]);
    return code === 0 ? (JSON.parse(stdout) as { pid: number }).pid : undefined;
  };

  for (const moment of MOMENTS) {
    const pid = await pidOf();
    const upgrading = world.tamq(["upgrade", "--json"]);
    await pause(systemClock, moment);
    for (const victim of [pid, await pidOf()]) {
      try {
        if (victim !== undefined) Deno.kill(victim, "SIGKILL");
      } catch {
        // it had ended already
      }
    }
    await upgrading;
    await world.mustTamq(["serve", "--detach"]);
  }
  await world.until("both windows", async () => {
    const done = await become(world).catch(() => []);
    return inWords(done).join() === "alpha upgraded,beta upgraded";
  });

  assert.deepEqual([await processes(world, "alpha"), await processes(world, "beta")], before);
  const rows = [...(await world.screen("alpha")).matchAll(/row (\d+)/g)].map(([, n]) => Number(n));
  assert.deepEqual(rows, rows.map((_, i) => i + 1));
  const blocks = Math.floor(rows.length / 70);
  const bodies = await world.until("all blocks", async () => {
    const text = await world.mustTamq(["history", "--json", "--limit", "10000"]);
    const found = text.split("\n").filter((line) => line !== "").map((line) =>
      JSON.parse(line) as Row
    );
    return found.length >= blocks && found.every(({ state }) => state === "injected") &&
      found.map(({ body }) => body.split("\n", 1)[0]!);
  });
  const number = (text: string) => Number(/\d+/.exec(text));
  const expected = bodies.map((_, i) => `block ${i + 1}`);
  assert.deepEqual(bodies.sort((a, b) => number(a) - number(b)), expected);
  const read = async () =>
    (await logged<string>(log)).map((line) => /^From:alpha: (block \d+) /.exec(line)?.[1])
      .filter((head) => head !== undefined).sort((a, b) => number(a) - number(b));
  await world.until("all blocks read", async () => (await read()).length >= expected.length);
  assert.deepEqual((await read()).slice(0, expected.length), expected);
});
