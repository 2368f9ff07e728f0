/**
 * Durable sends a second through the whole service: 16 clients in processes of their own, a new
 * connection for every operation (T-03), each answered after the commit is on disk.
 * Paired with `ping`, which does everything but the queue and the disk.
 *
 *     deno run -A bench/service_send.ts [seconds]
 */
import { systemClock } from "../lib/base/clock.ts";
import { call } from "../lib/client.ts";
import { ServiceProcess, settingsIn } from "../tests/helpers/service.ts";
import { withTempDir } from "../tests/helpers/temp.ts";

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
    for (const op of ["ping", "send", "ping", "send"] as const) {
      const figures = await measure(settings.socket, op, seconds);
      const name = op === "send" ? "durable send, 16 clients" : "ping, 16 clients";
      console.log(line(name, figures, seconds));
    }
  });
}
