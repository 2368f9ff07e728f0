/** Random histories of the real queue over a real database, against a second, simple description. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { TamqError } from "../../lib/base/errors.ts";
import { DEFAULT_POLICY } from "../../lib/model/retry_schedule.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { QueueModel, type Repo, REPOS } from "../helpers/queue_model.ts";
import { type FakeBroker, QueueRig } from "../helpers/queue_rig.ts";
import { withTempDir } from "../helpers/temp.ts";

const SECOND = 1000;
const LEASE = 30 * SECOND;

class World {
  readonly ids: string[] = [];
  /** The window attached to each repository, and everything handed to its windows so far. */
  readonly brokers = new Map<Repo, FakeBroker>();
  readonly tokens = new Map<Repo, string>();
  readonly pids = new Map<Repo, number>();
  readonly handed = new Map<Repo, string[]>(REPOS.map((repo) => [repo, []]));
  #seen = new Map<FakeBroker, number>();
  #nextPid = 1000;
  /** Pid of the tmux server; its start is the number of the run. */
  server = 100;

  constructor(readonly rig: QueueRig, readonly model: QueueModel) {
    rig.processes.start(this.server, "0");
  }

  get endpointId(): string {
    return `tmux-amq-${this.server}`;
  }

  pid(repo: Repo): number {
    const pid = this.pids.get(repo) ?? this.#nextPid++;
    this.pids.set(repo, pid);
    return pid;
  }

  /** Takes note of new deliveries. */
  collect(): void {
    for (const [repo, broker] of this.brokers) {
      for (const delivery of broker.deliveries.slice(this.#seen.get(broker) ?? 0)) {
        this.handed.get(repo)!.push(delivery.messageId);
        this.tokens.set(repo, delivery.leaseToken);
      }
      this.#seen.set(broker, broker.deliveries.length);
    }
  }

  /** The real queue and the model must tell the same story, message by message. */
  compare(): void {
    const { rig, model } = this;
    this.collect();
    const expected = model.messages.map((message, index) => ({
      id: this.ids[index],
      state: message.state,
      attempts: message.attempts,
      leased: message.lease !== undefined,
      reason: message.reason,
      next: message.next || null,
      rows: message.deliveries,
      bound: message.bound === undefined ? undefined : String(message.bound),
    })).map((facts, index) => model.messages[index]!.purged ? facts.id : facts);
    const actual = this.ids.map((id) => {
      const row = rig.store.messages.byId(id);
      if (row === undefined) return id;
      return {
        id,
        state: row.state,
        attempts: row.attemptCount,
        leased: row.leaseToken !== null,
        reason: row.lastFailureReason,
        next: row.nextAttemptAt,
        rows: rig.store.attempts.of(row.seq).length,
        bound: rig.store.endpoints.get(row.endpointRef ?? -1)?.generation,
      };
    });
    assert.deepEqual(actual, expected);
    for (const [repo, ids] of this.handed) {
      const expected = model.handed.map((index) =>
        model.messages[index]!.repo === repo ? this.ids[index] : undefined
      );
      assert.deepEqual(ids, expected.filter((id) => id !== undefined), repo);
    }
    const counts: Record<string, number> = {};
    for (const { state, purged } of model.messages) {
      if (!purged) counts[state] = (counts[state] ?? 0) + 1;
    }
    const summary = rig.queue.summary();
    for (const [state, count] of Object.entries(summary.states)) {
      assert.equal(count, counts[state] ?? 0, state);
    }
    assert.equal(summary.activeLeases, model.messages.filter((message) => message.lease).length);
  }
}

interface Step {
  readonly name: string;
  /** Undefined when the step makes no sense now. */
  readonly run: (world: World) => Promise<unknown> | undefined;
}

async function reason(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "ok";
  } catch (error) {
    return (error as TamqError).reason;
  }
}

const repo = fc.constantFrom(...REPOS);
const index = fc.nat(7);

interface Sent {
  readonly repo: Repo;
  readonly key: number;
  readonly body: string;
  /** It names the open endpoint. */
  readonly here: boolean;
}

