import assert from "node:assert/strict";
import { identify } from "../../../lib/base/proc.ts";
import { systemRandom } from "../../../lib/base/random.ts";
import { tryServiceLock } from "../../../lib/ipc/lock.ts";
import { findHub, hubSettings } from "../../../lib/hub/settings.ts";
import { ensureToken, readToken } from "../../../lib/hub/token.ts";
import { settingsIn } from "../../helpers/service.ts";
import { withTempDir } from "../../helpers/temp.ts";

Deno.test("[C-02][K-19] the hub's paths stand beside the service's; the socket may be named", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const hub = hubSettings(
      settings,
      (name) => name === "XDG_RUNTIME_DIR" ? `${dir}/run` : undefined,
    );
    assert.equal(hub.database, `${dir}/state/tamq/hub/hub.sqlite3`);
    assert.equal(hub.socket, `${dir}/run/tamq-hub.sock`);
    assert.equal(hubSettings(settings, () => undefined).socket, "/tmp/tamq-hub.sock");
    const named = (path: string) =>
      hubSettings(settings, (name) => name === "TAMQ_HUB_SOCKET" ? path : undefined).socket;
    assert.equal(named("/x/h.sock"), "/x/h.sock");
    assert.throws(() => named("h.sock"), { reason: "path_relative" });
  });
});

Deno.test("[K-19] a live embedded hub is used when no base is set, a base when one is, else the default", async () => {
  await withTempDir(async (dir) => {
    const none = await settingsIn(dir);
    const set = await settingsIn(dir, { STATEHUB_API_BASE: "http://hub.example:9000/api" });
    const hub = hubSettings(none, () => `${dir}/run`);
    assert.deepEqual(findHub(none, hub), { base: "http://127.0.0.1:8000" });
    assert.deepEqual(findHub(set, hub), { base: "http://hub.example:9000/api" });
    Deno.mkdirSync(hub.stateDir, { recursive: true });
    const lock = (await tryServiceLock(hub.stateDir))!;
    lock.publish({
      pid: Deno.pid,
      start: identify(Deno.pid)!.start,
      socket: "/live/hub.sock",
      service_id: "s",
      version: "0",
    });
    assert.deepEqual(findHub(none, hub), { unix: "/live/hub.sock" });
    assert.deepEqual(findHub(set, hub), { base: "http://hub.example:9000/api" });
    lock.release();
    // Where a token of ours lies, whatever listens on loopback has to prove itself.
    ensureToken(hub.tokenFile, systemRandom);
    const tokenFile = hub.tokenFile;
    assert.deepEqual(findHub(none, hub), { base: "http://127.0.0.1:8000", tokenFile });
    assert.deepEqual(findHub(set, hub), { base: "http://hub.example:9000/api" });
    const unix = await settingsIn(dir, { STATEHUB_API_BASE: "unix:/a%20b/hub.sock" });
    assert.deepEqual(findHub(unix, hub), { unix: "/a b/hub.sock" });
    const wrong = await settingsIn(dir, { STATEHUB_API_BASE: "ftp://x" });
    assert.throws(() => findHub(wrong, hub), { reason: "hub_address_invalid" });
  });
});

Deno.test("[K-16][K-19] the token is made once, with 256 bits, and read from an owner's file only", async () => {
  await withTempDir((dir) => {
    const path = `${dir}/token`;
    const token = ensureToken(path, systemRandom);
    assert.match(token, /^[0-9a-f]{64}$/);
    assert.equal(ensureToken(path, systemRandom), token);
    assert.equal(Deno.lstatSync(path).mode! & 0o777, 0o600);
    Deno.chmodSync(path, 0o640);
    assert.throws(() => readToken(path), { reason: "token_unreadable" });
    assert.throws(() => readToken(dir), { reason: "token_unreadable" });
    assert.throws(() => readToken(`${dir}/none`), { reason: "token_unreadable" });
  });
});
