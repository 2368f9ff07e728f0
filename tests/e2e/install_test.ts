/** `deno install --global` from a checkout, as README says it (V-05). */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { World } from "../helpers/world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

Deno.test("[V-05] the install step of README gives a tamq that opens windows and starts its service", async () => {
  const readme = await Deno.readTextFile(`${ROOT}README.md`);
  const step = /^ {4}deno (install --global .*)$/m.exec(readme);
  assert.ok(step, "README has an install step");

  await using world = await World.create(["alpha"]);
  const deno = Deno.env.get("TAMQ_TEST_DENO") ?? Deno.execPath();
  const bin = `${world.dir}/bin`;
  await Deno.mkdir(bin);
  await Deno.symlink(deno, `${bin}/deno`); // what the installed command looks for in PATH
  const env = { DENO_INSTALL_ROOT: world.dir, PATH: `${bin}:${world.env.PATH}` };
  const lock = await Deno.readTextFile(`${ROOT}deno.lock`);
  await world.must([deno, ...step[1]!.split(" ")], { env, cwd: ROOT });
  assert.equal(await Deno.readTextFile(`${ROOT}deno.lock`), lock, "the checkout stays as it was");

  world.executable = `${bin}/tamq`;
  world.env.PATH = env.PATH;
  assert.equal(await world.mustTamq(["--version"], { cwd: "/" }), `tamq ${manifest.version}\n`);
  await world.open("cat", "alpha");
  await world.mustTamq(["send", "To:alpha: installed"], { cwd: world.repo("alpha") });
  await world.untilScreen("alpha", "From:local/o: installed");
  const { pid } = JSON.parse(await world.mustTamq(["ping", "--json"])) as { pid: number };
  const argv = (await Deno.readTextFile(`/proc/${pid}/cmdline`)).split("\0");
  assert.ok(argv.includes(`${ROOT}main.ts`), argv.join(" "));
  // Completion asks the installed command as well.
  assert.match(await world.mustTamq(["__complete", "send", "--to", ""]), /^alpha\t/m);
});

Deno.test("[V-05] docs/install.md and README name the same install step, and tasks and scripts that exist", async () => {
  const page = await Deno.readTextFile(`${ROOT}docs/install.md`);
  const step = /^ {4}deno install --global .*$/m;
  assert.equal(step.exec(page)?.[0], step.exec(await Deno.readTextFile(`${ROOT}README.md`))?.[0]);
  for (const [, task] of page.matchAll(/deno task (\w+)/g)) {
    assert.ok(task! in manifest.tasks, `no task ${task}`);
  }
  for (const [, path] of page.matchAll(/(scripts\/\w+\.ts)/g)) await Deno.stat(ROOT + path!);
});