async function sendTwice({ rig, model, ids, endpointId }: World, sent: Sent): Promise<void> {
  const at = model.messages.findIndex((message) => message.key === sent.key);
  const expected = model.send(sent, rig.clock.now());
  const request = rig.request({
    idempotency_key: `k${sent.key}`,
    target_repo: sent.repo,
    body: sent.body,
    ...sent.here ? { endpoint_id: endpointId } : {},
  });
  const answers = await Promise.allSettled([
    rig.queue.send(request, {}),
    rig.queue.send(request, {}),
  ]);
  await rig.settled();
  const [first, second] = answers;
  if (expected !== "new" && expected !== "same") {
    for (const answer of answers) {
      assert.equal(answer.status, "rejected");
      assert.equal((answer.reason as TamqError).reason, expected);
    }
    return;
  }
  assert.ok(first.status === "fulfilled" && second.status === "fulfilled");
  assert.equal(first.value.deduplicated, expected === "same");
  assert.equal(second.value.deduplicated, true);
  assert.equal(second.value.message_id, first.value.message_id);
  if (expected === "new") {
    assert.ok(!ids.includes(first.value.message_id));
    ids.push(first.value.message_id);
  } else assert.equal(first.value.message_id, ids[at]);
}

const send = fc.record({
  repo,
  key: fc.nat(9),
  body: fc.constantFrom("one", "two"),
  here: fc.boolean(),
}).map((sent): Step => ({
  name: `send ${sent.repo} key ${sent.key} ${sent.body}${sent.here ? " here" : ""}`,
  run: (world) => sendTwice(world, sent),
}));

/** The same request again, which binds a message of an endpoint that is gone to the open one. */
const repeat = index.map((i): Step => ({
  name: `repeat ${i} here`,
  run: (world) => {
    const message = world.model.messages[i];
    return message === undefined ? undefined : sendTwice(world, { ...message, here: true });
  },
}));

const gate = fc.record({ repo, open: fc.boolean() }).map(({ repo, open }): Step => ({
  name: `gate ${repo} ${open ? "open" : "closed"}`,
  run: ({ rig, model, brokers }) => {
    const broker = brokers.get(repo);
    if (broker === undefined) return undefined;
    model.gate(repo, open);
    rig.queue.setGate(broker.attached, open);
    return rig.settled();
  },
}));

const settle = fc.record({
  repo,
  outcome: fc.constantFrom("written", "written", "failed", "stalled"),
  scope: fc.constantFrom("target", "message"),
}).map(({ repo, outcome, scope }): Step => ({
  name: `settle ${repo} ${outcome} ${scope}`,
  run: async ({ rig, model, brokers, tokens }) => {
    const broker = brokers.get(repo);
    const lease_token = tokens.get(repo);
    if (broker === undefined || lease_token === undefined) return;
    const expected = model.settle(repo, outcome, scope as "target");
    const answer = await rig.queue.settle(broker.attached, {
      lease_token,
      outcome: outcome as "written",
      scope: scope as "target",
    });
    await rig.settled();
    assert.equal(answer.accepted, expected);
  },
}));

const advance = fc.constantFrom(1, 1, 5, 15, 30, 60, 3600).map((seconds): Step => ({
  name: `advance ${seconds} s`,
  run: ({ rig, model }) => {
    model.advance(seconds * SECOND);
    return rig.advance(seconds * SECOND);
  },
}));

const ack = index.map((i): Step => ({
  name: `ack ${i}`,
  run: async ({ rig, model, ids }) => {
    if (ids[i] === undefined) return;
    const { purged } = model.messages[i]!;
    if (!purged) model.ack(i);
    assert.equal(await reason(rig.queue.ack(ids[i])), purged ? "unknown_message" : "ok");
    await rig.settled();
  },
}));

const retryOrCancel = fc.record({ i: index, verb: fc.constantFrom("retry", "cancel") })
  .map(({ i, verb }): Step => ({
    name: `${verb} ${i}`,
    run: async ({ rig, model, ids }) => {
      const id = ids[i];
      if (id === undefined) return;
      const { purged, lease } = model.messages[i]!;
      const leased = lease !== undefined;
      const allowed = !purged && (verb === "retry" ? model.retry(i) : model.cancel(i));
      const got = await reason(verb === "retry" ? rig.queue.retry(id, {}) : rig.queue.cancel(id));
      await rig.settled();
      const refusal = purged
        ? "unknown_message"
        : verb === "cancel" && leased
        ? "already_leased"
        : "invalid_state";
      assert.equal(got, allowed ? "ok" : refusal);
    },
  }));

