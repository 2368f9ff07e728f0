/**
 * State Hub, message service, engine and one worker as processes of their own, with what must hold at
 * the end of every fault: one message a lease, none shown twice, no ready task forgotten, no gated
 * one woken.
 */
import assert from "node:assert/strict";
import { pause, systemClock } from "../../lib/base/clock.ts";
import { call } from "../../lib/client.ts";
import type { Settings } from "../../lib/config.ts";
import { callEngine } from "../../lib/coord/client.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { EngineProcess } from "./engine.ts";
import { HubProcess } from "./hub.ts";
import { ServiceProcess, settingsIn, textLines } from "./service.ts";
import { withTempDir } from "./temp.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const REPOS = JSON.stringify({ alpha: "/repos/alpha" });

/** Short, so that a test sees every clock run out. */
export const FAST = `[coordination]
statehub_poll_interval_seconds = 1
wake_ack_timeout_seconds = 4
lease_renew_interval_seconds = 1
lease_seconds = 6
retry_backoff_seconds = [0.05]
max_attempts = 9
`;

export interface CoordOptions {
  /** Where the engine looks for the hub and for the service, when not at the real ones. */
  readonly hubSocket?: string;
  readonly serviceSocket?: string;
  /** The configuration file; {@link FAST} unless given. */
  readonly config?: string;
}

export class CoordProcesses {
  hubProcess!: HubProcess;
  service!: ServiceProcess;
  engine!: EngineProcess;
  hub!: StateHubClient;
  /** Tasks that are to be done in the end. */
  readonly open = new Set<string>();
  /** How often each lease's wake was shown to the worker. */
  readonly shown = new Map<string, number>();
  made = 0;
  lost = 0;
  #gated = 0;
  #worker!: Deno.ChildProcess;
  #reading!: Promise<void>;

  private constructor(
    readonly dir: string,
    readonly settings: Settings,
    readonly options: CoordOptions,
  ) {}

  /** Everything is started in `dir`, worked with by `body`, checked, and ended. */
  static async run(
    body: (world: CoordProcesses) => Promise<void>,
    options: (dir: string) => CoordOptions = () => ({}),
  ): Promise<void> {
    await withTempDir(async (dir) => {
      Deno.mkdirSync(`${dir}/run`, { mode: 0o700 });
      Deno.mkdirSync(`${dir}/config/tamq`, { recursive: true });
      const chosen = options(dir);
      Deno.writeTextFileSync(`${dir}/config/tamq/config.toml`, chosen.config ?? FAST);
      const world = new CoordProcesses(dir, await settingsIn(dir), chosen);
      try {
        await world.#start();
        await body(world);
        await world.audit();
        world.engine.kill("SIGTERM");
        assert.equal((await world.engine.ended()).code, 0);
      } finally {
        await world.#end();
      }
    });
  }

