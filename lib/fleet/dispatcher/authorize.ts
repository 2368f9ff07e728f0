/**
 * `ExecuteAuthorized` from the dispatcher's side: one decision an execution, written down before
 * anything is sent (G-07). For the isolated mock alone; no command leads here (G-18).
 */
import { TamqError } from "../../base/errors.ts";
import { AuthorizationDecision, type ExecuteAuthorizedRequestSchema } from "../gen/agent_pb.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { conflict, sha256 } from "../idempotency.ts";
import type { DecisionRecord } from "../records.ts";
import { AUTHORIZED_CONTRACT, bindingOf, FLEET_PROTOCOL } from "../session.ts";
import {
  approvedAgent,
  assertActive,
  bindingFromJson,
  type DispatcherCore,
  moveExecution,
  mustHave,
  sessionOf,
} from "./core.ts";

export interface Decision {
  readonly executionId: string;
  readonly operationId: string;
  readonly decision: "issued" | "refused";
  /** Exclusive; Unix epoch, milliseconds. */
  readonly deadline: number;
}

/**
 * Keeps the decision and takes the execution off the path of permits for good. The same decision
 * again changes nothing; another one, or a second operation, throws `idempotency_conflict`.
 */
export async function decide(core: DispatcherCore, asked: Decision): Promise<DecisionRecord> {
  const { executionId, operationId, decision, deadline } = asked;
  const digest = sha256(JSON.stringify([decision, deadline]));
  return await core.store.commit(async (tx) => {
    await assertActive(tx, core.epoch);
    const execution = (await mustHave(tx, executionId)).value;
    const known = (await tx.get("decision", executionId))?.value;
    if (known !== undefined) {
      if (known.operationId === operationId && known.digest === digest) return known;
      throw conflict(`decision on ${executionId}`);
    }
    if (execution.state !== "reserved") {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "not_reserved",
        `${executionId} is ${execution.state}; it is decided on only while it is reserved`,
      );
    }
    const record = { decision, operationId, deadline, digest };
    await tx.insert("decision", executionId, record);
    // No implicit permit beside an authorization, and no falling back to one (G-18).
    const { value, revision } = (await tx.get("reservation", execution.reservationId))!;
    const fenced = { ...value, state: "fenced", revision: value.revision + 1 } as const;
    const group = `${value.agentId}/fenced`;
    await tx.update("reservation", execution.reservationId, revision, fenced, group);
    const to = decision === "issued" ? "unknown" : "refused";
    await moveExecution(tx, executionId, core.clock.now(), to, `authorization_${decision}`);
    return record;
  });
}

/** The request that carries a kept decision: always the same operation, deadline and content. */
export async function authorizedRequest(
  core: DispatcherCore,
  executionId: string,
): Promise<MessageInitShape<typeof ExecuteAuthorizedRequestSchema>> {
  const { epoch } = core;
  return await core.store.commit(async (tx) => {
    await assertActive(tx, epoch);
    const decision = (await tx.get("decision", executionId))?.value;
    if (decision?.decision !== "issued") {
      throw new TamqError("PERMISSION_DENIED", "not_authorized", `${executionId}: not authorized`);
    }
    const execution = (await mustHave(tx, executionId)).value;
    const binding = bindingFromJson(execution.binding);
    const { agentId } = binding;
    const session = sessionOf((await approvedAgent(tx, agentId)).value, epoch);
    const { operationId, deadline } = decision;
    return {
      meta: {
        protocolVersion: FLEET_PROTOCOL,
        agentId,
        operationId,
        idempotencyKey: operationId,
        session: session && bindingOf({ ...session, generation: Math.max(session.generation, 0) }),
      },
      contract: AUTHORIZED_CONTRACT,
      binding,
      decision: AuthorizationDecision.ISSUED,
      deadlineUnixMs: BigInt(deadline),
      prompt: execution.prompt,
    };
  });
}
