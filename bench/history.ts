/**
 * Export, replay, history and purge of long histories, as a person runs them: whole processes, and
 * the longest wait of a delivery while a purge runs. Beside the export what a script would do.
 *
 *     deno run -A bench/history.ts            # 100,000 messages
 *     deno run -A bench/history.ts 1000000    # ten minutes, 4 GB of disk
 */
import { systemClock } from "../lib/base/clock.ts";
import { call } from "../lib/client.ts";
import { grouped } from "../lib/cli/progress.ts";
import { type HistoryWorld, type Receiver, withHistory } from "../tests/helpers/history_world.ts";
import { addHistory } from "../tests/helpers/long_history.ts";
import { type Measured, measured, peakMegabytes } from "../tests/helpers/memory.ts";

const MESSAGES = Number(Deno.args[0] ?? 100_000);
const BODY_BYTES = 300;

/** The same rows to JSON lines by Python's sqlite3, in the form that the table has. */
const SCRIPT = `
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.row_factory = sqlite3.Row
out = open(sys.argv[2], "w")
for row in db.execute("SELECT * FROM messages ORDER BY seq"):
    d = dict(row); d.pop("request_digest"); d["metadata"] = json.loads(d["metadata"])
    out.write(json.dumps(d) + "\\n")
`;

function line(what: string, { ms, peak }: Measured, count?: number): void {
  const rate = count === undefined ? "" : `${grouped(Math.round(count / ms * 1000))}/s`;
  console.log(
    `${what.padEnd(44)} ${(ms / 1000).toFixed(2).padStart(8)} s ${rate.padStart(11)}` +
      ` ${peak.toFixed(0).padStart(6)} MB`,
  );
}

async function run(world: HistoryWorld, ...args: string[]): Promise<Measured> {
  const result = await measured(world.argv(args), world.env);
  if (result.code !== 0) throw new Error(`tamq ${args.join(" ")}: ${result.stderr}`);
  return result;
}

/** Milliseconds from send to the line on the receiver's output, until `over`. */
async function deliveries(
  world: HistoryWorld,
  beta: Receiver,
  over: () => boolean,
): Promise<number[]> {
  const times: number[] = [];
  while (!over()) {
    const began = systemClock.monotonic();
    const { message_id } = await world.send(`probe ${began}`);
    while ((await beta.next(1))[0] !== message_id) { /* replayed ones come first */ }
    times.push(systemClock.monotonic() - began);
  }
  return times.sort((a, b) => a - b);
}

function spread(what: string, times: readonly number[]): void {
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  const longest = (times.at(-1) ?? 0).toFixed(1);
  console.log(
    `${what.padEnd(44)} p50 ${at(0.5)} ms, p99 ${
      at(0.99)
    } ms, longest ${longest} ms (${times.length})`,
  );
}

await withHistory(async (world) => {
  await world.withStore(({ db }) => addHistory(db, MESSAGES, BODY_BYTES));
  const { database, socket } = world.settings;
  const size = () => `${(Deno.statSync(database).size / 1e6).toFixed(0)} MB`;
  console.log(`${grouped(MESSAGES)} messages of ${BODY_BYTES} bytes, database ${size()}\n`);
  const file = `${world.dir}/all.jsonl`;
  line("tamq history --limit 50", await run(world, "history", "--limit", "50"));
  line(
    "tamq history --repo beta --limit 50",
    await run(world, "history", "--repo", "beta", "-n50"),
  );
  line("tamq export FILE", await run(world, "export", file), MESSAGES);
  const python = await measured(
    ["python3", "-c", SCRIPT, database, `${world.dir}/python.jsonl`],
    world.env,
  ).catch(() => undefined);
  if (python?.code === 0) line("  python3, sqlite3 and json", python, MESSAGES);
  line("tamq purge --dry-run", await run(world, "purge", "--dry-run"));

  const service = await world.start();
  {
    await using _closed = await world.closedWindow();
    const replay = ["replay", file, "--endpoint", world.endpoint];
    line("tamq replay FILE", await run(world, ...replay), MESSAGES);
    line("tamq replay FILE, again", await run(world, ...replay), MESSAGES);
    const alone = 2000;
    const began = systemClock.monotonic();
    for (let n = 0; n < alone; n++) await world.send(`alone ${n}`, { target_repo: "alpha" });
    const ms = systemClock.monotonic() - began;
    line("  a send a message, one after the other", { ms, peak: 0 } as Measured, alone);
    console.log(`service after that, at most: ${peakMegabytes(service.pid)!.toFixed(0)} MB\n`);
    // Out of the way: nothing that waits for beta is to be delivered below.
    await world.stop();
    await world.withStore(({ db }) => {
      db.prepare(`UPDATE messages SET state = 'failed', last_failure_reason = 'bench'
        WHERE state = 'pending'`).run();
    });
  }
  const again = await world.start();
  await using beta = await world.receiver();
  let count = 0;
  spread("delivery, idle service", await deliveries(world, beta, () => ++count > 300));
  let over = false;
  const purging = run(world, "purge", "--max-size", "1MB", "--yes", "--json")
    .finally(() => over = true);
  spread("delivery, while a purge runs", await deliveries(world, beta, () => over));
  const purged = await purging;
  const { messages } = JSON.parse(purged.stdout);
  line(`tamq purge of ${grouped(messages)}`, purged, messages);
  const ping = await call(socket, "ping", {});
  console.log(`database ${size()}, service ${peakMegabytes(ping.pid)!.toFixed(0)} MB at most`);
  if (again.pid !== ping.pid) throw new Error("the service was restarted");
});
