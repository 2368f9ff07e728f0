/**
 * A process that sends through the queue as fast as it can and prints each answer once it has it,
 * until it is killed: `DATABASE FIRST-KEY [FILE]`, into the file when there is one. A window of its own
 * takes the deliveries. `TEST_SYNCHRONOUS` takes a weaker guarantee than the product's, to show that
 * a test can tell.
 */
import { Attachments } from "../../lib/attachments.ts";
import { systemClock } from "../../lib/base/clock.ts";
import { silentLog } from "../../lib/base/log.ts";
import { identify } from "../../lib/base/proc.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { DEFAULT_POLICY } from "../../lib/model/retry_schedule.ts";
import { Queue } from "../../lib/queue.ts";
import { GroupCommit } from "../../lib/sqlite/group_commit.ts";
import { openStore } from "../../lib/store/store.ts";
import { FakeRegistry } from "./queue_rig.ts";

const [path = "", first = "0", answers] = Deno.args;
const clock = systemClock;
const { db, store } = await openStore(path, { busyTimeoutMs: 2000, clock });
const weaker = Deno.env.get("TEST_SYNCHRONOUS");
if (weaker !== undefined) db.prepare(`PRAGMA synchronous = ${weaker}`).get();
const output = answers === undefined
  ? Deno.stdout
  : Deno.openSync(answers, { append: true, create: true });
const attachments = new Attachments({ identify });
const queue = new Queue({
  store,
  commit: new GroupCommit(db, { path, clock, busyTimeoutMs: 2000 }),
  attachments,
  registry: new FakeRegistry(["beta"]),
  clock,
  random: systemRandom,
  log: silentLog,
  policyFor: () => DEFAULT_POLICY,
});
await queue.start();

const me = identify(Deno.pid)!;
const endpointRef = await queue.registerEndpoint({
  endpointId: `tmux-amq-${Deno.pid}`,
  generation: me.start,
  session: "kill",
  protocol: "0.1",
  capabilities: [],
});
const window = {
  endpointRef,
  endpointId: `tmux-amq-${Deno.pid}`,
  repo: "beta",
  path: "/repos/beta",
  command: ["cat"],
  mode: "trigger" as const,
  broker: me,
  workerPid: Deno.pid + 1,
  instance: String(Deno.pid),
  windowId: "@1",
  attachedAt: clock.now(),
};
const attached = await queue.attach(window, {
  deliver: ({ leaseToken }) => {
    queueMicrotask(() => queue.settle(attached, { lease_token: leaseToken, outcome: "written" }));
  },
});
queue.setGate(attached, true);

const encoder = new TextEncoder();
let next = Number(first);

async function sender(): Promise<never> {
  for (;;) {
    const key = `key-${next++}`;
    const { message_id, deduplicated } = await queue.send({
      client_id: "kill",
      idempotency_key: key,
      sender_repo: "local",
      target_repo: "beta",
      provenance: "cli",
      body: `body of ${key}`,
    }, {});
    // One write a line: a pipe takes it whole or not at all.
    output.writeSync(encoder.encode(`${key} ${message_id} ${deduplicated}\n`));
  }
}

await Promise.all(Array.from({ length: 8 }, sender));