  async #start(): Promise<void> {
    const { settings, dir } = this;
    this.hubProcess = await HubProcess.start(dir);
    this.hub = new StateHubClient({ address: { unix: this.hubProcess.hub.socket } });
    await this.startService();
    await this.startEngine();
    const flags = ["-A", "--no-check", "--quiet", "--frozen", `--config=${ROOT}deno.json`];
    const entry = `${ROOT}tests/helpers/coord_window_entry.ts`;
    const sockets = [settings.socket, settings.coordSocket, this.hubProcess.hub.socket];
    this.#worker = new Deno.Command(Deno.execPath(), {
      args: ["run", ...flags, entry, ...sockets],
      stdin: "null",
      stdout: "piped",
    }).spawn();
    this.#reading = this.#read();
  }

  async #read(): Promise<void> {
    for await (const line of textLines(this.#worker.stdout)) {
      const said = JSON.parse(line) as { shown?: string; done?: string; lost?: string };
      if (said.shown) this.shown.set(said.shown, (this.shown.get(said.shown) ?? 0) + 1);
      if (said.done) this.open.delete(said.done);
      if (said.lost) this.lost++;
    }
  }

  async startHub(): Promise<void> {
    this.hubProcess = await HubProcess.start(this.dir);
  }

  async startService(): Promise<void> {
    this.service = await ServiceProcess.start(this.settings, { env: { TEST_REPOS: REPOS } });
  }

  /** `direct`: at the real sockets, whatever the options say. */
  async startEngine(direct = false): Promise<void> {
    const { hubSocket, serviceSocket } = direct ? {} as CoordOptions : this.options;
    this.engine = await EngineProcess.start(this.settings, {
      TEST_REPOS: REPOS,
      STATEHUB_API_BASE: `unix:${hubSocket ?? this.hubProcess.hub.socket}`,
      ...(serviceSocket !== undefined && { TAMQ_SOCKET: serviceSocket }),
    });
  }

  async kill(which: "engine" | "service" | "hub"): Promise<void> {
    const process = which === "hub" ? this.hubProcess : this[which];
    process.kill();
    await process.ended();
    if (which === "hub") await this.startHub();
    else if (which === "service") await this.startService();
    else await this.startEngine();
  }

  async task(task_id: string, more: Record<string, unknown> = {}): Promise<void> {
    await this.hub.call("createTask", {
      body: { task_id, title: task_id, repo: "alpha", status: "ready", ...more },
    });
  }

  /** Tasks that nobody may be woken for. */
  async gated(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await this.task(`gated${this.#gated++}`, { required_actions: ["destructive"] });
    }
  }

  /** One more task; every second one waits for the one before. */
  async more(): Promise<string> {
    const id = `task${this.made++}`;
    this.open.add(id);
    await this.task(id, this.made % 2 === 0 ? { dependencies: [`task${this.made - 2}`] } : {});
    return id;
  }

  /** Waits until every task is done. */
  async settle(ms = 30_000): Promise<void> {
    const end = systemClock.monotonic() + ms;
    while (this.open.size > 0) {
      if (systemClock.monotonic() > end) {
        const { triggers } = await callEngine(this.settings.coordSocket, "triggers", {});
        const { leases } = await callEngine(this.settings.coordSocket, "leases", {});
        const log = this.engine.log.slice(-12);
        assert.fail(JSON.stringify([[...this.open], triggers, leases, log], null, 1));
      }
      await pause(systemClock, 20);
    }
  }

  /** What must hold at the end. */
  async audit(): Promise<{ wakes: number }> {
    await this.settle();
    const { coordSocket, socket } = this.settings;
    const { leases } = await callEngine(coordSocket, "leases", { all: true, limit: 1000 });
    const { messages } = await call(socket, "history", { limit: 1000 });
    const keys = messages.map((message) => message.idempotency_key);
    assert.equal(new Set(keys).size, keys.length, "one message a lease");
    const known = new Set((leases as { lease_id: string }[]).map((lease) => lease.lease_id));
    for (const key of keys) assert.ok(known.has(key), "every message has its lease");
    for (const [lease, times] of this.shown) {
      assert.equal(times, 1, `${lease} shown ${times} times`);
    }
    assert.ok(!messages.some((message) => message.body.includes("gated")), "no gated one");
    const { triggers } = await callEngine(coordSocket, "triggers", { state: "gated" });
    const stopped = triggers as { source_id: string }[];
    const gated = stopped.filter(({ source_id }) => source_id.startsWith("gated"));
    assert.equal(gated.length, this.#gated);
    return { wakes: messages.length };
  }

  async #end(): Promise<void> {
    this.hub?.close();
    try {
      this.#worker?.kill("SIGKILL");
    } catch {
      // ended already
    }
    await this.#worker?.status;
    await this.#reading;
    await this.engine?.[Symbol.asyncDispose]();
    await this.service?.[Symbol.asyncDispose]();
    await this.hubProcess?.[Symbol.asyncDispose]();
  }
}
