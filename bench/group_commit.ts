/**
 * Durable sends of 16 clients, all commits of a turn in one transaction against one transaction a
 * send, on the disk as it is and with 4 ms more for every fsync. Two readings, each paired in turns:
 *
 * - `no connection`: 16 clients inside the service's process. The protocol has one operation a
 *   connection (T-03), so this stands for connections that are kept: no cost of connecting at all.
 * - `connection each`: 16 clients in two other processes, a new connection for every send.
 *
 *     deno run -A bench/group_commit.ts [seconds=2] [turns=3]
 */
import { systemClock } from "../lib/base/clock.ts";
import { silentLog } from "../lib/base/log.ts";
import { systemRandom } from "../lib/base/random.ts";
import { Attachments } from "../lib/attachments.ts";
import { call } from "../lib/client.ts";
import { DEFAULT_POLICY } from "../lib/model/retry_schedule.ts";
import { Queue } from "../lib/queue.ts";
import { GroupCommit } from "../lib/sqlite/group_commit.ts";
import { openStore } from "../lib/store/store.ts";
import { FakeProcesses, FakeRegistry } from "../tests/helpers/queue_rig.ts";
import { ServiceProcess, settingsIn } from "../tests/helpers/service.ts";
import { withTempDir } from "../tests/helpers/temp.ts";
import { median, slowSync, verdict } from "./helpers/figures.ts";

const CLIENTS = 16;
const PROCESSES = 2;
const BODY = "a message of ordinary length, about eighty bytes, as workers write them";

const request = (client: string, n: number) => ({
  client_id: client,
  idempotency_key: String(n),
  sender_repo: "local",
  target_repo: "beta",
  provenance: "cli" as const,
  body: BODY,
});

/** Sends of `clients` that each wait for their answer, for that long. */
async function count(seconds: number, clients: number, send: (n: number) => Promise<unknown>) {
  let sends = 0;
  const end = performance.now() + seconds * 1000;
  await Promise.all(Array.from({ length: clients }, async () => {
    while (performance.now() < end) await send(sends++);
  }));
  return sends;
}

/** Prints sends a second inside this process, grouped and single, one line a turn. */
async function inside(seconds: number, turns: number): Promise<void> {
  await withTempDir(async (dir) => {
    const clock = systemClock;
    const queues = await Promise.all([undefined, 1].map(async (maxBatch) => {
      const path = `${dir}/${maxBatch ?? "all"}.sqlite3`;
      const { db, store } = await openStore(path, { busyTimeoutMs: 1000, clock });
      const processes = new FakeProcesses();
      const queue = new Queue({
        store,
        commit: new GroupCommit(db, { path, clock, busyTimeoutMs: 1000, maxBatch }),
        attachments: new Attachments(processes),
        registry: new FakeRegistry(["beta"]),
        clock,
        random: systemRandom,
        log: silentLog,
        policyFor: () => DEFAULT_POLICY,
        processes,
      });
      await queue.start();
      return { db, queue };
    }));
    let round = 0;
    const rate = async (queue: Queue) => {
      const client = `bench-${round++}`;
      return await count(seconds, CLIENTS, (n) => queue.send(request(client, n), {})) / seconds;
    };
    for (let turn = -1; turn < turns; turn++) { // one to warm up
      const pair = [await rate(queues[0]!.queue), await rate(queues[1]!.queue)];
      if (turn >= 0) console.log(JSON.stringify(pair));
    }
    for (const { db, queue } of queues) {
      await queue.stop();
      db.close();
    }
  });
}

const self = new URL(import.meta.url).pathname;
const config = new URL("../deno.json", import.meta.url).pathname;
const again = (...args: string[]) => [
  ...[Deno.execPath(), "run", "-A", "--no-check", "--quiet", "--config", config, self],
  ...args,
];

async function output([program, ...args]: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(program!, { args, stderr: "inherit" }).output();
  return new TextDecoder().decode(stdout);
}

async function viaSocket(prefix: string[], seconds: number, turns: number): Promise<number[][]> {
  return await withTempDir(async (dir) => {
    const start = async (name: string, batch?: string) => {
      const settings = await settingsIn(`${dir}/${name}`);
      const service = await ServiceProcess.start(settings, {
        prefix,
        env: {
          TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }),
          ...(batch === undefined ? {} : { TEST_MAX_BATCH: batch }),
        },
      });
      // Its own pid: with a tracer before it, the child that we started is the tracer.
      const { pid } = await call(settings.socket, "ping", {});
      return { service, socket: settings.socket, pid };
    };
    const services = [await start("all"), await start("one", "1")];
    const rate = async (socket: string) => {
      const runs = await Promise.all(
        Array.from({ length: PROCESSES }, () => output(again("client", socket, String(seconds)))),
      );
      return runs.reduce((sum, text) => sum + Number(text), 0) / seconds;
    };
    const pairs: number[][] = [];
    for (let turn = -1; turn < turns; turn++) {
      const pair = [await rate(services[0]!.socket), await rate(services[1]!.socket)];
      if (turn >= 0) pairs.push(pair);
    }
    for (const { service, pid } of services) {
      Deno.kill(pid, "SIGKILL");
      await service.ended();
    }
    return pairs;
  });
}

function report(name: string, pairs: number[][], goal?: number): void {
  const [grouped, single] = [0, 1].map((side) => median(pairs.map((pair) => pair[side]!)));
  const ratio = median(pairs.map(([a, b]) => a! / b!));
  console.log(
    `  ${name.padEnd(34)} ${grouped!.toFixed(0).padStart(6)} /s against ` +
      `${single!.toFixed(0).padStart(6)} /s   ${ratio.toFixed(1)}x   ` +
      (goal === undefined ? "" : verdict(ratio >= goal, `at least ${goal}x`)),
  );
}

const [what, ...rest] = Deno.args;
if (what === "inside") await inside(Number(rest[0]), Number(rest[1]));
else if (what === "client") {
  const client = `bench-${Deno.pid}`;
  const sends = await count(
    Number(rest[1]),
    CLIENTS / PROCESSES,
    (n) => call(rest[0]!, "send", request(client, n)),
  );
  console.log(sends);
} else {
  const seconds = Number(Deno.args[0] ?? 2);
  const turns = Number(Deno.args[1] ?? 3);
  console.log("durable sends of 16 clients, group commit against one transaction a send");
  const slow = await slowSync(4);
  for (const [disk, prefix, goal] of [["", [], 2], [", fsync + 4 ms", slow, 8]] as const) {
    if (disk !== "" && prefix.length === 0) {
      console.log("  SKIPPED, strace cannot trace here: figures with a slower fsync");
      continue;
    }
    const text = await output([...prefix, ...again("inside", String(seconds), String(turns))]);
    const pairs = text.trim().split("\n").map((line) => JSON.parse(line) as number[]);
    report(`no connection${disk}`, pairs, goal);
    report(`connection each${disk}`, await viaSocket([...prefix], seconds, turns));
  }
}
