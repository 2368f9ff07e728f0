/** What an operator asks of the dispatcher (`tamq fleet …`). */
import { fromJson } from "@bufbuild/protobuf";
import { TamqError } from "../../base/errors.ts";
import { newId } from "../../base/ids.ts";
import { admissionOf, ADMISSIONS } from "../admission.ts";
import type { AgentService } from "../gen/agent_pb.ts";
import { type RequestMeta, ResultCode } from "../gen/common_pb.ts";
import { ExecutionReceiptSchema } from "../gen/execution_pb.ts";
import type { OperatorService } from "../gen/operator_pb.ts";
import type { Admission, AgentRecord, ExecutionRecord } from "../records.ts";
import type { Client, Handlers } from "../rpc.ts";
import { answerMeta, bindingOf, checkMeta, FLEET_PROTOCOL } from "../session.ts";
import { isLabel } from "../identity.ts";
import {
  approvedAgent,
  assertActive,
  bindingFromJson,
  type DispatcherCore,
  mustHave,
} from "./core.ts";
import { release, submit } from "./permits.ts";

export interface OperatorOptions {
  readonly core: DispatcherCore;
  readonly agent: (agentId: string, address: string) => Client<typeof AgentService>;
  /** Something may be done now that could not be done before. */
  readonly onChange: () => void;
}

const ADDRESS = /^(\[[0-9a-f:]+\]|[\w.-]+):\d{1,5}$/i;

export function operatorHandlers(options: OperatorOptions): Handlers<typeof OperatorService> {
  const { core, onChange } = options;
  const { store, epoch } = core;
  const metaOf = (meta: RequestMeta | undefined) => checkMeta(meta, meta?.agentId ?? "");

  return {
    async getFleet(request) {
      const meta = metaOf(request.meta);
      return await store.commit(async (tx) => {
        const executions: Record<string, number> = {};
        for (const { value } of await tx.list("execution")) {
          executions[value.state] = (executions[value.state] ?? 0) + 1;
        }
        return {
          meta: answerMeta(meta, epoch),
          dispatcherEpoch: epoch,
          agents: (await tx.list("agent")).map(({ key, value }) => agentMessage(key, value, epoch)),
          executions,
          factsUnqueued: (await tx.list("fact", { group: "unqueued" })).length,
        };
      });
    },

    async approveAgent(request) {
      const meta = metaOf(request.meta);
      const { agentId, cellId, address } = request;
      if (!isLabel(agentId) || !isLabel(cellId) || !ADDRESS.test(address)) {
        throw new TamqError(
          "INVALID_ARGUMENT",
          "agent_invalid",
          "an approval names an agent, its cell and its address as HOST:PORT",
        );
      }
      await store.commit(async (tx) => {
        await assertActive(tx, epoch);
        const known = await tx.get("agent", agentId);
        if (known === undefined) {
          await tx.insert("agent", agentId, {
            cellId,
            address,
            generation: 0,
            admission: "open",
            admissionGeneration: 1,
            unreachable: "",
          });
          return;
        }
        // Another cell is another binding: the session of the old one is over (G-16).
        const { epoch: opened, ...rest } = known.value;
        const same = known.value.cellId === cellId && opened !== undefined;
        const value = { ...rest, cellId, address, ...(same ? { epoch: opened } : {}) };
        await tx.update("agent", agentId, known.revision, value);
      });
      onChange();
      return { meta: answerMeta(meta, epoch), result: ResultCode.APPLIED };
    },

    async submitExecution(request) {
      const meta = metaOf(request.meta);
      if (request.binding === undefined) {
        throw new TamqError("INVALID_ARGUMENT", "binding_incomplete", "no binding");
      }
      const execution = await submit(core, request.binding, request.prompt);
      onChange();
      return {
        meta: answerMeta(meta, epoch),
        result: ResultCode.ACCEPTED,
        execution: executionMessage(execution),
      };
    },

    async releaseExecution(request) {
      const meta = metaOf(request.meta);
      await release(core, request.executionId);
      return { meta: answerMeta(meta, epoch), result: ResultCode.APPLIED };
    },

    async listExecutions(request) {
      const meta = metaOf(request.meta);
      const { agentId, limit } = request;
      const all = await store.commit((tx) => tx.list("execution", { newest: true }));
      const executions = all.map(({ value }) => executionMessage(value))
        .filter(({ binding }) => agentId === "" || binding.agentId === agentId)
        .slice(0, limit === 0 ? 50 : limit);
      return { meta: answerMeta(meta, epoch), executions };
    },

    async explainExecution(request) {
      const meta = metaOf(request.meta);
      const { value } = await store.commit((tx) => mustHave(tx, request.executionId));
      const steps = value.steps.map(({ at, what, why }) => ({ atUnixMs: BigInt(at), what, why }));
      return { meta: answerMeta(meta, epoch), execution: executionMessage(value), steps };
    },

    async setAgentAdmission(request) {
      const meta = metaOf(request.meta);
      const answer = await setAdmission(options, request.agentId, admissionOf(request.state));
      onChange();
      return { meta: answerMeta(meta, epoch), ...answer };
    },
  };
}

