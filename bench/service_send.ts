/**
 * Durable sends a second through the whole service: 16 clients in processes of their own, a new
 * connection for every operation (T-03), each answered after the commit is on disk.
 * Paired with `ping`, which does everything but the queue and the disk, and with a Python loop that
 * inserts one row a transaction, as durably (WAL, FULL) and without any socket.
 *
 *     deno run -A bench/service_send.ts [seconds]
 */
import { systemClock } from "../lib/base/clock.ts";
import { call } from "../lib/client.ts";
import { ServiceProcess, settingsIn } from "../tests/helpers/service.ts";
import { withTempDir } from "../tests/helpers/temp.ts";
import { median, verdict } from "./helpers/figures.ts";

const CLIENTS = 16;
/** Client processes; each runs its share of the clients, so that the service is what is measured. */
const PROCESSES = 2;

interface Figures {
  operations: number;
  /** Milliseconds, each operation. */
  times: number[];
}

/** Runs in a client process. */
async function clients(socket: string, op: "send" | "ping", seconds: number, count: number) {
  const times: number[] = [];
  const end = systemClock.monotonic() + seconds * 1000;
  const one = async (client: number) => {
    for (let n = 0; systemClock.monotonic() < end; n++) {
      const began = systemClock.monotonic();
      if (op === "ping") await call(socket, "ping", {});
      else {
        await call(socket, "send", {
          client_id: `bench-${Deno.pid}-${client}`,
          idempotency_key: String(n),
          sender_repo: "local",
          target_repo: "beta",
          provenance: "cli",
          body: "a message of ordinary length, about eighty bytes, as workers write them",
        });
      }
      times.push(systemClock.monotonic() - began);
    }
  };
  await Promise.all(Array.from({ length: count }, (_, i) => one(i)));
  return times;
}

async function measure(socket: string, op: "send" | "ping", seconds: number): Promise<Figures> {
  const config = new URL("../deno.json", import.meta.url).pathname;
  const self = new URL(import.meta.url).pathname;
  const runs = await Promise.all(Array.from({ length: PROCESSES }, async () => {
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--config", config, self, "client", socket, op]
        .concat(String(seconds), String(CLIENTS / PROCESSES)),
      stderr: "inherit",
    }).output();
    return JSON.parse(new TextDecoder().decode(stdout)) as number[];
  }));
  const times = runs.flat().sort((a, b) => a - b);
  return { operations: times.length, times };
}

/** Inserts for that long; prints how many. */
const SCRIPT = `
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL"); db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, key TEXT UNIQUE, "
  "sender TEXT, target TEXT, state TEXT, at REAL, body TEXT)")
end = time.monotonic() + float(sys.argv[2]); n = 0; start = time.time()
while time.monotonic() < end:
  db.execute("BEGIN IMMEDIATE")
  db.execute("INSERT INTO messages (key, sender, target, state, at, body) VALUES (?, ?, ?, ?, ?, ?)",
    (f"{start}-{n}", "local", "beta", "pending", time.time(),
     "a message of ordinary length, about eighty bytes, as workers write them"))
  db.execute("COMMIT"); n += 1
print(n)`;

/** Rows a second; undefined without Python. */
async function python(dir: string, seconds: number): Promise<number | undefined> {
  try {
    const args = ["-c", SCRIPT, `${dir}/python.sqlite3`, String(seconds)];
    const { stdout, success } = await new Deno.Command("python3", { args }).output();
    return success ? Number(new TextDecoder().decode(stdout)) / seconds : undefined;
  } catch {
    return undefined;
  }
}

function line(name: string, { operations, times }: Figures, seconds: number): string {
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(2);
  return `${name.padEnd(28)} ${String(Math.round(operations / seconds)).padStart(6)} /s   ` +
    `p50 ${at(0.5)} ms   p99 ${at(0.99)} ms`;
}

if (Deno.args[0] === "client") {
  const [, socket, op, seconds, count] = Deno.args;
  const times = await clients(socket!, op as "send" | "ping", Number(seconds), Number(count));
  console.log(JSON.stringify(times));
} else {
  const seconds = Number(Deno.args[0] ?? 3);
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using _service = await ServiceProcess.start(settings, {
      env: { TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) },
    });
    await measure(settings.socket, "send", 1); // warm
    const rates: number[] = [];
    const scripts: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      for (const op of ["ping", "send"] as const) {
        const figures = await measure(settings.socket, op, seconds);
        const name = op === "send" ? "durable send, 16 clients" : "ping, 16 clients";
        console.log(line(name, figures, seconds));
        if (op === "send") rates.push(figures.operations / seconds);
      }
      const script = await python(dir, seconds);
      if (script === undefined) continue;
      scripts.push(script);
      console.log(
        `${"Python loop, no socket".padEnd(28)} ${String(Math.round(script)).padStart(6)} /s`,
      );
    }
    const rate = median(rates);
    console.log(`median ${rate.toFixed(0)} /s   ${verdict(rate >= 3000, "at least 3,000 /s")}`);
    if (scripts.length === 0) console.log("SKIPPED, no python3 here: the loop to compare with");
    else {
      const ratio = median(rates.map((value, turn) => value / scripts[turn]!));
      console.log(`${ratio.toFixed(2)}x the Python loop   ${verdict(ratio >= 1, "at least 1x")}`);
    }
  });
}
