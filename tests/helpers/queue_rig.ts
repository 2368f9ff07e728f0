/** A queue over a real database file, with a registry, processes, windows and a clock that tests own. */
import { Attachments } from "../../lib/attachments.ts";
import type { Attached } from "../../lib/attachments.ts";
import type { ProcessIdentity } from "../../lib/base/proc.ts";
import type { Random } from "../../lib/base/random.ts";
import { silentLog } from "../../lib/base/log.ts";
import type { GuardPolicy, RoutingPolicy } from "../../lib/model/controls.ts";
import type { Mode } from "../../lib/model/endpoint.ts";
import type { Delivery, Registry, Window } from "../../lib/model/ports.ts";
import { DEFAULT_POLICY, type DeliveryPolicy } from "../../lib/model/retry_schedule.ts";
import type { RequestOf } from "../../lib/protocol/operations.ts";
import type { Settlement } from "../../lib/protocol/schema.ts";
import { type Origin, Queue } from "../../lib/queue.ts";
import { GroupCommit } from "../../lib/sqlite/group_commit.ts";
import type { Database } from "../../lib/sqlite/open.ts";
import { openStore, type Store } from "../../lib/store/store.ts";
import { FakeClock } from "./clock.ts";
import { withTempDir } from "./temp.ts";

/** Processes that live until a test ends them. */
export class FakeProcesses {
  readonly #living = new Map<number, string>();
  start(pid: number, start = `boot:${pid}`): ProcessIdentity {
    this.#living.set(pid, start);
    return { pid, start };
  }
  end(pid: number): void {
    this.#living.delete(pid);
  }
  identify(pid: number): ProcessIdentity | undefined {
    const start = this.#living.get(pid);
    return start === undefined ? undefined : { pid, start };
  }
}

export class FakeRegistry implements Registry {
  readonly source = "/registry/repos.csv";
  /** Names in order; a name listed twice is ambiguous. */
  rows: string[];
  constructor(rows: string[]) {
    this.rows = rows;
  }
  names(): readonly string[] {
    return [...new Set(this.rows)];
  }
  find(name: string) {
    const count = this.rows.filter((row) => row === name).length;
    if (count === 0) return "unknown" as const;
    return count > 1 ? "ambiguous" as const : { name, path: `/repos/${name}` };
  }
}

/** Repeatable bytes: xorshift32. */
export function seededRandom(seed = 1): Random {
  let state = seed || 1;
  return {
    bytes(length) {
      return Uint8Array.from({ length }, () => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return state & 0xff;
      });
    },
  };
}

/** A broker's side of one window. */
export interface FakeBroker {
  readonly attached: Attached;
  readonly window: Window;
  /** Everything handed to it, oldest first. */
  readonly deliveries: Delivery[];
  readonly origin: Origin;
  readonly workerOrigin: Origin;
}

export interface WindowSpec {
  repo?: string;
  /** Pid of the tmux server. */
  server?: number;
  broker?: number;
  instance?: string;
  open?: boolean;
  /** tmux session; windows of one session were opened together. */
  session?: string;
  mode?: Mode;
  outstanding?: Settlement;
  readonly inProgress?: string | null;
}

export class QueueRig {
  clock: FakeClock;
  readonly processes = new FakeProcesses();
  readonly registry = new FakeRegistry(["alpha", "beta", "gamma"]);
  readonly random = seededRandom();
  policy: DeliveryPolicy = DEFAULT_POLICY;
  guard: GuardPolicy | undefined;
  routing: RoutingPolicy | undefined;
  db!: Database;
  store!: Store;
  commit!: GroupCommit;
  attachments!: Attachments;
  queue!: Queue;
  #wipe: ReturnType<Database["prepare"]>[] | undefined;
  #nextPid = 5000;
  #keys = 0;

  constructor(readonly path: string, clock = new FakeClock()) {
    this.clock = clock;
  }

  /** Starts a service on the database, as a new process would. */
  async boot(): Promise<void> {
    const { db, store } = await openStore(this.path, { busyTimeoutMs: 2000, clock: this.clock });
    this.db = db;
    this.store = store;
    this.#wipe = undefined;
    await this.#wire();
  }

  /**
   * Empties the database and starts over with a clock of its own: for tests of thousands of
   * histories, where making a new file would cost many times the history itself.
   */
  async recycle(): Promise<void> {
    await this.settled();
    this.#wipe ??= wiping(this.db);
    // The triggers keep the counters, which so go back to nothing with the rows.
    for (const statement of this.#wipe) statement.run();
    this.clock = new FakeClock();
    await this.#wire();
  }

  /** A new service on the same connection: all that a process knows is gone, the file stays open. */
  async rewire(): Promise<void> {
    await this.settled();
    this.clock.dropTimers();
    await this.#wire();
  }

  async #wire(): Promise<void> {
    const { db, store } = this;
    this.commit = new GroupCommit(db, { path: this.path, clock: this.clock, busyTimeoutMs: 2000 });
    this.attachments = new Attachments(this.processes);
    this.queue = new Queue({
      store,
      commit: this.commit,
      attachments: this.attachments,
      registry: this.registry,
      clock: this.clock,
      random: this.random,
      log: silentLog,
      policyFor: () => this.policy,
      guard: this.guard,
      routing: this.routing,
      processes: this.processes,
    });
    await this.queue.start();
  }

