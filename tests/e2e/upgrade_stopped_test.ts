/** An upgrade of windows whose service was stopped before (B-17). */
import assert from "node:assert/strict";
import { agent, inWords, type Outcome, processes, worldOf } from "../helpers/upgrades.ts";

Deno.test("[B-17] with the service stopped, as before an update by hand, the windows that live on are upgraded as well", async () => {
  await using world = await worldOf("alpha", "beta");
  for (const repo of ["alpha", "beta"]) {
    await world.open(agent("line_worker.ts", `${world.dir}/${repo}.log`), repo);
    await world.untilScreen(repo, "ready");
  }
  const before = [await processes(world, "alpha"), await processes(world, "beta")];
  await world.mustTamq(["stop"]);
  const { windows, service } = JSON.parse(await world.mustTamq(["upgrade", "--json"])) as {
    windows: Outcome[];
    service: { from: string | null };
  };
  assert.equal(service.from, null, "none ran");
  assert.deepEqual(inWords(windows), ["alpha upgraded", "beta upgraded"]);
  assert.deepEqual([await processes(world, "alpha"), await processes(world, "beta")], before);
});
