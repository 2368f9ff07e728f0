/**
 * The durable queue without sockets: sends a second with group commit and with one transaction a
 * send, in turns on the same disk; and whether a delivery gets dearer as history grows.
 *
 *     deno run -A bench/queue.ts             # histories of 1,000 and 100,000 messages
 *     deno run -A bench/queue.ts 1000000     # of 1,000 and a million (a few minutes, 1 GB of disk)
 */
import { Attachments } from "../lib/attachments.ts";
import { systemClock } from "../lib/base/clock.ts";
import { silentLog } from "../lib/base/log.ts";
import { systemRandom } from "../lib/base/random.ts";
import type { Delivery } from "../lib/model/ports.ts";
import { DEFAULT_POLICY } from "../lib/model/retry_schedule.ts";
import { type Commit, Queue } from "../lib/queue.ts";
import { GroupCommit } from "../lib/sqlite/group_commit.ts";
import type { Database } from "../lib/sqlite/open.ts";
import { openStore } from "../lib/store/store.ts";
import { FakeProcesses, FakeRegistry } from "../tests/helpers/queue_rig.ts";
import { withTempDir } from "../tests/helpers/temp.ts";
import { median, verdict } from "./helpers/figures.ts";

const clock = systemClock;
const BODY = "please rebase onto main and run the tests again; ".repeat(4);

/** What a straightforward service would do: a transaction of its own for every request. */
class SingleCommit implements Commit {
  constructor(readonly db: Database) {}
  run<T>(work: () => T): Promise<T> {
    this.db.exec("BEGIN IMMEDIATE");
    try {
      const value = work();
      this.db.exec("COMMIT");
      return Promise.resolve(value);
    } catch (error) {
      this.db.exec("ROLLBACK");
      return Promise.reject(error);
    }
  }
  drain(): Promise<void> {
    return Promise.resolve();
  }
}

async function open(path: string, grouped: boolean) {
  const { db, store } = await openStore(path, { busyTimeoutMs: 1000, clock });
  const processes = new FakeProcesses();
  const queue = new Queue({
    store,
    commit: grouped
      ? new GroupCommit(db, { path, clock, busyTimeoutMs: 1000 })
      : new SingleCommit(db),
    attachments: new Attachments(processes),
    registry: new FakeRegistry(["beta"]),
    clock,
    random: systemRandom,
    log: silentLog,
    policyFor: () => DEFAULT_POLICY,
    processes,
  });
  await queue.start();
  return { db, queue, processes };
}

let keys = 0;
function send(queue: Queue) {
  return queue.send({
    client_id: "bench",
    idempotency_key: `key-${keys++}`,
    sender_repo: "local",
    target_repo: "beta",
    provenance: "cli",
    body: BODY,
  }, {});
}

/** Sends a second with `width` clients that each wait for their answer. */
async function rate(queue: Queue, width: number, count: number): Promise<number> {
  let left = count;
  const started = performance.now();
  await Promise.all(Array.from({ length: width }, async () => {
    while (left-- > 0) await send(queue);
  }));
  return count / (performance.now() - started) * 1000;
}

async function throughput(dir: string): Promise<void> {
  const grouped = await open(`${dir}/grouped.sqlite3`, true);
  const single = await open(`${dir}/single.sqlite3`, false);
  console.log("durable sends a second (median of 5 turns, both ways in each turn)");
  for (const width of [1, 16, 64]) {
    const rates: [number[], number[]] = [[], []];
    for (let turn = 0; turn < 5; turn++) {
      rates[0].push(await rate(grouped.queue, width, 2000));
      rates[1].push(await rate(single.queue, width, 2000));
    }
    const [a, b] = [median(rates[0]), median(rates[1])];
    console.log(
      `  ${String(width).padStart(2)} clients   group commit ${a.toFixed(0).padStart(6)}` +
        `   one transaction each ${b.toFixed(0).padStart(6)}   ${(a / b).toFixed(1)}x`,
    );
  }
  for (const { db, queue } of [grouped, single]) {
    await queue.stop();
    db.close();
  }
}