/**
 * Sends a barrier to an agent. It is kept first, so that a lost answer is asked for again under the
 * same barrier id, which moves the agent's generation once (G-05).
 */
async function setAdmission(
  { core, agent: clientOf }: OperatorOptions,
  agentId: string,
  to: Admission,
) {
  const { store, epoch } = core;
  const kept = await store.commit(async (tx) => {
    await assertActive(tx, epoch);
    const { value, revision } = await approvedAgent(tx, agentId);
    const barrier = value.barrier?.state === to ? value.barrier : {
      id: newId(core.clock, core.random),
      expected: value.admissionGeneration,
      state: to,
    };
    const next = { ...value, admission: to, barrier };
    await tx.update("agent", agentId, revision, next);
    return { agent: next, barrier };
  });
  const { agent, barrier } = kept;
  const client = clientOf(agentId, agent.address);
  const { cellId, bootId = "", generation } = agent;
  const meta = {
    protocolVersion: FLEET_PROTOCOL,
    agentId,
    operationId: barrier.id,
    idempotencyKey: barrier.id,
    session: bindingOf({ epoch, cellId, bootId, generation }),
  };
  const learned = async (generation: bigint, done: boolean) =>
    await store.commit(async (tx) => {
      const { value, revision } = await approvedAgent(tx, agentId);
      const { barrier: pending, ...rest } = value;
      const keep = !done && pending !== undefined ? { barrier: pending } : {};
      const admissionGeneration = Number(generation);
      await tx.update("agent", agentId, revision, { ...rest, ...keep, admissionGeneration });
    });
  try {
    const answer = await client.setAdmissionState({
      meta,
      barrierId: barrier.id,
      expectedAdmissionGeneration: BigInt(barrier.expected),
      state: ADMISSIONS[to],
    });
    // Until nobody is inside any more the same barrier is what to ask again with.
    await learned(answer.admissionGeneration, answer.result === ResultCode.APPLIED);
    const { result, admissionGeneration, activeExecutions } = answer;
    return { result, admissionGeneration, activeExecutions };
  } catch (error) {
    if (error instanceof TamqError && error.reason === "stale_admission") {
      const status = await client.getAgentStatus({ meta });
      await learned(status.admissionGeneration, true);
    }
    throw error;
  }
}

function agentMessage(agentId: string, agent: AgentRecord, epoch: string) {
  const { cellId, address, bootId, generation, unreachable, admissionGeneration } = agent;
  const open = agent.epoch === epoch && bootId !== undefined;
  return {
    agentId,
    cellId,
    address,
    session: open ? bindingOf({ epoch, cellId, bootId, generation }) : undefined,
    admission: ADMISSIONS[agent.admission],
    admissionGeneration: BigInt(admissionGeneration),
    unreachable,
  };
}

function executionMessage(execution: ExecutionRecord) {
  const { binding, state, reservationId, permitId, receipt, reason } = execution;
  return {
    binding: bindingFromJson(binding),
    state,
    reservationId,
    permitId,
    receipt: receipt && fromJson(ExecutionReceiptSchema, receipt),
    reason,
  };
}
