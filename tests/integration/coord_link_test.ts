/** How the message service finds a coordination engine (K-09): by events, without ever polling. */
import assert from "node:assert/strict";
import { turn } from "../../lib/base/clock.ts";
import { createLog } from "../../lib/base/log.ts";
import { identify } from "../../lib/base/proc.ts";
import { CoordLink } from "../../lib/coord_link.ts";
import { type ServiceLock, tryServiceLock } from "../../lib/ipc/lock.ts";
import { ensureStateDir } from "../../lib/ipc/state_dir.ts";
import type { WireEndpoint } from "../../lib/protocol/schema.ts";
import { FakeClock } from "../helpers/clock.ts";
import { EngineProcess } from "../helpers/engine.ts";
import { ScriptedAnswers } from "../helpers/scripted_answers.ts";
import { ServiceProcess, settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";
import { TestWindow } from "../helpers/window.ts";

const DAY = 24 * 3600_000;

function endpoint(repo: string): WireEndpoint {
  return {
    endpoint_id: "tmux-amq-7",
    tmux_session: "s",
    protocol: "0.1",
    capabilities: [],
    repos: [repo],
    attachments: [{
      repo,
      path: `/repos/${repo}`,
      command: ["cat"],
      mode: "trigger",
      gate: { open: true, reason: null },
      broker_pid: Deno.pid,
      window_id: "@1",
      attached_at: "2030-01-01T00:00:00.000Z",
    }],
  };
}

/** A link under a clock that only the test moves, and an engine that is scripted. */
class Linked implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly lines: Record<string, unknown>[] = [];
  readonly windows: WireEndpoint[] = [endpoint("alpha")];
  readonly link: CoordLink;
  #lock: ServiceLock | undefined;
  #answers: ScriptedAnswers | undefined;

  private constructor(readonly dir: string, settings: Awaited<ReturnType<typeof settingsIn>>) {
    this.link = new CoordLink({
      settings,
      serviceId: "svc",
      endpoints: () => this.windows,
      clock: this.clock,
      log: createLog({
        clock: this.clock,
        level: "debug",
        json: true,
        write: (line) => this.lines.push(JSON.parse(line)),
      }),
    });
    this.coord = `${settings.stateDir}/coord`;
  }

  readonly coord: string;

  static async in(dir: string): Promise<Linked> {
    return new Linked(dir, await settingsIn(dir));
  }

  /** An engine comes: its lock first, as a real one does. */
  async engine(service_id: string): Promise<ScriptedAnswers> {
    ensureStateDir(this.coord);
    const socket = `${this.dir}/${service_id}.sock`;
    const answer = { coordination_endpoint_id: `id-of-${service_id}` };
    this.#answers = new ScriptedAnswers(socket, { attach: answer });
    this.#lock = (await tryServiceLock(this.coord))!;
    this.#lock.publish({ ...identify(Deno.pid)!, socket, service_id, version: "1" });
    return this.#answers;
  }

  async engineEnds(): Promise<void> {
    this.#lock?.release();
    await this.#answers?.[Symbol.asyncDispose]();
    this.#lock = this.#answers = undefined;
  }

  /** Waits for `met`, moving the clock only by the moment that follows an event. */
  async until(met: () => boolean): Promise<void> {
    while (!met()) {
      if (this.clock.nextDue <= 100) this.clock.advance(100);
      await turn();
    }
  }

  /** The link has looked and waits. */
  async quiet(): Promise<void> {
    await this.until(() => this.clock.timers === 1 && this.clock.nextDue > 100);
  }

  events(): unknown[] {
    return this.lines.map((line) => line.event);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.link.stop();
    await this.engineEnds();
  }
}

async function withLink(body: (linked: Linked) => Promise<void>): Promise<void> {
  await withTempDir(async (dir) => {
    Deno.mkdirSync(`${dir}/state/tamq`, { recursive: true, mode: 0o700 });
    await using linked = await Linked.in(dir);
    await body(linked);
  });
}

Deno.test("[K-09] no timer wakes a service without an engine; an engine that comes later, or another after it, is told of the windows at once", async () => {
  await withLink(async (linked) => {
    const { link, clock } = linked;
    link.start();
    await linked.quiet();
    assert.equal(clock.nextDue, Infinity);
    clock.advance(7 * DAY);
    assert.equal(clock.nextDue, Infinity);
    assert.deepEqual(linked.events(), []);
    for (const name of ["first", "second"]) {
      const engine = await linked.engine(name);
      await linked.until(() => link.idOf("tmux-amq-7") === `id-of-${name}`);
      assert.deepEqual(engine.ops(), ["attach"]);
      await linked.engineEnds();
      await linked.quiet();
      assert.equal(clock.nextDue, Infinity);
    }
    assert.deepEqual(linked.events(), ["engine.attached", "engine.attached"]);
  });
});

