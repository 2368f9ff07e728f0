/** `tamq doctor` against set-ups that are broken one way at a time. */
import assert from "node:assert/strict";
import { openDatabase } from "../../lib/sqlite/open.ts";
import { World } from "../helpers/world.ts";

interface Finding {
  check: string;
  level: "ok" | "hint" | "warning" | "problem";
  detail: string;
  remedy: string | null;
}

async function doctor(world: World, env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await world.tamq(["doctor", "--json"], { env });
  assert.equal(stderr, "");
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  assert.equal(code, ok ? 0 : 1);
  assert.equal(ok, findings.every((finding) => finding.level !== "problem"));
  for (const { level, remedy } of findings) assert.equal(remedy === null, level === "ok");
  const wrong = findings.filter(({ level }) => level === "problem" || level === "warning");
  return { code, findings, wrong };
}

Deno.test("[L-06, C-01] a sound set-up: every part is looked at, nothing is wrong, nothing is changed", async () => {
  await using world = await World.create(["alpha"]);
  const before = await doctor(world);
  assert.deepEqual(before.wrong.map((finding) => finding.check), ["service"]);
  assert.match(before.wrong[0]!.remedy!, /tamq serve --detach/);
  assert.deepEqual([...Deno.readDirSync(`${world.dir}/state`)], []);

  await world.mustTamq(["serve", "--detach"]);
  await Deno.writeTextFile(`${world.dir}/home/.bashrc`, 'eval "$(tamq completion bash)"\n');
  const { findings, wrong } = await doctor(world);
  assert.deepEqual(wrong, []);
  const checks = [
    "configuration",
    "tmux",
    "gita",
    "registry",
    "filesystem",
    "state directory",
    "socket",
    "service",
    "database",
    "clock",
    "spool",
    "engine",
    "state hub",
    "completion",
  ];
  assert.deepEqual(findings.map((finding) => finding.check), checks);
  const people = await world.tamq(["doctor"]);
  assert.equal(people.code, 0);
  assert.match(people.stdout, /^ok +database +.*sound, schema \d+$/m);
});

Deno.test("[L-06, C-07] each thing that is wrong is found, with a remedy, and hides no other", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const state = `${world.dir}/state/tamq`;
  const problems = async (env: Record<string, string> = {}) =>
    (await doctor(world, env)).findings.filter(({ level }) => level === "problem")
      .map(({ check, detail, remedy }) => `${check}: ${detail} | ${remedy}`);
  const only = async (pattern: RegExp, env: Record<string, string> = {}) => {
    const found = await problems(env);
    assert.equal(found.length, 1, found.join("\n"));
    assert.match(found[0]!, pattern);
  };
  await world.mustTamq(["serve", "--detach"]);

  Deno.chmodSync(state, 0o755);
  await only(/^state directory: others may read: .*tamq \| chmod/);
  Deno.chmodSync(state, 0o700);
  Deno.chmodSync(`${state}/tamq.log`, 0o644);
  await only(/others may read: tamq\.log/);
  Deno.chmodSync(`${state}/tamq.log`, 0o600);

  await Deno.mkdir(`${world.dir}/config/tamq`, { recursive: true });
  const config = `${world.dir}/config/tamq/config.toml`;
  await Deno.writeTextFile(config, "burst = 3\n");
  await only(/^configuration: .*unknown key "burst"/);
  await Deno.writeTextFile(config, 'policy_profile = "brave"\n');
  await only(/^configuration: .*"brave" \| choose one of default/);
  await Deno.remove(config);

  await Deno.mkdir(`${world.dir}/old`);
  await Deno.writeTextFile(`${world.dir}/old/tmux`, "#!/bin/sh\necho tmux 3.0\n", { mode: 0o755 });
  await only(/^tmux: tmux 3\.0 is too old.*install a newer/, {
    PATH: `${world.dir}/old:${world.env.PATH}`,
  });
  const csv = `${world.dir}/config/gita/repos.csv`;
  const sound = await Deno.readTextFile(csv);
  await Deno.writeTextFile(csv, `${sound}${world.repo("beta")},alpha,,\r\n`);
  await only(/^registry: names that stand twice: alpha \| gita rename/);
  await Deno.writeTextFile(csv, sound);
  // The service is asked at that path as well, and says the same.
  const long = await problems({ TAMQ_SOCKET: `/tmp/${"x".repeat(110)}` });
  assert.match(long.join("\n"), /^socket: .*107/m);

  await Deno.remove(`${world.dir}/run/tamq.sock`);
  await only(/^service: process \d+ holds .*its socket file is gone \| .*tamq stop; tamq serve/);
  await world.mustTamq(["stop"]);
  await Deno.writeTextFile(`${world.dir}/run/tamq.sock`, "not a socket");
  const blocked = await problems();
  assert.ok(blocked.some((one) => /^socket: .* is no socket \| move it/.test(one)), `${blocked}`);
  await Deno.remove(`${world.dir}/run/tamq.sock`);

  const db = openDatabase(`${state}/tamq.sqlite3`, { busyTimeoutMs: 1000 });
  db.prepare("UPDATE receipts SET at = at + 86400000000").run();
  db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  db.close();
  const { wrong } = await doctor(world);
  assert.ok(wrong.some(({ check, level }) => check === "clock" && level === "warning"));
  await Deno.mkdir(`${state}/spool`, { recursive: true, mode: 0o700 });
  await Deno.writeTextFile(`${state}/spool/x.spool`, "", { mode: 0o600 });
  const left = (await doctor(world)).wrong.find(({ check }) => check === "spool");
  assert.match(`${left?.detail} ${left?.remedy}`, /1 not sent yet .*tamq serve/);

  // The middle of the file is where tables are.
  const file = await Deno.open(`${state}/tamq.sqlite3`, { read: true, write: true });
  await file.seek(4096, Deno.SeekMode.Start);
  await file.write(new Uint8Array(64 * 1024).fill(0x5a));
  file.close();
  const damaged = await problems();
  assert.ok(
    damaged.some((one) => /^database: .*(damaged|malformed|corrupt)/i.test(one)),
    `${damaged}`,
  );
});

