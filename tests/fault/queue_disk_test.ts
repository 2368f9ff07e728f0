import assert from "node:assert/strict";
import { withTempDir } from "../helpers/temp.ts";

const ENTRY = new URL("../helpers/queue_disk_entry.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

/** Mounting needs a namespace of one's own, which not every machine grants. */
const canMount = await (async () => {
  try {
    const probe = new Deno.Command("unshare", {
      args: ["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
      stdout: "null",
      stderr: "null",
    });
    return (await probe.output()).success;
  } catch {
    return false;
  }
})();

async function inNamespace(what: string, dir: string): Promise<Record<string, unknown>> {
  const flags = ["run", "-A", "--no-check", "--frozen", "--config", CONFIG];
  const { stdout, stderr } = await new Deno.Command("unshare", {
    args: ["-m", Deno.execPath(), ...flags, ENTRY, what, dir],
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert.match(text, /^\{/, new TextDecoder().decode(stderr));
  return JSON.parse(text);
}

Deno.test({
  name:
    "[Q-03] a full disk refuses sends, keeps what was answered, and needs no restart to recover",
  ignore: !canMount,
  fn: () =>
    withTempDir(async (dir) => {
      const { answered, stored, ...rest } = await inNamespace("full", dir);
      assert.deepEqual(rest, {
        refused: "RESOURCE_EXHAUSTED store_full",
        kept: true,
        read: 1,
        after: "ok",
        check: "ok",
      });
      assert.equal(stored, answered);
      assert.ok(Number(answered) > 50);
    }),
});

Deno.test({
  name: "[Q-04] a read-only state directory: history is still read, a service says what is wrong",
  ignore: !canMount,
  fn: () =>
    withTempDir(async (dir) => {
      assert.deepEqual(await inNamespace("read-only", dir), {
        open: "UNAVAILABLE store_read_only",
        read: 1,
        fresh: "UNAVAILABLE store_unreadable",
      });
    }),
});
