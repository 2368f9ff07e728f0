/** Windows become the version that `tamq upgrade` belongs to, or say why not (B-17). */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { agent, inWords, type Outcome, processes, worldOf } from "../helpers/upgrades.ts";
import type { World } from "../helpers/world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** Another version, in a checkout of its own; returns what runs it. */
async function version(
  world: World,
  name: string,
  edit: (handover: string) => string = (same) => same,
): Promise<string[]> {
  const dir = `${world.dir}/checkout ${name}`;
  await Deno.mkdir(dir);
  await world.must(["cp", "-r", `${ROOT}lib`, `${ROOT}main.ts`, `${ROOT}deno.lock`, dir]);
  await Deno.writeTextFile(`${dir}/deno.json`, JSON.stringify({ ...manifest, version: name }));
  const handover = `${dir}/lib/handover.ts`;
  await Deno.writeTextFile(handover, edit(await Deno.readTextFile(handover)));
  const run = world.argv([]).slice(0, -1);
  return [...run, "--quiet", "--config", `${dir}/deno.json`, `${dir}/main.ts`];
}

async function upgradeBy(world: World, program: readonly string[]) {
  const { code, stdout, stderr } = await world.run([...program, "upgrade", "--json"]);
  assert.equal(stderr, "");
  const told = JSON.parse(stdout) as {
    program: string;
    service: { from: string; to: string };
    windows: Outcome[];
  };
  return { code, ...told };
}

Deno.test({
  name:
    "[B-17][V-04] another version takes over and gives back; one that reads another format is not become",
  // Its versions are checkouts.
  ignore: Deno.env.get("TAMQ_TEST_EXECUTABLE") !== undefined,
  async fn() {
    await using world = await worldOf("alpha");
    const now = manifest.version;
    await world.open(agent("line_worker.ts", `${world.dir}/alpha.log`), "alpha");
    await world.untilScreen("alpha", "ready");
    const before = await processes(world, "alpha");
    const runs = async () => await Deno.readTextFile(`/proc/${before[0]}/cmdline`);

    const next = await version(world, "9.9.9");
    const up = await upgradeBy(world, next);
    assert.deepEqual([up.code, up.program, up.service.from, up.service.to], [
      0,
      "9.9.9",
      now,
      "9.9.9",
    ]);
    assert.deepEqual(up.windows.map(({ from, to, outcome }) => [from, to, outcome]), [
      [now, "9.9.9", "upgraded"],
    ]);
    assert.match(await runs(), /checkout 9\.9\.9/);
    const plan = await world.mustTamq(["upgrade", "--dry-run"]);
    assert.match(plan, new RegExp(`service: version 9.9.9, would become ${now}\n`));
    assert.match(plan, /^alpha +@\d+ +9\.9\.9 +would become /m);
    assert.match(await runs(), /checkout 9\.9\.9/);

    const back = await upgradeBy(world, world.argv([]));
    assert.deepEqual(back.windows.map(({ from, to }) => [from, to]), [["9.9.9", now]]);
    assert.doesNotMatch(await runs(), /checkout/);

    const foreign = await version(
      world,
      "8.0.0",
      (text) =>
        text.replace("export const HANDOVER_FORMAT = 1;", "export const HANDOVER_FORMAT = 2;"),
    );
    const refused = await upgradeBy(world, foreign);
    assert.deepEqual([refused.code, refused.service.to], [1, "8.0.0"]);
    assert.deepEqual(inWords(refused.windows), [
      "alpha unchanged version 8.0.0 does not go on from this one (format 1): " +
      "end the command in the window and start it again",
    ]);
    assert.deepEqual([refused.windows[0]!.from, refused.windows[0]!.to], [now, now]);
    // The window works on, with that service.
    await world.mustTamq(["send", "--to", "alpha", "still here"]);
    await world.untilScreen("alpha", "From:local/o: still here");
    assert.deepEqual(await processes(world, "alpha"), before);
  },
});