Deno.test("[K-09] an engine that stays is told of each change of the windows once, and not asked again", async () => {
  await withLink(async (linked) => {
    const { link, clock, windows } = linked;
    const engine = await linked.engine("one");
    link.start();
    await linked.until(() => engine.requests.length === 1);
    await linked.quiet();
    assert.equal(clock.nextDue, Infinity);
    link.nudge(); // something, but not of what the engine knows
    await linked.quiet();
    assert.equal(engine.requests.length, 1);
    windows.splice(0, 1, { ...endpoint("beta"), tmux_session: "t" });
    link.nudge();
    await linked.until(() => engine.requests.length === 2);
    assert.deepEqual(
      [engine.requests[1]!.tmux_session, engine.requests[1]!.windows],
      ["t", [{ repo: "beta", path: "/repos/beta", command: ["cat"] }]],
    );
  });
});

Deno.test("[K-09] with its directory removed, or moved away with an engine in it, the link makes it anew and finds the next engine", async () => {
  await withLink(async (linked) => {
    const { link, clock, coord, dir } = linked;
    link.start();
    await linked.quiet();
    Deno.removeSync(coord, { recursive: true });
    await linked.engine("first");
    await linked.until(() => link.idOf("tmux-amq-7") === "id-of-first");
    Deno.renameSync(coord, `${dir}/elsewhere`);
    await linked.engineEnds();
    await linked.engine("second");
    await linked.until(() => link.idOf("tmux-amq-7") === "id-of-second");
    await linked.quiet();
    assert.equal(clock.nextDue, Infinity);
  });
});

Deno.test("[K-09] a directory that cannot be watched is looked at now and then, the log says why once, and watching is taken up when it can be", async () => {
  await withLink(async (linked) => {
    const { link, clock, coord } = linked;
    Deno.writeTextFileSync(coord, "in the way");
    link.start();
    await linked.quiet();
    for (let i = 0; i < 3; i++) {
      assert.equal(clock.nextDue, 15_000);
      clock.advance(15_000);
      await linked.quiet();
    }
    const [warning, ...more] = linked.lines;
    assert.deepEqual(more, []);
    assert.equal(warning!.event, "engine.not_watched");
    assert.match(String(warning!.reason), /coord/);
    Deno.removeSync(coord);
    await linked.engine("late");
    clock.advance(15_000);
    await linked.until(() => link.idOf("tmux-amq-7") === "id-of-late");
    await linked.quiet();
    assert.equal(clock.nextDue, Infinity);
  });
});

Deno.test("[K-09] an engine that lives and does not answer is tried again ever later, and windows' changes at once", async () => {
  await withLink(async (linked) => {
    const { link, clock, coord, dir } = linked;
    ensureStateDir(coord);
    const lock = (await tryServiceLock(coord))!;
    const socket = `${dir}/deaf.sock`;
    lock.publish({ ...identify(Deno.pid)!, socket, service_id: "deaf", version: "1" });
    link.start();
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      await linked.quiet();
      waits.push(clock.nextDue);
      clock.advance(clock.nextDue);
    }
    assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    await linked.quiet();
    await using engine = new ScriptedAnswers(socket, {
      attach: { coordination_endpoint_id: "heard" },
    });
    link.nudge();
    await linked.until(() => engine.requests.length === 1);
    lock.release();
  });
});

Deno.test("[K-09][T-03] a real engine that is started after the service gets its windows, as does the next one", async () => {
  await withTempDir(async (dir) => {
    Deno.mkdirSync(`${dir}/run`, { mode: 0o700 });
    const settings = await settingsIn(dir);
    const env = { TEST_REPOS: JSON.stringify({ alpha: "/repos/alpha" }) };
    await using service = await ServiceProcess.start(settings, { env });
    await using alpha = new TestWindow("alpha");
    using _stream = await alpha.attach(settings.socket);
    for (let i = 0; i < 2; i++) {
      await using _engine = await EngineProcess.start(settings, {
        ...env,
        STATEHUB_API_BASE: `unix:${dir}/no-hub.sock`,
      });
      const attached = await service.event("engine.attached");
      assert.equal(attached?.endpoint, `tmux-amq-${Deno.ppid}`);
    }
  });
});
