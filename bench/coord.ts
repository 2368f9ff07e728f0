/**
 * The coordination engine: from a change of the State Hub to the line in the worker's terminal, with
 * the subscription and with polling; 10,000 tasks observed; what the engine costs while nothing
 * happens. Real processes throughout.
 *
 *     deno run -A bench/coord.ts [COUNT=30] [POLLED=8] [IDLE_SECONDS=60]
 */
import { pause, systemClock } from "../lib/base/clock.ts";
import { StateHubClient } from "../lib/coord/statehub_client.ts";
import { CoordProcesses } from "../tests/helpers/coord_processes.ts";
import { CoordWorld } from "../tests/helpers/coord_world.ts";
import { HubProxy } from "../tests/helpers/hub_proxy.ts";
import { percentile, processUsage, verdict } from "./helpers/figures.ts";

const [count = 30, polled = 8, idleSeconds = 60] = Deno.args.map(Number);

function percentiles(values: readonly number[]): { text: string; p50: number } {
  const at = (share: number) => percentile(values, share).toFixed(1);
  const text = `p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, max ${at(1)} ms`;
  return { text, p50: percentile(values, 0.5) };
}

/** One task at a time in a real window whose program notes when it reads the wake. */
async function wakes(n: number, base?: string): Promise<number[]> {
  await using coord = await CoordWorld.create(["alpha"]);
  let proxy: HubProxy | undefined;
  try {
    if (base !== undefined) {
      await coord.hub("serve", "--detach");
      proxy = new HubProxy(`${coord.world.dir}/run/p.sock`, `${coord.world.dir}/run/tamq-hub.sock`);
      // No events: only the poll finds what is new.
      proxy.tamper = ({ path }) =>
        path === "/v1/changes/events" ? new Response(null, { status: 503 }) : undefined;
      coord.world.env.STATEHUB_API_BASE = `unix:${proxy.path}`;
    }
    await coord.start();
    await coord.worker("alpha", "quick");
    using hub = new StateHubClient({ address: { unix: `${coord.world.dir}/run/tamq-hub.sock` } });
    const took: number[] = [];
    for (let i = 0; i < n; i++) {
      const task_id = `t${i}`;
      const body = { task_id, title: task_id, repo: "alpha", status: "ready" } as const;
      const began = Date.now() * 1000;
      await hub.call("createTask", { body });
      const [step] = await coord.until(`wake ${i}`, async () => {
        const steps = await coord.steps("alpha");
        const read = steps.filter(({ read }) => read !== undefined);
        return read.length > i && read.slice(i);
      });
      // The first loads what later ones have.
      if (i > 0) took.push((step!.read! - began) / 1000);
      await coord.until(`end ${i}`, async () => {
        const [row] = await coord.rows("hub", "task", "show", task_id);
        return row!.status === "done" && (await coord.rows("coord", "leases")).length === 0;
      });
      // At a random place between two polls.
      if (base !== undefined) await pause(systemClock, Math.random() * 15_000);
    }
    return took;
  } finally {
    await proxy?.close();
  }
}

if (count > 0) {
  const { text, p50 } = percentiles(await wakes(count + 1));
  console.log(`hub change -> line in the worker's terminal, events, ${count} tasks: ${text}`);
  console.log(`  p50 ${verdict(p50 < 50, "under 50 ms")}`);
}
if (polled > 0) {
  const poll = percentiles(await wakes(polled + 1, "poll"));
  console.log(`the same, polling every 15 s, ${polled} tasks: ${poll.text}`);
}

await CoordProcesses.run(async (world) => {
  const { pid } = world.engine;
  await pause(systemClock, 12_000); // what follows the start is over
  const before = processUsage(pid);
  await pause(systemClock, idleSeconds * 1000);
  const after = processUsage(pid);
  const cpu = (after.ms - before.ms) / 10 / idleSeconds;
  const switches = (after.switches - before.switches) / idleSeconds;
  console.log(
    `idle engine, one window, ${idleSeconds} s: ${cpu.toFixed(3)} % CPU, ` +
      `${switches.toFixed(2)} context switches a second   ${verdict(cpu < 0.1, "under 0.1 %")}`,
  );
}, () => ({ config: "" }));
