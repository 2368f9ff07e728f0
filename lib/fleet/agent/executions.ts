/** Execute, ExecuteAuthorized, QueryExecution (G-06, G-07, G-14, G-18, G-20). */
import { TamqError } from "../../base/errors.ts";
import { probe } from "../../base/probe.ts";
import {
  AuthorizationDecision,
  type ExecuteAuthorizedRequest,
  type ExecuteRequest,
  type QueryExecutionRequest,
} from "../gen/agent_pb.ts";
import type { ExecutionBinding, ExecutionPermit } from "../gen/execution_pb.ts";
import { ExecutionBindingSchema } from "../gen/execution_pb.ts";
import { conflict, contentDigest, scopeOf, sha256 } from "../idempotency.ts";
import type { FleetTx, Work } from "../ports.ts";
import type { RunRecord, SelfRecord } from "../records.ts";
import { answerMeta, AUTHORIZED_CONTRACT, checkMeta } from "../session.ts";
import { type AgentCore, openSelf, selfOf } from "./core.ts";
import { execute, receiptOf, taskKey, withEvidence } from "./runs.ts";

export function executionHandlers(core: AgentCore) {
  const { store, clock, adapter } = core;

  /** The run that is there already, or the one made now, which the caller must execute. */
  async function admit(
    tx: FleetTx,
    self: SelfRecord,
    binding: ExecutionBinding,
    authority: Pick<RunRecord, "path" | "authority" | "digest">,
    check: () => Promise<void>,
  ): Promise<{ run: RunRecord; isNew: boolean }> {
    const known = (await tx.get("run", binding.executionId))?.value;
    if (known !== undefined) {
      const same = known.path === authority.path && known.authority === authority.authority &&
        known.digest === authority.digest;
      if (!same) throw conflict(`execution ${binding.executionId}`);
      return { run: known, isNew: false };
    }
    await check();
    const task = taskKey(binding.tenantId, binding.taskId);
    if (await tx.get("stop", task) !== undefined) {
      throw new TamqError("FAILED_PRECONDITION", "task_stopped", `task ${task} was stopped here`, {
        hint: "a stop on a host is final; another task is another id",
      });
    }
    if (self.admission !== "open") {
      throw new TamqError("FAILED_PRECONDITION", "admission_closed", `${core.agentId} is drained`, {
        hint: "resume the agent, then send the original operation",
      });
    }
    const run: RunRecord = {
      ...authority,
      tenantId: String(binding.tenantId),
      taskId: String(binding.taskId),
      result: "unknown",
      messageId: "",
      messageState: "",
      taskRevision: 1,
      taskState: "running",
      at: clock.now(),
    };
    await tx.insert("run", binding.executionId, run, "open");
    return { run, isNew: true };
  }

  async function perform(
    { run, isNew }: { run: RunRecord; isNew: boolean },
    binding: ExecutionBinding,
    prompt: string,
  ): Promise<RunRecord> {
    if (!isNew) return run;
    probe("fleet.recorded_unknown");
    return await execute(core, workOf(binding, prompt), taskKey(binding.tenantId, binding.taskId));
  }

  return {
    async execute(request: ExecuteRequest) {
      const { permit, prompt } = request;
      const binding = checkBinding(core, request.binding, prompt);
      const digest = contentDigest(ExecutionBindingSchema, binding);
      if (permit === undefined || permit.permitId === "") {
        throw new TamqError("PERMISSION_DENIED", "permit_missing", "Execute needs a permit");
      }
      const { meta, epoch, admitted } = await store.commit(async (tx) => {
        const { self, meta } = await openSelf(tx, core, request);
        const authority = { path: "permit", authority: permit.permitId, digest } as const;
        const admitted = await admit(
          tx,
          self.value,
          binding,
          authority,
          () => checkPermit(tx, self.value, permit, digest, clock.now()),
        );
        return { meta, epoch: self.value.epoch, admitted };
      });
      const run = await perform(admitted, binding, prompt);
      const receipt = receiptOf(binding.executionId, run);
      return { meta: answerMeta(meta, epoch), result: receipt.result, receipt };
    },

    async executeAuthorized(request: ExecuteAuthorizedRequest) {
      const { prompt, decision, deadlineUnixMs, contract } = request;
      if (contract !== AUTHORIZED_CONTRACT) {
        throw new TamqError("INVALID_ARGUMENT", "contract_unknown", `no contract ${contract}`, {
          hint: `this side knows ${AUTHORIZED_CONTRACT}`,
        });
      }
      // Mixed or real execution is disabled, whatever anybody authorizes (G-18).
      if (adapter.kind !== "mock") {
        throw new TamqError(
          "PERMISSION_DENIED",
          "authorized_is_mock_only",
          "ExecuteAuthorized is for the isolated mock; this agent has a real adapter",
          { hint: "real work goes by permit and Execute" },
        );
      }
      const binding = checkBinding(core, request.binding, prompt);
      const digest = sha256(JSON.stringify([
        contentDigest(ExecutionBindingSchema, binding),
        decision,
        String(deadlineUnixMs),
      ]));
      const { meta, epoch, admitted } = await store.commit(async (tx) => {
        const { self, meta } = await openSelf(tx, core, request);
        const { operationId } = scopeOf(core.agentId, meta);
        const authority = { path: "authorized", authority: operationId, digest } as const;
        const admitted = await admit(tx, self.value, binding, authority, () => {
          if (decision !== AuthorizationDecision.ISSUED) {
            throw new TamqError("PERMISSION_DENIED", "not_authorized", "the decision is no");
          }
          assertBefore(deadlineUnixMs, clock.now(), "authorization");
          return Promise.resolve();
        });
        return { meta, epoch: self.value.epoch, admitted };
      });
      const run = await perform(admitted, binding, prompt);
      const receipt = receiptOf(binding.executionId, run);
      return { meta: answerMeta(meta, epoch), result: receipt.result, receipt };
    },

    async queryExecution(request: QueryExecutionRequest) {
      const meta = checkMeta(request.meta, core.agentId);
      const { executionId } = request;
      const { run, epoch } = await store.commit(async (tx) => ({
        run: (await tx.get("run", executionId))?.value,
        epoch: (await selfOf(tx))?.value.epoch ?? "",
      }));
      if (run === undefined) {
        throw new TamqError("NOT_FOUND", "unknown_execution", `no execution ${executionId} here`, {
          hint: "nothing was recorded on this host; do not make a substitute for it",
        });
      }
      // Read-only: what the evidence says now is answered, and written down by the agent's keeper.
      const running = core.calls.of(taskKey(run.tenantId, run.taskId))
        .some((call) => call.executionId === executionId);
      const evidence = running ? undefined : await found(executionId);
      const receipt = receiptOf(executionId, withEvidence(run, evidence));
      return { meta: answerMeta(meta, epoch), result: receipt.result, receipt };
    },
  };

  async function found(executionId: string) {
    try {
      return await adapter.find(executionId);
    } catch {
      return undefined; // no evidence is no evidence of absence: UNKNOWN stays (G-20)
    }
  }
}

