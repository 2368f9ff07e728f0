/** A whole fleet of real processes over mTLS on the loopback, with an operator beside it. */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { newToken } from "../../lib/base/ids.ts";
import { Credentials } from "../../lib/fleet/credentials.ts";
import { OperatorService } from "../../lib/fleet/gen/operator_pb.ts";
import { sha256 } from "../../lib/fleet/idempotency.ts";
import { type Client, connect } from "../../lib/fleet/rpc.ts";
import type { FleetEntry } from "./fleet_entry.ts";
import { makePki, type Pki } from "./fleet_pki.ts";
import { textLines } from "./service.ts";
import { withTempDir } from "./temp.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const LIMIT_MS = 20_000;

export const meta = () => ({ protocolVersion: "0.1", operationId: newToken(systemRandom) });

/** A port that nobody listens on right now. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Passes connections on to a port that a test may exchange; the old ones are cut then. */
export class Switch {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open = new Set<Deno.TcpConn>();
  readonly port = this.#listener.addr.port;

  constructor(public target: number) {
    void this.#accept();
  }

  async #accept(): Promise<void> {
    for await (const near of this.#listener) {
      Deno.connect({ hostname: "127.0.0.1", port: this.target }).then((far) => {
        for (const [from, to] of [[near, far], [far, near]] as const) {
          this.#open.add(from);
          from.readable.pipeTo(to.writable).catch(() => {});
        }
      }, () => near.close());
    }
  }

  turn(target: number): void {
    this.target = target;
    this.#cut();
  }

  #cut(): void {
    for (const one of this.#open) {
      try {
        one.close();
      } catch {
        // its other half has ended already
      }
    }
    this.#open.clear();
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    this.#cut();
  }
}

