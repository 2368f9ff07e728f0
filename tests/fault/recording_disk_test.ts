import assert from "node:assert/strict";
import { needs } from "../helpers/fault_tools.ts";
import { withTempDir } from "../helpers/temp.ts";
import { runProcess } from "../helpers/world.ts";

const ENTRY = new URL("../helpers/recording_disk_entry.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

Deno.test({
  name: "[B-15] a disk that fills up ends the recording with a notice; the worker notices nothing",
  ignore: !await needs("mounts"),
  fn: () =>
    withTempDir(async (dir) => {
      const flags = ["run", "-A", "--no-check", "--frozen", "--config", CONFIG];
      const { stdout, stderr } = await runProcess(
        ["unshare", "-m", Deno.execPath(), ...flags, ENTRY, dir],
      );
      assert.match(stdout, /^\{/, stderr);
      assert.deepEqual(JSON.parse(stdout), {
        status: 7,
        whole: true,
        begins: true,
        cut: true,
        told: true,
      });
    }),
});
