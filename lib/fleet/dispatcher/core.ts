/** What all parts of a dispatcher share: its epoch, its store, and the sessions of its agents. */
import { fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import type { Clock } from "../../base/clock.ts";
import { TamqError } from "../../base/errors.ts";
import { newToken } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { type ExecutionBinding, ExecutionBindingSchema } from "../gen/execution_pb.ts";
import { contentDigest } from "../idempotency.ts";
import type { FactQueue, FleetStore, FleetTx, ObjectStore, Stored } from "../ports.ts";
import type { AgentRecord, ExecutionRecord, ExecutionState } from "../records.ts";
import type { Session } from "../session.ts";

export interface DispatcherCore {
  readonly store: FleetStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Of this active instance. */
  readonly epoch: string;
  /** Absent: the store itself is the queue. */
  readonly queue?: FactQueue;
  /** Absent: no uploads. */
  readonly objects?: ObjectStore;
  /** How long a permit is good for, milliseconds. */
  readonly permitMs: number;
}

const ACTIVE = "active";

/** Makes this instance the active one; whatever was active before can change nothing more (G-15). */
export async function becomeActive(
  core: Pick<DispatcherCore, "store" | "clock" | "random">,
  holder: string,
): Promise<string> {
  const epoch = newToken(core.random);
  await core.store.commit(async (tx) => {
    const record = { epoch, holder, since: core.clock.now() };
    const before = await tx.get("epoch", ACTIVE);
    if (before === undefined) await tx.insert("epoch", ACTIVE, record);
    else await tx.update("epoch", ACTIVE, before.revision, record);
  });
  return epoch;
}

/** Throws `epoch_superseded` once another instance is active: in the very transaction of a change. */
export async function assertActive(tx: FleetTx, epoch: string): Promise<void> {
  if ((await tx.get("epoch", ACTIVE))?.value.epoch === epoch) return;
  throw new TamqError("ABORTED", "epoch_superseded", "another dispatcher is active", {
    hint: "this instance has been replaced; speak to the active one",
  });
}

export async function approvedAgent(tx: FleetTx, agentId: string): Promise<Stored<AgentRecord>> {
  const agent = await tx.get("agent", agentId);
  if (agent !== undefined) return agent;
  throw new TamqError("PERMISSION_DENIED", "agent_not_approved", `${agentId}: not approved`, {
    hint: `approve it: tamq fleet approve ${agentId} --cell CELL --address HOST:PORT`,
  });
}

/** The session that is open under this epoch. */
export function sessionOf(agent: AgentRecord, epoch: string): Session | undefined {
  if (agent.bootId === undefined || agent.epoch === undefined) return undefined;
  const { cellId, bootId, generation } = agent;
  return { epoch, cellId, bootId, generation: agent.epoch === epoch ? generation : -1 };
}

export async function mustHave(tx: FleetTx, id: string): Promise<Stored<ExecutionRecord>> {
  const execution = await tx.get("execution", id);
  if (execution !== undefined) return execution;
  throw new TamqError("NOT_FOUND", "unknown_execution", `no execution ${id}`, {
    hint: "look with tamq fleet executions; do not make a substitute for it",
  });
}

/** Nothing more is expected of it. */
export function isFinal(state: ExecutionState): boolean {
  return ["applied", "failed", "refused", "released"].includes(state);
}

/** Moves an execution and writes down why. */
export async function moveExecution(
  tx: FleetTx,
  id: string,
  now: number,
  to: ExecutionState,
  why: string,
  more: Partial<Pick<ExecutionRecord, "permitId" | "receipt">> = {},
): Promise<void> {
  const { value, revision } = await mustHave(tx, id);
  const steps = [...value.steps.slice(-49), { at: now, what: to, why }];
  await tx.update(
    "execution",
    id,
    revision,
    { ...value, ...more, state: to, reason: why, steps },
    to,
  );
  if (!isFinal(to)) return;
  // Sessions to come have nothing to fence here any more.
  const reservation = await tx.get("reservation", value.reservationId);
  if (reservation?.value.state !== "held") return;
  const group = `${reservation.value.agentId}/done`;
  await tx.update(
    "reservation",
    value.reservationId,
    reservation.revision,
    reservation.value,
    group,
  );
}

export function bindingToJson(binding: ExecutionBinding): JsonObject {
  return toJson(ExecutionBindingSchema, binding) as JsonObject;
}

export function bindingFromJson(json: JsonObject): ExecutionBinding {
  return fromJson(ExecutionBindingSchema, json);
}

export function bindingDigest(binding: ExecutionBinding): string {
  return contentDigest(ExecutionBindingSchema, binding);
}
