/** Configuration of the engine: defaults, bounds, what the page says. */
import assert from "node:assert/strict";
import { loadSettings } from "../../../lib/config.ts";
import { parseConfig } from "../../../lib/config_schema.ts";
import { hubCredential } from "../../../lib/coord/credentials.ts";
import { engineSettings, findEngine } from "../../../lib/coord/settings.ts";
import { withTempDir } from "../../helpers/temp.ts";

async function settingsOf(dir: string, toml: string, env: Record<string, string> = {}) {
  const path = `${dir}/c.toml`;
  await Deno.writeTextFile(path, toml);
  const all: Record<string, string> = { HOME: dir, TAMQ_CONFIG: path, ...env };
  return await loadSettings((name) => all[name]);
}

Deno.test("[K-17][K-22][C-02] the documented defaults, and the engine's paths", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsOf(dir, "");
    assert.deepEqual({ ...settings.coordination }, {
      pollSeconds: 15,
      wakeAckSeconds: 30,
      renewSeconds: 10,
      leaseSeconds: 120,
      backoffSeconds: [5, 15, 60, 300],
      maxAttempts: 4,
      safetyGatedMaxAttempts: 0,
      approvalSeconds: 3600,
    });
    assert.equal(settings.delivery.ackMode, "injected");
    assert.equal(settings.stateHubBase, "http://127.0.0.1:8000");
    assert.equal(settings.stateHubExplicit, false);
    const engine = engineSettings(settings);
    assert.equal(engine.database, `${dir}/.local/state/tamq/coord.sqlite3`);
    assert.equal(findEngine(settings), "/tmp/tamq-coord.sock");
    const named = await settingsOf(dir, "", { TAMQ_COORD_SOCKET: "/x/e.sock" });
    assert.equal(findEngine(named), "/x/e.sock");
  });
});

Deno.test("[K-17][C-03] values are read, bounded and named when they are wrong", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsOf(
      dir,
      `[coordination]\nmax_attempts = 9\nsafety_gated_max_attempts = 9\nretry_backoff_seconds = [1]
delivery_ack_mode = "acknowledged"\n[policy]\nprofile = "mine"\n[policy.profiles.mine]
allow = ["tmux_wake"]\nrequire_human = []\n`,
    );
    assert.equal(settings.coordination.maxAttempts, 9);
    assert.equal(settings.delivery.ackMode, "acknowledged");
    assert.equal(settings.policyProfile, "mine");
    assert.deepEqual(settings.profiles.mine!.allow, ["tmux_wake"]);
  });
  for (
    const [toml, message] of [
      ["[coordination]\nmax_attempts = 10", /coordination\.max_attempts.*9/],
      ["[coordination]\nsafety_gated_max_attempts = -1", /safety_gated_max_attempts/],
      ["[coordination]\nretry_backoff_seconds = []", /retry_backoff_seconds/],
      ["[coordination]\nmax_atempts = 1", /unknown key "coordination\.max_atempts"/],
      ["[coordination]\ndelivery_ack_mode = 'maybe'", /delivery_ack_mode/],
      ["[coordination]\nlease_seconds = 5", /renew_interval_seconds is not under/],
      ["policy_profile = 'a'\n[policy]\nprofile = 'b'", /say different things/],
    ] as const
  ) {
    assert.throws(() => parseConfig(toml, "c.toml"), (error: Error) => {
      assert.match(error.message, /^c\.toml\b/);
      assert.match(error.message, message, error.message);
      return true;
    });
  }
});

Deno.test("[K-17] the configuration in docs/coordination.md is valid and shows the defaults", async () => {
  const page = await Deno.readTextFile(new URL("../../../docs/coordination.md", import.meta.url));
  const toml = /```toml\n([\s\S]*?)```/.exec(page)![1]!;
  const { coordination } = parseConfig(toml, "docs/coordination.md");
  assert.deepEqual(coordination, {
    statehub_poll_interval_seconds: 15,
    wake_ack_timeout_seconds: 30,
    lease_renew_interval_seconds: 10,
    lease_seconds: 120,
    retry_backoff_seconds: [5, 15, 60, 300],
    max_attempts: 4,
    safety_gated_max_attempts: 0,
    approval_seconds: 3600,
    delivery_ack_mode: "injected",
  });
});

Deno.test("[K-16] credentials come from the credential directory, else the command; failures say nothing of them", async () => {
  await withTempDir(async (dir) => {
    const none = hubCredential({}, () => undefined);
    assert.equal(none, undefined);
    const command = (...argv: string[]) =>
      hubCredential({ stateHubCredential: argv }, () => undefined)!;
    assert.equal(await command("printf", "tok-1\\nmore\\n")(), "tok-1");
    await assert.rejects(command("false")(), { reason: "credential_unavailable" });
    await assert.rejects(command("/nonexistent/x")(), { reason: "credential_unavailable" });
    await assert.rejects(command("printf", "two words")(), (error: Error) => {
      assert.doesNotMatch(error.message, /two words/);
      return true;
    });
    Deno.writeTextFileSync(`${dir}/statehub-token`, "tok-2\n");
    const both = hubCredential({ stateHubCredential: ["false"] }, () => dir)!;
    assert.equal(await both(), "tok-2");
  });
});
