/**
 * What a window costs: output throughput and echo latency of the broker against util-linux
 * `script`, in turns within one run, with and without the screen observer and a recording, and the
 * memory of brokers. `loop` is the least relay that this runtime allows; with TAMQ_BENCH_NODE_PTY, a
 * folder in which `npm install node-pty` was run, node-pty takes its turn as well.
 *
 *     deno run -A bench/passthrough.ts [megabytes=200] [rounds=5]
 */
import { BROKER_RUNTIME_FLAG } from "../lib/base/self.ts";
import {
  AGAIN,
  closeFd,
  openPty,
  POLLIN,
  PollSet,
  readFd,
  reap,
  sendSignal,
  SIGKILL,
  spawnOnTerminal,
  writeFd,
} from "../lib/pty_ffi.ts";

const megabytes = Number(Deno.args[0] ?? 200), rounds = Number(Deno.args[1] ?? 5);
const dir = Deno.makeTempDirSync({ prefix: "tamq-bench-" });
const child = new URL("helpers/broker_child.ts", import.meta.url).pathname;
const config = new URL("../deno.json", import.meta.url).pathname;

const flags = ["-A", "--no-check", "--quiet", "--frozen", BROKER_RUNTIME_FLAG];
const run = ["run", ...flags, "--config", config];
const broker = [Deno.execPath(), ...run, child, dir];
const loop = new URL("helpers/bare_loop.ts", import.meta.url).pathname;
const runners: Record<string, (command: string[]) => string[]> = {
  broker: (command) => [...broker, ...command],
  /** With the terminal model of an agent's window behind the bytes. */
  agent: (command) => [...broker, "--profile=codex", ...command],
  /** What it shows is recorded: 64 MiB at most, and of a flood what can be written (B-15). */
  recorded: (command) => [...broker, "--record", ...command],
  loop: (command) => [Deno.execPath(), ...run, loop, dir, ...command],
  script: (
    command,
  ) => ["script", "-qec", command.map((word) => `'${word}'`).join(" "), "/dev/null"],
};

const nodePty = Deno.env.get("TAMQ_BENCH_NODE_PTY");
if (nodePty !== undefined) {
  const relay = new URL("helpers/node_pty_relay.mjs", import.meta.url).pathname;
  runners["node-pty"] = (command) => ["node", relay, nodePty, ...command];
}

interface Running {
  readonly pid: number;
  readonly master: number;
}

function start(command: string[]): Running {
  const { master, slavePath } = openPty({ rows: 40, columns: 120 });
  const env = Deno.env.toObject();
  const pid = spawnOnTerminal({ command, directory: dir, env, slavePath });
  if (pid < 0) throw new Error(`cannot start ${command[0]}`);
  return { pid, master };
}

const chunk = new Uint8Array(64 * 1024);
const poll = new PollSet(1);
const decoder = new TextDecoder();

/** Blocks until there is output; returns its length. */
async function readSome(master: number): Promise<number> {
  for (;;) {
    const n = readFd(master, chunk);
    if (n !== AGAIN) return n;
    poll.set(0, master, POLLIN);
    await poll.wait();
  }
}

async function until(master: number, word: string): Promise<void> {
  for (let text = ""; !text.includes(word);) {
    const n = await readSome(master);
    if (n === 0) throw new Error(`ended before ${word}: ${text}`);
    text += decoder.decode(chunk.subarray(0, n), { stream: true });
  }
}

function stop({ pid, master }: Running): void {
  sendSignal(pid, SIGKILL);
  closeFd(master);
  while (reap(pid) === undefined);
}

/** Megabytes a second that come out of `cat` of a file of text. */
async function throughput(runner: string, file: string, size: number): Promise<number> {
  const shell = `stty raw -echo; echo READY; read x; cat ${file}; read x`;
  const run = start(runners[runner]!(["sh", "-c", shell]));
  await until(run.master, "READY");
  await new Promise((resolve) => setTimeout(resolve, 600)); // past the broker's start-up
  const begin = performance.now();
  writeFd(run.master, new TextEncoder().encode("\n"));
  for (let total = 0; total < size;) total += await readSome(run.master);
  const seconds = (performance.now() - begin) / 1000;
  stop(run);
  return size / 1e6 / seconds;
}

/** Microseconds from a key to its echo by `cat`, for each of `count` keys. */
async function latencies(runner: string, count: number): Promise<number[]> {
  const run = start(runners[runner]!(["sh", "-c", "stty raw -echo; echo READY; exec cat"]));
  await until(run.master, "READY");
  await new Promise((resolve) => setTimeout(resolve, 600));
  const key = new TextEncoder().encode("k");
  const found: number[] = [];
  for (let i = 0; i < count; i++) {
    // Not back to back: a person's keys meet a broker that sleeps.
    await new Promise((resolve) => setTimeout(resolve, 1));
    const begin = performance.now();
    writeFd(run.master, key);
    poll.set(0, run.master, POLLIN);
    poll.now(1000); // asleep meanwhile: on two cores a busy reader would take one from the relay
    readFd(run.master, chunk);
    found.push((performance.now() - begin) * 1000);
  }
  stop(run);
  return found;
}

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]!;
}

/** Resident and proportional megabytes of brokers that run `cat`. */
async function memory(runner: string, count: number): Promise<[number, number]> {
  const runs = Array.from(
    { length: count },
    () => start(runners[runner]!(["sh", "-c", "echo READY; exec cat"])),
  );
  for (const run of runs) await until(run.master, "READY");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  let rss = 0, pss = 0;
  for (const { pid } of runs) {
    const text = Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`);
    rss += Number(/^Rss:\s+(\d+)/m.exec(text)![1]);
    pss += Number(/^Pss:\s+(\d+)/m.exec(text)![1]);
  }
  runs.forEach(stop);
  return [rss / 1024, pss / 1024];
}

try {
  const file = `${dir}/text`;
  const line = "12:34:56 info request served path=/a/b/c status=200 ms=12 To nobody: nothing\n";
  const block = new TextEncoder().encode(line.repeat(14_000));
  const out = Deno.openSync(file, { create: true, write: true });
  let size = 0;
  for (; size < megabytes * 1e6; size += block.length) out.writeSync(block);
  out.close();

  const names = Object.keys(runners);
  const speeds = Object.fromEntries(names.map((name) => [name, [] as number[]]));
  const echoes = Object.fromEntries(names.map((name) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const runner of names) {
      speeds[runner]!.push(await throughput(runner, file, size));
      echoes[runner]!.push(...await latencies(runner, 500));
    }
  }
  for (const runner of names) {
    const [p50, p99] = [0.5, 0.99].map((q) => quantile(echoes[runner]!, q).toFixed(0));
    const speed = quantile(speeds[runner]!, 0.5).toFixed(0);
    const share = quantile(speeds[runner]!.map((mbs, i) => mbs / speeds.script![i]!), 0.5);
    console.log(
      `${runner.padEnd(8)} ${speed} MB/s of cat (${
        share.toFixed(2)
      } of script, median of pairs), ` +
        `echo p50 ${p50} us, p99 ${p99} us`,
    );
  }
  for (const [runner, count] of [["broker", 1], ["agent", 1], ["broker", 10]] as const) {
    const [rss, pss] = await memory(runner, count);
    console.log(
      `memory of ${count} ${runner}(s): resident ${rss.toFixed(0)} MB, proportional ${
        pss.toFixed(0)
      } MB`,
    );
  }
} finally {
  Deno.removeSync(dir, { recursive: true });
}
