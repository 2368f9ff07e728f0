/** Executions, their reservations and the one permit of each (G-09, G-18, G-20). */
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { TamqError } from "../../base/errors.ts";
import { newId } from "../../base/ids.ts";
import { ResultCode } from "../gen/common_pb.ts";
import {
  type GetExecutionPermitRequest,
  GetExecutionPermitRequestSchema,
  GetExecutionPermitResponseSchema,
} from "../gen/dispatcher_pb.ts";
import {
  type ExecutionBinding,
  type ExecutionPermit,
  ExecutionPermitSchema,
} from "../gen/execution_pb.ts";
import { conflict, contentDigest, once, scopeOf, sha256 } from "../idempotency.ts";
import type { FleetTx } from "../ports.ts";
import type { ExecutionRecord, ReservationRecord } from "../records.ts";
import type { CallContext } from "../rpc.ts";
import { answerMeta, checkSession, ownMeta } from "../session.ts";
import {
  approvedAgent,
  assertActive,
  bindingDigest,
  bindingFromJson,
  bindingToJson,
  type DispatcherCore,
  moveExecution,
  mustHave,
  sessionOf,
} from "./core.ts";

export function permitHandlers(core: DispatcherCore) {
  return {
    async getExecutionPermit(request: GetExecutionPermitRequest, { peer }: CallContext) {
      ownMeta(request.meta, peer);
      return await issuePermit(core, peer.name, request);
    },
  };
}

/** Issues the one permit of a reservation, for the session that the request shows. */
export async function issuePermit(
  core: DispatcherCore,
  agentId: string,
  request: GetExecutionPermitRequest,
) {
  const { store, clock, epoch } = core;
  const meta = request.meta!;
  const scope = scopeOf(agentId, meta);
  const digest = contentDigest(GetExecutionPermitRequestSchema, request);
  return await store.commit(async (tx) => {
    await assertActive(tx, epoch);
    const agent = (await approvedAgent(tx, agentId)).value;
    const session = checkSession(meta, sessionOf(agent, epoch));
    const reservation = await tx.get("reservation", request.reservationId);
    if (reservation === undefined || reservation.value.agentId !== agentId) {
      throw new TamqError("NOT_FOUND", "unknown_reservation", "no such reservation of this agent", {
        hint: "a reservation is made with its execution: tamq fleet run",
      });
    }
    // Also before a replay: what is released or fenced gives no leave any more.
    assertHeld(reservation.value);
    const asked = { method: "GetExecutionPermit", digest, now: clock.now() };
    return await once(tx, scope, asked, GetExecutionPermitResponseSchema, async () => {
      const { executionId, revision, fencingToken, permitId: earlier } = reservation.value;
      if (earlier !== "") {
        throw new TamqError("ALREADY_EXISTS", "permit_exists", `permit ${earlier} was issued`, {
          hint: "query the execution; there is no second permit for it",
        });
      }
      if (request.expectedRevision !== BigInt(revision)) {
        throw new TamqError(
          "ABORTED",
          "stale_revision",
          `the reservation is at revision ${revision}, not ${request.expectedRevision}`,
          { hint: "read it again before deciding anew" },
        );
      }
      const execution = (await mustHave(tx, executionId)).value;
      const binding = bindingDigest(bindingFromJson(execution.binding));
      if (request.binding === undefined || bindingDigest(request.binding) !== binding) {
        throw conflict(`execution ${executionId}`);
      }
      if (agent.admission !== "open") {
        throw new TamqError("FAILED_PRECONDITION", "admission_closed", `${agentId} is drained`, {
          hint: `let it take work again: tamq fleet resume ${agentId}`,
        });
      }
      const permit = create(ExecutionPermitSchema, {
        permitId: newId(clock, core.random),
        reservationId: request.reservationId,
        fencingToken: BigInt(fencingToken),
        dispatcherEpoch: epoch,
        bootId: session.bootId,
        sessionGeneration: BigInt(session.generation),
        deadlineUnixMs: BigInt(clock.now() + core.permitMs),
        bindingSha256: binding,
      });
      const { permitId } = permit;
      await tx.insert("permit", permitId, {
        permit: toJson(ExecutionPermitSchema, permit) as JsonObject,
        executionId,
      });
      await tx.update(
        "reservation",
        request.reservationId,
        reservation.revision,
        { ...reservation.value, permitId, revision: revision + 1 },
        `${agentId}/permitted`,
      );
      await moveExecution(tx, executionId, clock.now(), "permitted", "permit_issued", { permitId });
      return { meta: answerMeta(meta, epoch), result: ResultCode.APPLIED, permit };
    });
  });
}

