/**
 * Engine and message service are killed at random moments while work flows through both: at the end
 * no ready task is forgotten, no lease has two messages, none is shown twice, no gate was passed.
 */
import assert from "node:assert/strict";
import { pause, systemClock } from "../../lib/base/clock.ts";
import { call } from "../../lib/client.ts";
import { callEngine } from "../../lib/coord/client.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { EngineProcess } from "../helpers/engine.ts";
import { HubProcess } from "../helpers/hub.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { ServiceProcess, settingsIn, textLines } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const KILLS = faultCount("COORD_KILLS", 30);
const REPOS = JSON.stringify({ alpha: "/repos/alpha" });
const CONFIG = `[coordination]
statehub_poll_interval_seconds = 1
wake_ack_timeout_seconds = 4
lease_renew_interval_seconds = 1
lease_seconds = 6
retry_backoff_seconds = [0.05]
max_attempts = 9
`;

Deno.test(`[K-06][K-08][T-19][T-21] ${KILLS} kills of engine and service while tasks flow: one message a lease, none shown twice, no ready task forgotten, no gated one woken`, async () => {
  await withTempDir(async (dir) => {
    Deno.mkdirSync(`${dir}/run`, { mode: 0o700 });
    Deno.mkdirSync(`${dir}/config/tamq`, { recursive: true });
    Deno.writeTextFileSync(`${dir}/config/tamq/config.toml`, CONFIG);
    const settings = await settingsIn(dir);
    const random = new Seeded();
    await using hubProcess = await HubProcess.start(dir);
    using hub = new StateHubClient({ address: { unix: hubProcess.hub.socket } });
    const env = {
      TEST_REPOS: REPOS,
      STATEHUB_API_BASE: `unix:${hubProcess.hub.socket}`,
    };
    let service = await ServiceProcess.start(settings, { env });
    let engine = await EngineProcess.start(settings, env);

    const task = (task_id: string, more: Record<string, unknown> = {}) =>
      hub.call("createTask", {
        body: { task_id, title: task_id, repo: "alpha", status: "ready", ...more },
      });
    for (let i = 0; i < 3; i++) await task(`gated${i}`, { required_actions: ["destructive"] });
    let made = 0;
    const open = new Set<string>();
    const more = async () => {
      const id = `task${made++}`;
      open.add(id);
      await task(id, made > 1 && made % 2 === 0 ? { dependencies: [`task${made - 2}`] } : {});
    };
    for (let i = 0; i < 6; i++) await more();

    const shown = new Map<string, number>();
    let lost = 0;
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-check",
        "--quiet",
        "--frozen",
        `--config=${ROOT}deno.json`,
        `${ROOT}tests/helpers/coord_window_entry.ts`,
        settings.socket,
        settings.coordSocket,
        hubProcess.hub.socket,
      ],
      stdin: "null",
      stdout: "piped",
    }).spawn();
    const worker = (async () => {
      for await (const line of textLines(child.stdout)) {
        const said = JSON.parse(line) as { shown?: string; done?: string; lost?: string };
        if (said.shown) shown.set(said.shown, (shown.get(said.shown) ?? 0) + 1);
        if (said.done) open.delete(said.done);
        if (said.lost) lost++;
      }
    })();

    for (let kill = 0; kill < KILLS; kill++) {
      await pause(systemClock, random.below(250));
      if (open.size < 6) await more();
      if (random.below(3) > 0) {
        engine.kill();
        await engine.ended();
        engine = await EngineProcess.start(settings, env);
      } else {
        service.kill();
        await service.ended();
        service = await ServiceProcess.start(settings, { env });
      }
    }
    const end = systemClock.monotonic() + 30_000;
    while (open.size > 0) {
      if (systemClock.monotonic() > end) {
        const { triggers } = await callEngine(settings.coordSocket, "triggers", {});
        const { leases } = await callEngine(settings.coordSocket, "leases", {});
        assert.fail(JSON.stringify([[...open], triggers, leases, engine.log.slice(-8)], null, 1));
      }
      await pause(systemClock, 20);
    }

    const { leases } = await callEngine(settings.coordSocket, "leases", { all: true, limit: 1000 });
    const { messages } = await call(settings.socket, "history", { limit: 1000 });
    const keys = messages.map((message) => message.idempotency_key);
    assert.equal(new Set(keys).size, keys.length, "one message a lease");
    const known = new Set((leases as { lease_id: string }[]).map((lease) => lease.lease_id));
    for (const key of keys) assert.ok(known.has(key), "every message has its lease");
    for (const [lease, times] of shown) assert.equal(times, 1, `${lease} shown ${times} times`);
    assert.ok(!messages.some((message) => message.body.includes("gated")));
    const { triggers } = await callEngine(settings.coordSocket, "triggers", { state: "gated" });
    assert.equal((triggers as unknown[]).length, 3);
    console.log(
      `    seed ${random.seed}: ${made} tasks, ${messages.length} wakes, ${lost} leases lost before their word`,
    );
    child.kill("SIGKILL");
    await child.status;
    await worker;
    service.kill("SIGTERM");
    await service.ended();
    engine.kill("SIGTERM");
    assert.equal((await engine.ended()).code, 0);
  });
});
