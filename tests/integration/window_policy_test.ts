/** Policies by repository and by command, through the command line, the service and real windows. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { configVersion } from "../../lib/config_keys.ts";
import { loadSettings } from "../../lib/config.ts";
import { World } from "../helpers/world.ts";

const CONFIG = `[commands.cat]
mode = "draft"
quiet_seconds = 0

[repositories.beta]
mode = "trigger"

[repositories.beta.delivery]
ack_mode = "acknowledged"
max_attempts = 2

[repositories.gamma.delivery]
max_attempts = 7
`;

interface Shown {
  message: { state: string; max_attempts: number };
}

Deno.test("[C-02, C-03, T-13, T-14, B-11, E-05] start says what it will run; mode and delivery follow command and repository; receipts carry the configuration's version", async () => {
  await using world = await World.create(["alpha", "beta", "gamma"]);
  await Deno.mkdir(`${world.dir}/config/tamq`, { recursive: true });
  await Deno.writeTextFile(`${world.dir}/config/tamq/config.toml`, CONFIG);

  const plan = await world.mustTamq(["start", "-c", "cat", "--dry-run", "alpha", "beta"]);
  assert.equal(
    plan,
    `will run cat in a window of a new tmux session "tamq": alpha
  mode draft: messages are typed, Enter is yours
will run cat in a window of a new tmux session "tamq": beta
  mode trigger: messages are typed and submitted
`,
  );
  assert.equal((await world.tamq(["ping"])).code, 3, "nothing was started");

  await world.open("cat", "alpha", "beta");
  const endpoints = JSON.parse(await world.mustTamq(["endpoints", "--json"])) as {
    attachments: { repo: string; mode: string }[];
  };
  const modes = Object.fromEntries(endpoints.attachments.map(({ repo, mode }) => [repo, mode]));
  assert.deepEqual(modes, { alpha: "draft", beta: "trigger" });
  const forced = await world.mustTamq(
    ["start", "-c", "cat", "--mode", "hold", "--dry-run", "alpha", "gamma"],
  );
  assert.equal(
    forced.replace(/@\d+/, "@N"),
    "alpha: already open (window @N)\n" +
      'will run cat in a window of the tmux session "tamq": gamma\n' +
      "  mode hold: messages wait for tamq release\n",
  );

  const send = async (repo: string) =>
    (await world.mustTamq(["send", `To:${repo}: to ${repo}`])).trim();
  const show = async (id: string) =>
    (JSON.parse(await world.mustTamq(["message", "--json", id])) as Shown).message;
  const [toAlpha, toBeta, toGamma] = [await send("alpha"), await send("beta"), await send("gamma")];
  await world.until(
    "both to be written",
    async () =>
      (await show(toAlpha)).state === "injected" && (await show(toBeta)).state === "awaiting_ack",
  );
  assert.deepEqual(
    [await show(toAlpha), await show(toBeta), await show(toGamma)].map((one) => one.max_attempts),
    [4, 2, 7],
  );

  const settings = await loadSettings((name) => world.env[name]);
  await world.mustTamq(["stop"]);
  const db = new DatabaseSync(settings.database, { readOnly: true });
  try {
    const receipts = db.prepare("SELECT kind, data FROM receipts").all();
    const kinds = new Set(receipts.map(({ kind }) => kind));
    for (const kind of ["start", "attach", "shutdown"]) assert.ok(kinds.has(kind), kind);
    for (const { kind, data } of receipts) {
      const { config_version } = JSON.parse(String(data)) as { config_version?: string };
      assert.equal(config_version, configVersion(settings), String(kind));
    }
  } finally {
    db.close();
  }
});