function assertHeld({ state }: ReservationRecord): void {
  if (state === "held") return;
  throw new TamqError(
    "FAILED_PRECONDITION",
    `reservation_${state}`,
    `the reservation is ${state}; there is no permit for it`,
    { hint: "nothing is executed under it any more; what was, is found by a query" },
  );
}

export async function permitOf(
  tx: FleetTx,
  permitId: string,
): Promise<ExecutionPermit | undefined> {
  const found = await tx.get("permit", permitId);
  return found && fromJson(ExecutionPermitSchema, found.value.permit);
}

/** Makes an execution with its reservation; the same one again is the same one. */
export async function submit(
  core: DispatcherCore,
  binding: ExecutionBinding,
  prompt: string,
): Promise<ExecutionRecord> {
  const { store, clock, epoch } = core;
  if (binding.executionId === "" || binding.targetRepo === "" || prompt === "") {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "binding_incomplete",
      "an execution needs an id, an agent, a repository and a prompt",
    );
  }
  if (binding.contentSha256 !== sha256(prompt)) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "content_mismatch",
      "content_sha256 is not the prompt's",
    );
  }
  return await store.commit(async (tx) => {
    await assertActive(tx, epoch);
    const { executionId, agentId } = binding;
    const known = await tx.get("execution", executionId);
    if (known !== undefined) {
      const same = bindingDigest(bindingFromJson(known.value.binding)) === bindingDigest(binding);
      if (!same) throw conflict(`execution ${executionId}`);
      return known.value;
    }
    await approvedAgent(tx, agentId);
    const reservationId = newId(clock, core.random);
    const execution: ExecutionRecord = {
      binding: bindingToJson(binding),
      prompt,
      state: "reserved",
      reason: "submitted",
      reservationId,
      permitId: "",
      steps: [{ at: clock.now(), what: "reserved", why: "submitted" }],
    };
    await tx.insert("execution", executionId, execution, "reserved");
    await tx.insert("reservation", reservationId, {
      executionId,
      agentId,
      state: "held",
      revision: 1,
      fencingToken: await nextToken(tx),
      permitId: "",
    }, `${agentId}/held`);
    return execution;
  });
}

/** Gives a reservation up. Once there is a permit, only its agent knows what happened: refused. */
export async function release(core: DispatcherCore, executionId: string): Promise<void> {
  await core.store.commit(async (tx) => {
    await assertActive(tx, core.epoch);
    const execution = (await mustHave(tx, executionId)).value;
    if (execution.state === "released") return;
    const reservation = (await tx.get("reservation", execution.reservationId))!;
    const { agentId, permitId, revision } = reservation.value;
    if (permitId !== "") {
      throw new TamqError("FAILED_PRECONDITION", "permit_exists", `${executionId} has a permit`, {
        hint: "stop it at its agent instead, or wait until it has ended",
      });
    }
    const released = { ...reservation.value, state: "released", revision: revision + 1 } as const;
    const { reservationId } = execution;
    await tx.update(
      "reservation",
      reservationId,
      reservation.revision,
      released,
      `${agentId}/released`,
    );
    await moveExecution(tx, executionId, core.clock.now(), "released", "operator");
  });
}

/** Grows with every reservation; a lower one is an older one. */
async function nextToken(tx: FleetTx): Promise<number> {
  const counter = await tx.get("counter", "fencing");
  if (counter === undefined) {
    await tx.insert("counter", "fencing", { value: 1 });
    return 1;
  }
  const value = counter.value.value + 1;
  await tx.update("counter", "fencing", counter.revision, { value });
  return value;
}