Deno.test("[L-06][K-21] engine and hub, where they are used: well, without each other, killed, with a damaged file", async () => {
  await using world = await World.create(["alpha"]);
  await world.mustTamq(["serve", "--detach"]);
  const of = async (check: string) =>
    (await doctor(world)).findings.filter((one) => one.check === check);
  const status = async () => JSON.parse(await world.mustTamq(["status", "--json"]));
  assert.deepEqual((await of("engine")).map(({ detail }) => detail), ["not running"]);
  assert.equal((await status()).coordination_engine.running, false);
  await world.mustTamq(["hub", "serve", "--detach"]);
  await world.mustTamq(["coord", "serve", "--detach"]);
  try {
    await world.until("both to be well", async () => {
      const { coordination_engine, embedded_hub } = await status();
      return coordination_engine.ok && coordination_engine.running && embedded_hub.running;
    });
    assert.match((await of("engine"))[0]!.detail, /0 leases held, 0 triggers gated/);
    assert.match((await of("state hub"))[0]!.detail, /tamq-hub\.sock, version/);
    assert.equal((await of("state hub: database"))[0]!.level, "ok");
    assert.match(await world.mustTamq(["status"]), /^engine +ok +process \d+, 0 leases held/m);

    await world.mustTamq(["hub", "stop"]);
    await world.until("the engine to miss the hub", async () => {
      const { coordination_engine } = await status();
      return /not well: state_hub/.test(coordination_engine.detail);
    });
    assert.equal((await world.tamq(["status"])).code, 0, "messages do not need it");
    assert.equal((await of("engine: state_hub"))[0]!.level, "warning");
    const { coordination_engine } = await status();
    Deno.kill(Number(/process (\d+)/.exec(coordination_engine.detail)![1]), "SIGKILL");
    await world.until(
      "the engine to be gone",
      async () => !(await status()).coordination_engine.running,
    );
    assert.match((await of("engine"))[0]!.detail, /ended without a shutdown/);
  } finally {
    await world.tamq(["coord", "stop"]);
    await world.tamq(["hub", "stop"]);
  }
  const database = `${world.dir}/state/tamq/coord.sqlite3`;
  for (const suffix of ["-wal", "-shm"]) await Deno.remove(database + suffix).catch(() => {});
  await Deno.writeTextFile(
    database,
    "no database at all, but as long as a header of one".repeat(40),
  );
  assert.equal((await of("engine: database"))[0]!.level, "problem");
});
