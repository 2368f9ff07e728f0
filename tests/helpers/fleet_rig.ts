/** A dispatcher and an agent in one process, without a network: their rules against real stores. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { systemRandom } from "../../lib/base/random.ts";
import { ActiveCalls } from "../../lib/fleet/agent/calls.ts";
import { type AgentCore, keepSession } from "../../lib/fleet/agent/core.ts";
import { agentHandlers } from "../../lib/fleet/agent/handlers.ts";
import {
  becomeActive,
  bindingFromJson,
  type DispatcherCore,
} from "../../lib/fleet/dispatcher/core.ts";
import { dispatcherHandlers } from "../../lib/fleet/dispatcher/handlers.ts";
import { submit } from "../../lib/fleet/dispatcher/permits.ts";
import { AgentService } from "../../lib/fleet/gen/agent_pb.ts";
import type { RequestMetaSchema, SessionBinding } from "../../lib/fleet/gen/common_pb.ts";
import { DispatcherService } from "../../lib/fleet/gen/dispatcher_pb.ts";
import { type ExecutionBinding, ExecutionBindingSchema } from "../../lib/fleet/gen/execution_pb.ts";
import { sha256 } from "../../lib/fleet/idempotency.ts";
import type { Peer } from "../../lib/fleet/identity.ts";
import type {
  Evidence,
  ExecutionAdapter,
  FactQueue,
  ObjectStore,
  Work,
} from "../../lib/fleet/ports.ts";
import type { Client, Handlers } from "../../lib/fleet/rpc.ts";
import { SqliteFleetStore } from "../../lib/fleet/store/sqlite.ts";
import { FakeClock } from "./clock.ts";
import { withTempDir } from "./temp.ts";

type BindingParts = Partial<Pick<ExecutionBinding, "agentId" | "taskId" | "targetRepo">>;

export const PROMPT = "look at the failing test";

export function peerOf(role: Peer["role"], name: string): Peer {
  return {
    fleet: "lab",
    role,
    name,
    uri: `tamq://lab/${role}/${name}`,
    fingerprint: "AB:CD",
    notAfter: Date.UTC(2031, 0, 1),
  };
}

/** A mock whose every call is counted, and whose answers a test decides. */
export class CountingAdapter implements ExecutionAdapter {
  readonly executed: string[] = [];
  readonly stoppedIds: string[] = [];
  evidence = new Map<string, Evidence>();
  /** Called in the middle of an execution. */
  during: (work: Work) => Promise<void> | void = () => {};
  constructor(readonly kind: "mock" | "wake" = "mock", readonly pausable = true) {}

  async execute(work: Work): Promise<Evidence> {
    this.executed.push(work.executionId);
    await this.during(work);
    const evidence = {
      messageId: `m-${work.executionId}`,
      messageState: "pending",
      outcome: "accepted",
    } as const;
    this.evidence.set(work.executionId, evidence);
    return evidence;
  }
  find(executionId: string): Promise<Evidence | undefined> {
    return Promise.resolve(this.evidence.get(executionId));
  }
  stop(executionId: string): Promise<boolean> {
    this.stoppedIds.push(executionId);
    return Promise.resolve(true);
  }
}

/** Handlers as a client of them, for one peer; messages go through their binary form's defaults. */
function direct<S extends typeof AgentService | typeof DispatcherService>(
  service: S,
  handlers: Handlers<S>,
  peer: Peer,
): Client<S> {
  const entries = Object.entries(service.method).map(([name, method]) => [
    name,
    async (request: MessageInitShape<typeof method.input>) =>
      create(
        method.output,
        await (handlers as Record<string, (r: unknown, c: unknown) => Promise<never>>)[name]!(
          create(method.input, request as never),
          { peer },
        ),
      ),
  ]);
  return Object.fromEntries(entries) as Client<S>;
}

export interface RigOptions {
  readonly adapter?: CountingAdapter;
  readonly queue?: FactQueue;
  readonly objects?: ObjectStore;
  readonly stopWaitMs?: number;
}

export class Rig {
  readonly clock = new FakeClock();
  readonly adapter: CountingAdapter;
  /** Doubts that the agent had of its session. */
  doubts = 0;
  core!: DispatcherCore;
  agentCore!: AgentCore;
  /** Called by the agent's certificate. */
  dispatcher!: Client<typeof DispatcherService>;
  /** Called by the dispatcher's certificate. */
  agent!: Client<typeof AgentService>;
  session!: SessionBinding;
  #operations = 0;

  constructor(readonly options: RigOptions) {
    this.adapter = options.adapter ?? new CountingAdapter();
  }

