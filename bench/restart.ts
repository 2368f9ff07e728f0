/**
 * From the start of the process to the first answer, after `kill -9`, with messages in the queue.
 *
 *     deno run -A bench/restart.ts [rounds=100] [messages=1000]
 */
import { call } from "../lib/client.ts";
import { ServiceProcess, settingsIn } from "../tests/helpers/service.ts";
import { withTempDir } from "../tests/helpers/temp.ts";
import { percentile, verdict } from "./helpers/figures.ts";

const rounds = Number(Deno.args[0] ?? 100);
const messages = Number(Deno.args[1] ?? 1000);
await withTempDir(async (dir) => {
  const settings = await settingsIn(dir);
  const env = { TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) };
  let key = 0;
  const send = () =>
    call(settings.socket, "send", {
      client_id: "bench",
      idempotency_key: String(key++),
      sender_repo: "local",
      target_repo: "beta",
      provenance: "cli",
      body: "hello",
    });
  const times: number[] = [];
  for (let round = -3; round < rounds; round++) { // three to warm up
    const began = performance.now();
    await using service = await ServiceProcess.start(settings, { env });
    await call(settings.socket, "ping", {});
    if (round >= 0) times.push(performance.now() - began);
    if (key === 0) {
      for (let n = 0; n < messages; n += 16) await Promise.all([...Array(16)].map(send));
    }
    await send(); // so that each kill leaves a log to recover from
    service.kill();
  }
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(times, share));
  console.log(`restart after kill -9 to the first answer, ${rounds} times`);
  console.log(
    `  p50 ${p50!.toFixed(0)} ms   p99 ${p99!.toFixed(0)} ms   ` +
      verdict(p99! < 500, "p99 under 500 ms"),
  );
});
