/**
 * What the service costs while nothing happens: 20 windows attached, no message. Wake-ups are
 * context switches of all its threads; CPU time is what the scheduler gave them, in nanoseconds.
 *
 *     deno run -A bench/idle.ts [seconds=60]
 */
import { pause, systemClock } from "../lib/base/clock.ts";
import { openStream, type Stream } from "../lib/client.ts";
import { ServiceProcess, settingsIn } from "../tests/helpers/service.ts";
import { withTempDir } from "../tests/helpers/temp.ts";
import { TestWindow } from "../tests/helpers/window.ts";
import { processUsage, verdict } from "./helpers/figures.ts";

const WINDOWS = 20;
const seconds = Number(Deno.args[0] ?? 60);
await withTempDir(async (dir) => {
  const settings = await settingsIn(dir);
  const repos = Array.from({ length: WINDOWS }, (_, n) => `r${n}`);
  await using service = await ServiceProcess.start(settings, {
    env: {
      TEST_REPOS: JSON.stringify(Object.fromEntries(repos.map((r) => [r, `/repos/${r}`]))),
    },
  });
  await using worker = new TestWindow("r0");
  const streams: Stream[] = [];
  for (const repo of repos) {
    const request = worker.request({ repos: [repo], path: `/repos/${repo}`, instance: repo });
    const stream = await openStream(settings.socket, request);
    streams.push(stream);
    await stream.send({ type: "gate", open: true });
  }
  await pause(systemClock, 12_000); // what follows an attachment is over
  const before = processUsage(service.pid);
  await pause(systemClock, seconds * 1000);
  const after = processUsage(service.pid);
  const wakes = (after.switches - before.switches) / seconds;
  const cpu = (after.ms - before.ms) / 1000 / seconds * 100;
  console.log(`idle service, ${WINDOWS} windows, ${seconds} s`);
  console.log(`  ${wakes.toFixed(2)} context switches a second   ${verdict(wakes < 5, "under 5")}`);
  console.log(`  ${cpu.toFixed(3)} % CPU   ${verdict(cpu < 0.1, "under 0.1 %")}`);
  for (const stream of streams) stream.close();
});