export class FleetProcess {
  readonly #child: Deno.ChildProcess;
  readonly log: Record<string, unknown>[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #read: Promise<void>;
  #over = false;

  constructor(readonly role: "dispatcher" | "agent", readonly entry: FleetEntry) {
    const args = ["run", "-A", "--no-check", "--quiet", "--frozen", "--config", `${ROOT}deno.json`];
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [...args, `${ROOT}tests/helpers/fleet_entry.ts`, role, JSON.stringify(entry)],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#read = this.#collect();
  }

  async #collect(): Promise<void> {
    for await (const line of textLines(this.#child.stderr)) {
      this.log.push(line.startsWith("{") ? JSON.parse(line) : { event: "text", line });
      for (const wake of this.#waiting) wake();
    }
    this.#over = true;
    for (const wake of this.#waiting) wake();
  }

  /** The first line of that event, once it is there. */
  async event(name: string, from = 0): Promise<Record<string, unknown>> {
    const timeout = AbortSignal.timeout(LIMIT_MS);
    for (;;) {
      const found = this.log.slice(from).find(({ event }) => event === name);
      if (found !== undefined) return found;
      assert.ok(
        !this.#over && !timeout.aborted,
        `${this.role}: no ${name}: ${JSON.stringify(this.log)}`,
      );
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
        timeout.addEventListener("abort", wake);
      });
    }
  }

  /** It has closed its output: it has ended, or is about to. */
  get over(): boolean {
    return this.#over;
  }

  signal(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** Ends it and returns how it ended. */
  async end(signal: Deno.Signal = "SIGTERM"): Promise<Deno.CommandStatus> {
    try {
      this.#child.kill(signal);
    } catch {
      // it has ended by itself
    }
    return await this.ended();
  }

  async ended(): Promise<Deno.CommandStatus> {
    const status = await this.#child.status;
    await this.#read;
    return status;
  }
}

export class FleetWorld {
  readonly #processes: FleetProcess[] = [];
  readonly dispatcherPort = freePort();
  readonly agentPort = freePort();
  operator!: Client<typeof OperatorService>;

  constructor(readonly dir: string, readonly pki: Pki) {}

  get executedFile(): string {
    return `${this.dir}/executed`;
  }

  /** Every execution that the adapter was called for, in order. */
  executed(): string[] {
    try {
      return Deno.readTextFileSync(this.executedFile).split("\n").filter((line) => line !== "");
    } catch {
      return [];
    }
  }

  start(role: "dispatcher" | "agent", entry: FleetEntry): FleetProcess {
    const process = new FleetProcess(role, entry);
    this.#processes.push(process);
    return process;
  }

  async dispatcher(more: Partial<FleetEntry> = {}): Promise<FleetProcess> {
    const process = this.start("dispatcher", {
      dir: `${this.dir}/d`,
      listen: `127.0.0.1:${this.dispatcherPort}`,
      tls: await this.pki.give("dispatcher", "d1"),
      callMs: 2000,
      ...more,
    });
    await process.event("fleet.ready");
    return process;
  }

  /** `executed: ""` wakes for real. */
  async agent(more: Partial<FleetEntry> = {}): Promise<FleetProcess> {
    const process = this.start("agent", {
      dir: `${this.dir}/a`,
      listen: `127.0.0.1:${this.agentPort}`,
      tls: await this.pki.give("agent", "a1"),
      dispatcher: `127.0.0.1:${this.dispatcherPort}`,
      executed: this.executedFile,
      ...more,
    });
    await process.event("fleet.ready");
    return process;
  }

  async approve(): Promise<void> {
    const address = `127.0.0.1:${this.agentPort}`;
    await this.operator.approveAgent({ meta: meta(), agentId: "a1", cellId: "cell1", address });
  }

  async submit(executionId: string, prompt = "do it", targetRepo = "api") {
    return await this.operator.submitExecution({
      meta: meta(),
      binding: {
        executionId,
        agentId: "a1",
        tenantId: 1n,
        taskId: 7n,
        targetRepo,
        contentSha256: sha256(prompt),
      },
      prompt,
    }, { deadlineMs: 2000 });
  }

  async explain(executionId: string) {
    return await this.operator.explainExecution({ meta: meta(), executionId });
  }

  /** Asks until the execution is in one of these states; there is no event for it on this side. */
  async settled(executionId: string, ...states: string[]): Promise<string> {
    const until = systemClock.monotonic() + LIMIT_MS;
    for (;;) {
      let seen: unknown;
      try {
        const { execution, steps } = await this.explain(executionId);
        if (states.includes(execution!.state)) return execution!.state;
        seen = steps.map(({ what, why }) => `${what} ${why}`);
      } catch (error) {
        seen = error; // a dispatcher that is just being replaced
      }
      if (systemClock.monotonic() > until) {
        throw new Error(`${executionId} is not ${states.join(" or ")}`, { cause: seen });
      }
      await new Promise((resolve) => systemClock.after(50, () => resolve(undefined)));
    }
  }

  /** What every process has said, for a test that failed. */
  async logs(): Promise<string> {
    const texts = this.#processes.map(async (process) => {
      const { role, log } = process;
      const status = process.over ? JSON.stringify(await process.ended()) : "runs";
      return [`${role}: ${status}`, ...log.map((line) => `  ${JSON.stringify(line)}`)].join("\n");
    });
    return (await Promise.all(texts)).join("\n");
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.end("SIGKILL")));
  }
}

/** Lets `dir` share the dispatcher's database: another instance, which no lock keeps away. */
export async function shareDispatcher(world: FleetWorld, dir: string): Promise<void> {
  const file = "state/tamq/fleet/dispatcher/dispatcher.sqlite3";
  await Deno.mkdir(`${dir}/${file}`.replace(/[^/]*$/, ""), { recursive: true, mode: 0o700 });
  await Deno.symlink(`${world.dir}/d/${file}`, `${dir}/${file}`);
}

export async function withFleet(body: (world: FleetWorld) => Promise<void>): Promise<void> {
  await withTempDir(async (dir) => {
    for (const name of ["d", "a"]) await Deno.mkdir(`${dir}/${name}`, { mode: 0o700 });
    const pki = await makePki(dir);
    const world = new FleetWorld(dir, pki);
    using credentials = await Credentials.open(await pki.give("operator", "ops"), systemClock);
    const link = connect(
      OperatorService,
      `127.0.0.1:${world.dispatcherPort}`,
      credentials.channel("dispatcher"),
    );
    world.operator = link.client;
    try {
      await body(world);
    } catch (error) {
      throw new Error(`${error}\n${await world.logs()}`, { cause: error });
    } finally {
      link.close();
      await world.close();
    }
  });
}