  /** Ends the service without a word, as `kill -9` would between two commits. */
  async crash(): Promise<void> {
    await this.settled();
    this.clock.dropTimers();
    this.db.close();
  }

  async restart(): Promise<void> {
    await this.crash();
    await this.boot();
  }

  async attach(spec: WindowSpec = {}): Promise<FakeBroker> {
    const { repo = "beta", server = 100, open = true } = spec;
    const tmux = this.processes.identify(server) ?? this.processes.start(server);
    const endpointRef = await this.queue.registerEndpoint({
      endpointId: `tmux-amq-${server}`,
      generation: tmux.start,
      session: spec.session ?? "work",
      protocol: "0.1",
      capabilities: ["bounded_delivery_ack_v1"],
    });
    const pid = spec.broker ?? this.#nextPid++;
    const broker = this.processes.identify(pid) ?? this.processes.start(pid);
    const window: Window = {
      endpointRef,
      endpointId: `tmux-amq-${server}`,
      repo,
      path: `/repos/${repo}`,
      command: ["agent"],
      mode: spec.mode ?? "trigger",
      broker,
      workerPid: pid + 100_000,
      instance: spec.instance ?? `instance-${pid}`,
      windowId: `@${pid}`,
      session: spec.session ?? "work",
      attachedAt: this.clock.now(),
    };
    const deliveries: Delivery[] = [];
    const port = { deliver: (delivery: Delivery) => void deliveries.push(delivery) };
    const attached = await this.queue.attach(window, port, {
      outstanding: spec.outstanding,
      inProgress: spec.inProgress,
    });
    if (open) this.queue.setGate(attached, true);
    await this.settled();
    return {
      attached,
      window,
      deliveries,
      origin: { owner: { attached, isBroker: true } },
      workerOrigin: { owner: { attached, isBroker: false } },
    };
  }

  request(fields: Partial<RequestOf<"send">> = {}): RequestOf<"send"> {
    return {
      client_id: "test",
      idempotency_key: `key-${this.#keys++}`,
      sender_repo: "local",
      target_repo: "beta",
      provenance: "cli",
      body: "please rebase",
      ...fields,
    };
  }

  /** Sends and waits until whatever follows from it is done; returns the id. */
  async send(fields: Partial<RequestOf<"send">> = {}, origin: Origin = {}): Promise<string> {
    const { message_id } = await this.queue.send(this.request(fields), origin);
    await this.settled();
    return message_id;
  }

  async settle(
    broker: FakeBroker,
    outcome: Settlement["outcome"] = "written",
    extra: Partial<Settlement> = {},
  ) {
    const lease_token = broker.deliveries.at(-1)!.leaseToken;
    const answer = await this.queue.settle(broker.attached, { lease_token, outcome, ...extra });
    await this.settled();
    return answer;
  }

  /** Moves time and waits for what came due. */
  async advance(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.settled();
  }

  /** Resolves when nothing is queued any more: commits, claims and what follows from them. */
  async settled(): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      await this.commit.drain();
      // A turn of the microtask queue lets answered jobs hand in their successors.
      let turns = 0;
      while (turns++ < 8) await Promise.resolve();
      quiet = this.commit.pending === 0 ? quiet + 1 : 0;
    }
  }

  state(id: string) {
    return this.queue.message(id).message;
  }
}

function wiping(db: Database) {
  const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name NOT LIKE 'sqlite_%'
    AND name NOT IN ('schema_migrations', 'message_counts', 'purged_total')
    ORDER BY rowid DESC`).all(); // what refers to another table was made after it
  return [
    "BEGIN",
    ...tables.map(({ name }) => `DELETE FROM ${name}`),
    "UPDATE purged_total SET count = 0",
    "COMMIT",
  ].map((sql) => db.prepare(sql));
}

/** Runs `body` with a booted rig in a temporary folder. */
export function withQueue(
  body: (rig: QueueRig) => Promise<void>,
  prepare: (rig: QueueRig) => void = () => {},
): Promise<void> {
  return withTempDir(async (dir) => {
    const rig = new QueueRig(`${dir}/tamq.sqlite3`);
    prepare(rig);
    await rig.boot();
    try {
      await body(rig);
    } finally {
      await rig.settled();
      rig.db.close();
    }
  });
}
