/** Executions as their agent keeps them: UNKNOWN first, then whatever there is evidence for. */
import { create, toJsonString } from "@bufbuild/protobuf";
import { Buffer } from "node:buffer";
import { newId } from "../../base/ids.ts";
import { probe } from "../../base/probe.ts";
import { ResultCode } from "../gen/common_pb.ts";
import { type ExecutionReceipt, ExecutionReceiptSchema, TaskState } from "../gen/execution_pb.ts";
import { sha256 } from "../idempotency.ts";
import type { Evidence, FleetTx, Work } from "../ports.ts";
import type { RunRecord, RunResult } from "../records.ts";
import type { AgentCore } from "./core.ts";

const RESULTS: Readonly<Record<RunResult, ResultCode>> = {
  unknown: ResultCode.UNKNOWN,
  accepted: ResultCode.ACCEPTED,
  applied: ResultCode.APPLIED,
  failed: ResultCode.FAILED,
};

export const TASK_STATES: Readonly<Record<RunRecord["taskState"], TaskState>> = {
  running: TaskState.RUNNING,
  paused: TaskState.PAUSED,
  stopped: TaskState.STOPPED,
};

export function taskKey(tenantId: bigint | string, taskId: bigint | string): string {
  return `${tenantId}/${taskId}`;
}

export function receiptOf(executionId: string, run: RunRecord): ExecutionReceipt {
  return create(ExecutionReceiptSchema, {
    executionId,
    permitId: run.path === "permit" ? run.authority : "",
    result: RESULTS[run.result],
    messageId: run.messageId,
    messageState: run.messageState,
    taskRevision: BigInt(run.taskRevision),
    taskState: TASK_STATES[run.taskState],
    recordedAtUnixMs: BigInt(run.at),
  });
}

/** A run with what the evidence says; the same one without any. */
export function withEvidence(run: RunRecord, evidence: Evidence | undefined): RunRecord {
  if (evidence === undefined) return run;
  const { outcome, messageId, messageState } = evidence;
  return { ...run, result: outcome, messageId, messageState };
}

/**
 * Executes what is recorded as UNKNOWN already. Called once for an execution and never again,
 * whatever becomes of it: after a failure nobody knows, and evidence is all that helps (G-06, G-07).
 */
export async function execute(core: AgentCore, work: Work, task: string): Promise<RunRecord> {
  const { store, adapter, calls } = core;
  return await calls.run({ executionId: work.executionId, task }, async () => {
    probe("fleet.before_adapter");
    let evidence: Evidence | undefined;
    try {
      evidence = await adapter.execute(work);
    } catch {
      evidence = undefined;
    }
    probe("fleet.after_adapter");
    return await store.commit((tx) => settle(tx, core, work.executionId, evidence));
  });
}

/** Writes down evidence, and a fact for the dispatcher with it. */
export async function settle(
  tx: FleetTx,
  core: AgentCore,
  executionId: string,
  evidence: Evidence | undefined,
): Promise<RunRecord> {
  const known = (await tx.get("run", executionId))!;
  const run = withEvidence(known.value, evidence);
  if (run.result === known.value.result && run.messageState === known.value.messageState) {
    return run;
  }
  const settled = { ...run, at: core.clock.now() };
  await tx.update("run", executionId, known.revision, settled, groupOf(settled));
  const content = toJsonString(ExecutionReceiptSchema, receiptOf(executionId, settled));
  await tx.insert("note", newId(core.clock, core.random), {
    kind: "execution.result",
    executionId,
    contentSha256: sha256(content),
    content: Buffer.from(content).toString("base64"),
  }, "waiting");
  return settled;
}

/** Runs whose evidence may still grow are looked at again. */
export function groupOf(run: RunRecord): string {
  return run.result === "unknown" || run.result === "accepted" ? "open" : "ended";
}