const detach = fc.record({ repo, died: fc.boolean() }).map(({ repo, died }): Step => ({
  name: `${died ? "kill" : "detach"} ${repo}`,
  run: async (world) => {
    const { rig, model, brokers, pids } = world;
    const broker = brokers.get(repo);
    if (broker === undefined) return;
    if (died) {
      rig.processes.end(world.pid(repo));
      pids.delete(repo);
    }
    model.detach(repo, died);
    brokers.delete(repo);
    await rig.queue.detach(broker.attached);
    await rig.settled();
  },
}));

interface Opened {
  readonly repo: Repo;
  readonly open: boolean;
  /** It brings the outcome of its last delivery. */
  readonly report: boolean;
}

async function open(world: World, { repo, open, report }: Opened): Promise<void> {
  const { rig, model, brokers, tokens, server } = world;
  const lease_token = tokens.get(repo);
  const outstanding = report && lease_token !== undefined
    ? { lease_token, outcome: "written" as const }
    : undefined;
  model.attach(repo, open, outstanding !== undefined);
  const spec = { repo, broker: world.pid(repo), server, open, outstanding };
  brokers.set(repo, await rig.attach(spec));
}

const attach = fc.record({ repo, open: fc.boolean(), report: fc.boolean() })
  .map((opened): Step => ({
    name: `attach ${opened.repo} ${opened.open ? "open" : "closed"}${
      opened.report ? " with report" : ""
    }`,
    run: async (world) => {
      const { rig, brokers, server } = world;
      const { repo } = opened;
      if (!brokers.has(repo)) return await open(world, opened);
      const broker = rig.processes.identify(world.pid(repo) + 1) === undefined ? 77_777 : 0;
      if (broker === 0) return;
      assert.equal(await reason(rig.attach({ repo, broker, server })), "already_attached");
    },
  }));

const restart = fc.record({
  jump: fc.constantFrom(0, 0, 3600, -3600, 72 * 3600, -72 * 3600),
  // Opening the file again takes as long as a whole history: one restart in four does so.
  reopen: fc.constantFrom(true, false, false, false),
})
  .map(({ jump, reopen }): Step => ({
    name: `restart${reopen ? " of the process" : ""}, wall clock ${jump} s`,
    run: async ({ rig, model, brokers }) => {
      await (reopen ? rig.crash() : rig.settled());
      brokers.clear();
      rig.clock.jump(jump * SECOND);
      await (reopen ? rig.boot() : rig.rewire());
      model.restart(rig.clock.now());
    },
  }));

const server = fc.record({ samePid: fc.boolean(), opens: fc.constantFrom("none", "same", "all") })
  .map(({ samePid, opens }): Step => ({
    name: `another tmux server${samePid ? " of the same pid" : ""}, opens ${opens}`,
    run: async (world) => {
      const { rig, model, brokers, pids } = world;
      for (const pid of pids.values()) rig.processes.end(pid);
      pids.clear();
      rig.processes.end(world.server);
      if (!samePid) world.server++;
      const before = [...brokers];
      brokers.clear();
      model.nextRun(world.endpointId);
      rig.processes.start(world.server, String(model.run));
      for (const [, { attached }] of before) await rig.queue.detach(attached);
      await rig.settled();
      const repos = opens === "none" ? [] : opens === "all" ? REPOS : before.map(([repo]) => repo);
      for (const repo of repos) await open(world, { repo, open: true, report: false });
    },
  }));

