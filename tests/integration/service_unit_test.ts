/** `tamq service` with a systemctl of the test's own; the user's systemd is never asked. */
import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

const UNIT = "systemd/user/tamq.service";

/** A systemctl that notes what it is asked; `active` decides what it says about the unit. */
async function fakeSystemctl(world: World): Promise<() => Promise<string[]>> {
  await Deno.mkdir(`${world.dir}/bin`);
  const log = `${world.dir}/systemctl.log`;
  await Deno.writeTextFile(
    `${world.dir}/bin/systemctl`,
    `#!/bin/sh
[ "$1" = --user ] || exit 9
shift
case $1 in
  show-environment) exit 0 ;;
  is-active) [ -e '${world.dir}/active' ] ;;
  is-enabled) [ -e '${world.dir}/enabled' ] ;;
  enable) echo "$*" >> '${log}'; touch '${world.dir}/enabled' ;;
  start) echo "$*" >> '${log}'; touch '${world.dir}/active' ;;
  disable) echo "$*" >> '${log}'; rm -f '${world.dir}/active' '${world.dir}/enabled' ;;
  *) echo "$*" >> '${log}' ;;
esac
`,
    { mode: 0o755 },
  );
  world.env.PATH = `${world.dir}/bin:${world.env.PATH}`;
  return async () => {
    const text = await Deno.readTextFile(log).catch(() => "");
    await Deno.remove(log).catch(() => {});
    return text.split("\n").filter((line) => line !== "");
  };
}

Deno.test("[L-01, C-02] tamq service: install writes, enables and starts once; status; uninstall", async () => {
  await using world = await World.create();
  const calls = await fakeSystemctl(world);
  const path = `${world.env.XDG_CONFIG_HOME}/${UNIT}`;
  const status = async () => {
    const { code, stdout } = await world.tamq(["service", "status", "--json"]);
    const { state, enabled, active } = JSON.parse(stdout);
    return [code, state, enabled, active];
  };
  assert.deepEqual(await status(), [1, "absent", false, false]);

  const shown = await world.mustTamq(["service", "install", "--print"]);
  assert.deepEqual([...Deno.readDirSync(world.env.XDG_CONFIG_HOME!)], []);
  assert.match(await world.mustTamq(["service", "install"]), /^written: .*\n.*login.*\n.*started/);
  assert.equal(await Deno.readTextFile(path), shown);
  assert.match(shown, /^ExecStart=\S+deno run -A .*main\.ts serve$/m);
  assert.match(shown, new RegExp(`^Environment=XDG_STATE_HOME=${world.env.XDG_STATE_HOME}$`, "m"));
  assert.deepEqual(await calls(), ["daemon-reload", "enable tamq.service", "start tamq.service"]);
  assert.deepEqual(await status(), [0, "current", true, true]);

  // Again: nothing changes. With another setting: rewritten, the running one is left alone.
  await world.mustTamq(["service", "install"]);
  assert.deepEqual(await calls(), ["daemon-reload", "enable tamq.service"]);
  const env = { TAMQ_POLICY_PROFILE: "strict" };
  assert.match(
    await world.mustTamq(["service", "install"], { env }),
    /written:.*\n.*\n.*restart tamq/,
  );
  assert.deepEqual(await status(), [1, "outdated", true, true]);

  await calls();
  assert.match(await world.mustTamq(["service", "uninstall"]), /^removed: /);
  assert.deepEqual(await calls(), ["disable --now tamq.service", "daemon-reload"]);
  assert.deepEqual(await status(), [1, "absent", false, false]);
  assert.equal(await world.mustTamq(["service", "uninstall"]), "not installed\n");
});

Deno.test("[L-01, L-02] tamq service install beside a running service starts no second one and says how to hand over", async () => {
  await using world = await World.create();
  const calls = await fakeSystemctl(world);
  await world.mustTamq(["serve", "--detach"]);
  const said = await world.mustTamq(["service", "install"]);
  assert.match(said, /runs already[^\n]*\n {2}tamq stop && systemctl --user start tamq\n/);
  assert.deepEqual(await calls(), ["daemon-reload", "enable tamq.service"]);
});

Deno.test("[L-01] tamq service leaves a unit alone that it did not write, and works without systemd", async () => {
  await using world = await World.create();
  const path = `${world.env.XDG_CONFIG_HOME}/${UNIT}`;
  // The real systemctl, if any, finds no manager in this environment.
  const said = await world.mustTamq(["service", "install"]);
  assert.match(said, /No user manager/);
  await Deno.mkdir(`${path.replace(/[^/]*$/, "")}default.target.wants`);
  await Deno.symlink(
    "../tamq.service",
    `${path.replace(/[^/]*$/, "")}default.target.wants/tamq.service`,
  );
  await world.mustTamq(["service", "uninstall"]);
  assert.deepEqual(
    [...Deno.readDirSync(path.replace(/[^/]*$/, ""))].map((one) => one.name),
    ["default.target.wants"],
  );
  assert.deepEqual([...Deno.readDirSync(`${path.replace(/[^/]*$/, "")}default.target.wants`)], []);

  await Deno.writeTextFile(path, "[Service]\nExecStart=/bin/true\n");
  for (const action of ["install", "uninstall"]) {
    const { code, stderr } = await world.tamq(["service", action]);
    assert.equal(code, 4);
    assert.match(stderr, /was not written by tamq\nhint: /);
  }
  assert.equal(await Deno.readTextFile(path), "[Service]\nExecStart=/bin/true\n");
  assert.equal((await world.tamq(["service", "restart"])).code, 2);
});
