/** A state directory that the kernel says is on a network filesystem: the service does not start. */
import assert from "node:assert/strict";
import { environmentOf, serviceCommand, ServiceProcess, settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";
import { runProcess } from "../helpers/world.ts";

/** Covers what the process is told about its mounts; needs a mount namespace. */
const COVER = 'mount --bind "$0" /proc/$$/mountinfo && exec "$@"';
const canCover =
  (await runProcess(["unshare", "-m", "true"]).catch(() => ({ code: 1 }))).code === 0;

Deno.test({
  name:
    "[Q-01, L-02] the service refuses a network filesystem under its state, unless the configuration allows it",
  ignore: !canCover,
  fn: () =>
    withTempDir(async (dir) => {
      const mounts = `${dir}/mountinfo`;
      const real = Deno.realPathSync(dir);
      await Deno.writeTextFile(
        mounts,
        `28 1 259:2 / / rw - ext4 /dev/sda rw\n29 28 0:9 / ${real} rw - nfs4 far:/x rw\n`,
      );
      const prefix = ["unshare", "-m", "sh", "-c", COVER, mounts];
      const settings = await settingsIn(dir);
      const refused = await runProcess([...prefix, ...serviceCommand("detached")], {
        env: environmentOf(settings),
      });
      assert.equal(refused.code, 1);
      const { error } = JSON.parse(refused.stdout) as { error: Record<string, string> };
      assert.equal(error.reason, "state_dir_network");
      assert.match(error.message!, /nfs4 at /);
      assert.match(error.hint!, /TAMQ_STATE_DIR/);
      assert.deepEqual([...Deno.readDirSync(dir)].map((entry) => entry.name), ["mountinfo"]);

      await Deno.mkdir(`${dir}/config/tamq`, { recursive: true });
      await Deno.writeTextFile(
        `${dir}/config/tamq/config.toml`,
        "allow_network_state_dir = true\n",
      );
      await using service = await ServiceProcess.start(await settingsIn(dir), { prefix });
      assert.ok(service.log.some((line) => line.event === "service.ready"));
    }),
});