/** Rows as deliveries of long ago would have left them. */
function fillHistory(db: Database, rows: number): void {
  db.exec(`INSERT OR IGNORE INTO endpoints (ref, endpoint_id, generation, session, protocol,
    capabilities, first_seen_at, last_seen_at) VALUES (1, 'tmux-amq-1', 'g', 's', '0.1', '[]', 0, 0)`);
  const start = Number(db.prepare("SELECT coalesce(max(seq), 0) AS n FROM messages").get()!.n);
  const step = 50_000;
  for (let from = start; from < rows; from += step) {
    const to = Math.min(rows, from + step);
    db.prepare(`WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO messages (message_id, client_id, idempotency_key, request_digest, sender_repo,
        target_repo, provenance, state, attempt_count, max_attempts, ack_mode, created_at,
        updated_at, injected_at, eligible_at, metadata, body)
      SELECT printf('%026d', i), 'old', 'old-' || i, randomblob(32), 'local', 'beta', 'cli',
        'injected', 1, 4, 'injected', i, i, i, i, '{}', ? FROM n`).run(from + 1, to, BODY);
    db.prepare(`INSERT INTO attempts (message, ordinal, attempt, endpoint, started_at, ended_at,
      outcome) SELECT seq, 1, 1, 1, seq, seq, 'written' FROM messages WHERE seq > ? AND seq <= ?`)
      .run(from, to);
  }
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

/** Milliseconds of one message after the other: until it is answered, leased and settled. */
interface Costs {
  send: number[];
  /** From the gate's opening to the delivery. */
  lease: number[];
  settle: number[];
}

async function costs(path: string, count: number): Promise<Costs> {
  const { db, queue, processes } = await open(path, true);
  const broker = processes.start(4000);
  processes.start(1, "g");
  const endpointRef = await queue.registerEndpoint({
    endpointId: "tmux-amq-1",
    generation: "g",
    session: "s",
    protocol: "0.1",
    capabilities: [],
  });
  let delivered = (_: Delivery) => {};
  const attached = await queue.attach({
    endpointRef,
    endpointId: "tmux-amq-1",
    repo: "beta",
    path: "/repos/beta",
    command: ["cat"],
    mode: "trigger",
    broker,
    workerPid: 4001,
    instance: "bench",
    windowId: "@1",
    attachedAt: clock.now(),
  }, { deliver: (delivery) => delivered(delivery) });
  const times: Costs = { send: [], lease: [], settle: [] };
  for (let i = 0; i < count; i++) {
    // Closed while sending, so that the send is measured alone.
    queue.setGate(attached, false);
    const began = performance.now();
    await send(queue);
    const sent = performance.now();
    const delivery = new Promise<Delivery>((resolve) => delivered = resolve);
    queue.setGate(attached, true);
    const { leaseToken } = await delivery;
    const leased = performance.now();
    await queue.settle(attached, { lease_token: leaseToken, outcome: "written" });
    times.send.push(sent - began);
    times.lease.push(leased - sent);
    times.settle.push(performance.now() - leased);
  }
  await queue.stop();
  db.close();
  return times;
}

/** Two databases that differ in their history alone, in turns: the machine's moods hit both. */
async function growth(dir: string, small: number, large: number): Promise<void> {
  const paths = [];
  for (const size of [small, large]) {
    const path = `${dir}/history-${size}.sqlite3`;
    const { db, queue } = await open(path, true);
    await queue.stop();
    fillHistory(db, size);
    db.close();
    await costs(path, 200); // warm
    paths.push(path);
  }
  const rounds: Costs[][] = [];
  for (let turn = 0; turn < 5; turn++) {
    rounds.push([await costs(paths[0]!, 400), await costs(paths[1]!, 400)]);
  }
  console.log(`cost of one message with ${small} and with ${large} messages of history (medians)`);
  for (const what of ["send", "lease", "settle"] as const) {
    const of = (side: number) => rounds.map((round) => median(round[side]![what]));
    const ratio = median(rounds.map((r) => median(r[1]![what]) / median(r[0]![what])));
    console.log(
      `  ${what.padEnd(7)} ${median(of(0)).toFixed(3)} ms   ${median(of(1)).toFixed(3)} ms   ` +
        `${ratio.toFixed(2)}x   ${verdict(ratio < 1.3, "under 1.3x")}`,
    );
  }
}

await withTempDir(async (dir) => {
  await throughput(dir);
  await growth(dir, 1000, Number(Deno.args[0] ?? 100_000));
});