  meta(more: MessageInitShape<typeof RequestMetaSchema> = {}) {
    const operationId = `op-${++this.#operations}`;
    return {
      protocolVersion: "0.1",
      agentId: "a1",
      operationId,
      idempotencyKey: `key-${this.#operations}`,
      trace: { traceId: "t1", spanId: "s1" },
      session: this.session,
      ...more,
    } as MessageInitShape<typeof RequestMetaSchema>;
  }

  /** Another instance on the same store takes over, under a new epoch. */
  async takeOver(): Promise<
    { core: DispatcherCore; dispatcher: Client<typeof DispatcherService> }
  > {
    const epoch = await becomeActive(this.core, "another");
    const core = { ...this.core, epoch };
    return {
      core,
      dispatcher: direct(DispatcherService, dispatcherHandlers(core), peerOf("agent", "a1")),
    };
  }

  async activate(bootId: string, operationId: string, on = this.dispatcher) {
    return await on.activateAgent({
      meta: this.meta(),
      activationOperationId: operationId,
      cellId: "cell1",
      bootId,
    });
  }

  /** Opens a session and lets the agent keep it. */
  async join(bootId: string, operationId: string, on = this.dispatcher): Promise<SessionBinding> {
    const session = (await this.activate(bootId, operationId, on)).session!;
    await this.agentCore.store.commit((tx) =>
      keepSession(tx, {
        epoch: session.dispatcherEpoch,
        cellId: session.cellId,
        bootId: session.bootId,
        generation: Number(session.sessionGeneration),
      })
    );
    this.session = session;
    return session;
  }

  /** The agent as a process with that boot id. */
  asBoot(bootId: string): Client<typeof AgentService> {
    const core = { ...this.agentCore, bootId };
    const handlers = agentHandlers(core, this.options.stopWaitMs);
    return direct(AgentService, handlers, peerOf("dispatcher", "d1"));
  }

  binding(executionId: string, more: BindingParts = {}): ExecutionBinding {
    return create(ExecutionBindingSchema, {
      executionId,
      agentId: "a1",
      tenantId: 1n,
      taskId: 7n,
      targetRepo: "api",
      contentSha256: sha256(PROMPT),
      ...more,
    });
  }

  /** An execution with its reservation; returns what a permit is asked with. */
  async reserve(executionId: string, more: BindingParts = {}) {
    const execution = await submit(this.core, this.binding(executionId, more), PROMPT);
    return {
      reservationId: execution.reservationId,
      binding: bindingFromJson(execution.binding),
      expectedRevision: 1n,
    };
  }

  async permitted(executionId: string, more: BindingParts = {}) {
    const asked = await this.reserve(executionId, more);
    const { permit } = await this.dispatcher.getExecutionPermit({ meta: this.meta(), ...asked });
    return { binding: asked.binding, permit: permit!, prompt: PROMPT };
  }
}

/** Runs `body` with an agent `a1`, boot `b1`, that has joined. */
export async function withRig(
  body: (rig: Rig) => Promise<void>,
  options: RigOptions = {},
): Promise<void> {
  await withTempDir(async (dir) => {
    const rig = new Rig(options);
    const { clock, adapter } = rig;
    const open = (name: string) =>
      SqliteFleetStore.open({ path: `${dir}/${name}.sqlite3`, clock, busyTimeoutMs: 5000 });
    const stores = [await open("dispatcher"), await open("agent")] as const;
    try {
      const base = { store: stores[0], clock, random: systemRandom, permitMs: 60_000 };
      const { queue, objects } = options;
      const epoch = await becomeActive(base, "d1");
      rig.core = { ...base, epoch, ...(queue && { queue }), ...(objects && { objects }) };
      await stores[0].commit((tx) =>
        tx.insert("agent", "a1", {
          cellId: "cell1",
          address: "127.0.0.1:1",
          generation: 0,
          admission: "open",
          admissionGeneration: 1,
          unreachable: "",
        })
      );
      const agentPeer = peerOf("agent", "a1");
      rig.dispatcher = direct(DispatcherService, dispatcherHandlers(rig.core), agentPeer);
      rig.agentCore = {
        agentId: "a1",
        cellId: "cell1",
        bootId: "b1",
        store: stores[1],
        adapter,
        calls: new ActiveCalls(),
        clock,
        random: systemRandom,
        onDoubt: () => rig.doubts++,
      };
      rig.agent = rig.asBoot("b1");
      await rig.join("b1", "act-1");
      await body(rig);
    } finally {
      for (const store of stores) await store.close();
    }
  });
}