function workOf(binding: ExecutionBinding, prompt: string): Work {
  const { executionId, targetRepo, endpointId } = binding;
  return { executionId, targetRepo, prompt, ...(endpointId === "" ? {} : { endpointId }) };
}

function checkBinding(
  core: AgentCore,
  binding: ExecutionBinding | undefined,
  prompt: string,
): ExecutionBinding {
  const complete = binding !== undefined && binding.executionId !== "" && binding.targetRepo !== "";
  if (!complete || binding.contentSha256 !== sha256(prompt)) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "binding_incomplete",
      "a binding names execution, repository and the SHA-256 of the prompt",
    );
  }
  if (binding.agentId !== core.agentId) {
    throw new TamqError("PERMISSION_DENIED", "identity_mismatch", "the binding is another agent's");
  }
  return binding;
}

/** Epoch, boot, generation, binding, reservation, fencing token, deadline: all of them (G-18). */
async function checkPermit(
  tx: FleetTx,
  self: SelfRecord,
  permit: ExecutionPermit,
  digest: string,
  now: number,
): Promise<void> {
  if (permit.dispatcherEpoch !== self.epoch) {
    throw new TamqError("ABORTED", "stale_epoch", "the permit is of another epoch", {
      hint: "query the execution; there is no new permit for it",
    });
  }
  const sameSession = permit.bootId === self.bootId &&
    permit.sessionGeneration === BigInt(self.generation);
  if (!sameSession) {
    throw new TamqError("ABORTED", "permit_fenced", "the permit is of an older session", {
      hint: "query the execution; there is no new permit for it",
    });
  }
  if (permit.bindingSha256 !== digest) {
    throw new TamqError("ABORTED", "idempotency_conflict", "the permit is for another binding");
  }
  assertBefore(permit.deadlineUnixMs, now, "permit");
  // Of one reservation only the highest token counts; an older one comes from before a fence.
  const key = JSON.stringify(["reservation", permit.reservationId]);
  const token = Number(permit.fencingToken);
  const seen = await tx.get("counter", key);
  if (
    permit.reservationId === "" || token < 1 || (seen !== undefined && token <= seen.value.value)
  ) {
    throw new TamqError(
      "ABORTED",
      "permit_fenced",
      "the permit's fencing token is not the latest",
      {
        hint: "query the execution; there is no new permit for it",
      },
    );
  }
  if (seen === undefined) await tx.insert("counter", key, { value: token });
  else await tx.update("counter", key, seen.revision, { value: token });
}

/** Exclusive: at the deadline itself it is too late. */
function assertBefore(deadline: bigint, now: number, what: string): void {
  if (BigInt(now) < deadline) return;
  throw new TamqError("DEADLINE_EXCEEDED", `${what}_expired`, `the ${what} has expired`, {
    hint: "query the execution; nothing was executed by this request",
  });
}
