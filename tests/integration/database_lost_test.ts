/** A database that somebody removes while the service runs: told, not gone on with. */
import assert from "node:assert/strict";
import type { TamqError } from "../../lib/base/errors.ts";
import { call } from "../../lib/client.ts";
import { ServiceProcess, settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[L-04] [L-06] with its database removed the service confirms nothing more, says so, and stops in order; put back, it goes on", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const env = { TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) };
    await using service = await ServiceProcess.start(settings, { env });
    const send = (key: string) =>
      call(settings.socket, "send", {
        client_id: "test",
        idempotency_key: key,
        sender_repo: "local",
        target_repo: "beta",
        provenance: "cli",
        body: key,
      }).then((answer) => answer.state, (error: TamqError) => error.reason);
    assert.equal(await send("before"), "pending");
    Deno.renameSync(settings.database, `${settings.database}.away`);
    assert.equal(await send("lost"), "store_lost");
    const { sqlite } = await call(settings.socket, "status", {});
    assert.equal(sqlite.ok, false);
    assert.match(sqlite.detail, /removed or replaced/);
    Deno.renameSync(`${settings.database}.away`, settings.database);
    assert.equal(await send("lost"), "pending");
    assert.equal((await call(settings.socket, "status", {})).sqlite.ok, true);

    Deno.removeSync(settings.database);
    assert.equal(await send("after"), "store_lost");
    service.kill("SIGTERM");
    assert.equal((await service.ended()).code, 0);
  });
});
