/** `--orwell`: loud, local, for one run, and only where a policy profile admits it. */
import assert from "node:assert/strict";
import { CoordWorld } from "../helpers/coord_world.ts";
import type { World } from "../helpers/world.ts";

const LAB = `[policy.profiles.lab]
allow = ["statehub_read"]
require_human = ["secrets"]
allow_orwell = true

[policy.profiles.shop]
allow = ["statehub_read"]
require_human = ["secrets"]
`;
const inLab = { TAMQ_POLICY_PROFILE: "lab" };

function names(world: World): string[] {
  const found: string[] = [];
  const walk = (dir: string) => {
    for (const entry of Deno.readDirSync(dir)) {
      if (entry.isDirectory) walk(`${dir}/${entry.name}`);
      else found.push(entry.name);
    }
  };
  walk(`${world.dir}/state`);
  return found;
}

Deno.test("[C-06] --orwell is refused by the default profile and by every one without allow_orwell, for all services; nothing starts", async () => {
  await using coord = await CoordWorld.create([], LAB);
  const { world } = coord;
  for (const words of [["serve"], ["coord", "serve"], ["hub", "serve"]]) {
    for (const more of [[], ["--detach"]]) {
      for (const env of [{} as Record<string, string>, { TAMQ_POLICY_PROFILE: "shop" }]) {
        const { code, stderr } = await world.tamq([...words, ...more, "--orwell"], { env });
        assert.equal(code, 5, `${words.join(" ")}: ${stderr}`);
        assert.match(stderr, /--orwell is refused by the policy profile "(default|shop)"\nhint: /);
      }
    }
  }
  assert.equal((await world.tamq(["ping"])).code, 3);
  assert.deepEqual(names(world).filter((name) => name.startsWith("orwell")), []);
});

Deno.test("[C-06] --orwell warns loudly, writes bodies and tokens to a 0600 file of its own, for one run, and doctor asks to delete it", async () => {
  await using coord = await CoordWorld.create(["alpha"], LAB);
  const { world } = coord;
  const state = `${world.dir}/state/tamq`;
  const sink = `${state}/orwell.log`;
  await Deno.mkdir(state, { mode: 0o700 });
  await Deno.writeTextFile(sink, "", { mode: 0o644 }); // left open by somebody
  const started = await world.tamq(["serve", "--detach", "--orwell"], { env: inLab });
  assert.equal(started.code, 0, started.stderr);
  assert.match(started.stderr, /WARNING: --orwell: MESSAGE BODIES AND CREDENTIALS .* IN CLEAR/);
  assert.ok(started.stderr.includes(`rm ${sink}*`), started.stderr);
  assert.equal(Deno.lstatSync(sink).mode! & 0o777, 0o600);
  await world.open("cat", "alpha");
  await world.mustTamq(["send", "To:alpha: BODY-SEEN", "--key", "KEY-SEEN"]);
  await world.untilHistory(1);
  const seen = await Deno.readTextFile(sink);
  for (const canary of ["BODY-SEEN", "KEY-SEEN", '"lease_token"', '"frame.sent"']) {
    assert.ok(seen.includes(canary), canary);
  }
  const log = await Deno.readTextFile(`${state}/tamq.log`);
  assert.match(log, /orwell\.active/);
  assert.doesNotMatch(log + await world.mustTamq(["logs"]), /BODY-SEEN|KEY-SEEN/);

  const doctor = JSON.parse((await world.tamq(["doctor", "--json"])).stdout) as {
    findings: { check: string; level: string; remedy: string }[];
  };
  const finding = doctor.findings.find(({ check }) => check === "orwell");
  assert.deepEqual([finding?.level, finding?.remedy], ["warning", `delete it: rm ${sink}*`]);

  // One that runs is not turned; one that starts anew has forgotten it.
  await world.mustTamq(["stop"]);
  await world.mustTamq(["serve", "--detach"], { env: inLab });
  const late = await world.tamq(["serve", "--detach", "--orwell"], { env: inLab });
  assert.equal(late.code, 1);
  assert.match(late.stderr, /it runs already, without --orwell\nhint: end it first: tamq stop/);
  await world.mustTamq(["send", "To:alpha: BODY-UNSEEN"]);
  assert.doesNotMatch(await Deno.readTextFile(sink), /BODY-UNSEEN/);
  await world.mustTamq(["stop"]);

  await Deno.remove(sink);
  await Deno.symlink(`${world.dir}/elsewhere`, sink);
  const linked = await world.tamq(["serve", "--orwell"], { env: inLab });
  assert.equal(linked.code, 1);
  assert.match(linked.stderr, /is a symbolic link/);
});

Deno.test("[C-06][K-14][K-21] engine and hub write prompts and requests to sinks of their own; nothing of that is projected to the hub", async () => {
  await using coord = await CoordWorld.create(["alpha"], `policy_profile = "lab"\n${LAB}`);
  const { world } = coord;
  await coord.hub("serve", "--detach", "--orwell");
  await world.mustTamq(["serve", "--detach"]);
  await coord.coord("serve", "--detach", "--orwell");
  await coord.worker("alpha");
  // Hub and engine know this profile, which allows next to nothing: the wake itself is what counts.
  await coord.task("one", "alpha", "--description", "TASK-SEEN");
  const sinks = ["coord/orwell.log", "hub/orwell.log"].map((name) =>
    `${world.dir}/state/tamq/${name}`
  );
  await coord.until("the task in both sinks", async () => {
    const texts = await Promise.all(sinks.map((sink) => Deno.readTextFile(sink)));
    return texts.every((text) => text.includes("TASK-SEEN"));
  });
  await coord.until("receipts at the hub", async () => {
    const [status] = await coord.rows("coord", "status");
    return (status!.projection as { waiting: number }).waiting === 0;
  });
  const hub = await Deno.readTextFile(sinks[1]!);
  const receipts = hub.split("\n").filter((line) => line.includes("/receipts"));
  assert.ok(receipts.length > 0, "the hub was told receipts");
  for (const line of receipts) assert.doesNotMatch(line, /TASK-SEEN|orwell/i);
});