const purge = fc.oneof(
  fc.record({ all: fc.constant(true) }),
  fc.record(
    { ofMessage: index, repo, state: fc.constantFrom("injected", "acknowledged", "failed") },
    { requiredKeys: [] },
  ),
).map((filters): Step => {
  const { all, ofMessage, repo, state } = filters as Partial<
    { all: boolean; ofMessage: number; repo: Repo; state: "failed" }
  >;
  return {
    name: `purge ${JSON.stringify(filters)}`,
    run: async ({ rig, model }) => {
      const before = model.messages[ofMessage ?? -1]?.createdAt;
      if (![all, before, repo, state].some((filter) => filter !== undefined)) return;
      // Whatever came due while no service ran is done by then; the purge itself takes no time.
      model.advance(SECOND);
      await rig.advance(SECOND);
      const expected = model.purge({ all, before, repo, state });
      let over = false;
      const purging = rig.queue.purge({
        execute: true,
        repo,
        state,
        ...before === undefined ? {} : { before: new Date(before).toISOString() },
        ...all === undefined ? {} : { max_bytes: 0 },
      }).finally(() => over = true);
      // It rests between its pieces, for no time when they took none.
      while (!over) await rig.advance(0);
      const { messages, done } = await purging;
      assert.deepEqual({ messages, done }, { messages: expected, done: true });
    },
  };
});

const jump = fc.constantFrom(3600, -3600, 72 * 3600).map((seconds): Step => ({
  name: `wall clock ${seconds} s`,
  run: ({ rig }) => {
    rig.clock.jump(seconds * SECOND);
    return undefined;
  },
}));

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: send },
    { weight: 2, arbitrary: repeat },
    { weight: 3, arbitrary: gate },
    { weight: 7, arbitrary: settle },
    { weight: 5, arbitrary: advance },
    { weight: 1, arbitrary: ack },
    { weight: 2, arbitrary: retryOrCancel },
    { weight: 2, arbitrary: detach },
    { weight: 4, arbitrary: attach },
    { weight: 1, arbitrary: restart },
    { weight: 2, arbitrary: server },
    { weight: 1, arbitrary: purge },
    { weight: 1, arbitrary: jump },
  ),
  // Many short histories find more than few long ones; some long ones are among them all the same.
  { minLength: 5, maxLength: faultCount("MODEL_STEPS", 24), size: "max" },
);

/** A file system in memory where there is one: what is compared here is not what survives. */
const MEMORY = "/dev/shm";

function inMemory(): string | undefined {
  try {
    return Deno.statSync(MEMORY).isDirectory ? MEMORY : undefined;
  } catch {
    return undefined;
  }
}

function checkFile({ db }: QueueRig): void {
  assert.deepEqual(Object.values(db.prepare("PRAGMA integrity_check").get()!), ["ok"]);
  assert.equal(db.prepare("PRAGMA foreign_key_check").all().length, 0);
}

Deno.test("[T-10] [T-11] [T-12] [T-18] [T-19] [T-26] [Q-08] random histories go as the model says", () =>
  withTempDir(async (dir) => {
    const rig = new QueueRig(`${dir}/tamq.sqlite3`);
    await rig.boot();
    let run = 0;
    const seed = Number(Deno.env.get("TAMQ_SEED")) || new Seeded().seed & 0x7fffffff;
    const numRuns = faultCount("MODEL_RUNS", 10_000);
    console.log(`${numRuns} histories, TAMQ_SEED=${seed}`);
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (history, acknowledged) => {
        await rig.recycle();
        rig.policy = {
          ...DEFAULT_POLICY,
          ackMode: acknowledged ? "acknowledged" : "injected",
          maxAttempts: 3,
          readySeconds: 1e8,
        };
        const model = new QueueModel(
          {
            acknowledged,
            maxAttempts: 3,
            backoff: DEFAULT_POLICY.backoffSeconds.map((seconds) => seconds * SECOND),
            lease: LEASE,
            ack: 30 * SECOND,
          },
          rig.clock.now(),
          "tmux-amq-100",
        );
        const world = new World(rig, model);
        const told: string[] = [];
        try {
          for (const step of history) {
            told.push(step.name);
            await step.run(world);
            world.compare();
          }
          if (++run % 25 === 0) checkFile(rig);
        } catch (error) {
          throw new Error(`${told.join("\n")}\n${(error as Error).message}`, { cause: error });
        }
      }),
      { numRuns, seed },
    );
    await rig.settled();
    checkFile(rig);
    rig.db.close();
  }, inMemory()));
