/** The disk under a running service is full, or its directory can no longer be written. */
import assert from "node:assert/strict";
import { entryCommand, needs, run } from "../helpers/fault_tools.ts";
import { withTempDir } from "../helpers/temp.ts";

const canMount = await needs("mounts");

async function inNamespace(what: string): Promise<Record<string, unknown>> {
  return await withTempDir(async (dir) => {
    const entry = entryCommand("service_disk_entry.ts", what, dir);
    const { out, err } = await run(["unshare", "-m", ...entry]);
    assert.match(out, /^\{/, err);
    return JSON.parse(out);
  });
}

Deno.test({
  name:
    "[Q-03] [L-06] a service on a full disk refuses sends, serves reads, and goes on once there is room",
  ignore: !canMount,
  fn: async () =>
    assert.deepEqual(await inNamespace("full"), {
      refused: "RESOURCE_EXHAUSTED store_full",
      again: "RESOURCE_EXHAUSTED store_full",
      reads: 5,
      status: true,
      after: "ok",
      complete: true,
      delivered: true,
    }),
});

Deno.test({
  name:
    "[Q-03] [E-06] a state directory turned read-only ends no service, and loses nothing over a kill",
  ignore: !canMount,
  fn: async () =>
    assert.deepEqual(await inNamespace("read-only"), {
      before: "ok",
      during: "ok",
      alive: true,
      start: "refused",
      after: "ok",
      complete: true,
    }),
});
