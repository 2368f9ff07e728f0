/** Control of tasks: by revision (G-10), and the approved stop that counts every delivery (G-11). */
import { TamqError } from "../../base/errors.ts";
import {
  type ApplyApprovedTaskControlRequest,
  type ApplyTaskControlRequest,
  ApplyTaskControlRequestSchema,
  ApplyTaskControlResponseSchema,
  ApprovedTaskAction,
  TaskAction,
} from "../gen/agent_pb.ts";
import { ResultCode } from "../gen/common_pb.ts";
import { contentDigest, once, scopeOf } from "../idempotency.ts";
import type { RunRecord } from "../records.ts";
import { answerMeta } from "../session.ts";
import { type AgentCore, openSelf } from "./core.ts";
import { groupOf, TASK_STATES, taskKey } from "./runs.ts";

/** How long one delivery of an approved stop waits for calls to end. */
export const STOP_WAIT_MS = 5000;

export function controlHandlers(core: AgentCore, stopWaitMs = STOP_WAIT_MS) {
  const { store, clock, adapter, calls } = core;
  return {
    async applyTaskControl(request: ApplyTaskControlRequest) {
      const { executionId, action, expectedTaskRevision } = request;
      const digest = contentDigest(ApplyTaskControlRequestSchema, request);
      const { response, isNew } = await store.commit(async (tx) => {
        const { self, meta } = await openSelf(tx, core, request);
        const scope = scopeOf(core.agentId, meta);
        let isNew = false;
        const asked = { method: "ApplyTaskControl", digest, now: clock.now() };
        const response = await once(tx, scope, asked, ApplyTaskControlResponseSchema, async () => {
          const known = await tx.get("run", executionId);
          if (known === undefined) {
            throw new TamqError(
              "NOT_FOUND",
              "unknown_execution",
              `no execution ${executionId} here`,
            );
          }
          const run = known.value;
          if (expectedTaskRevision !== BigInt(run.taskRevision)) {
            throw new TamqError(
              "ABORTED",
              "stale_revision",
              `the task is at revision ${run.taskRevision}, not ${expectedTaskRevision}`,
              { hint: "query the execution before deciding anew" },
            );
          }
          const taskState = nextState(run, action, adapter.pausable);
          const taskRevision = run.taskRevision + 1;
          const next = { ...run, taskState, taskRevision };
          await tx.update("run", executionId, known.revision, next, groupOf(next));
          isNew = true;
          return {
            meta: answerMeta(meta, self.value.epoch),
            // Recorded; whether the work has ended is evidence that the execution itself gives.
            result: ResultCode.ACCEPTED,
            taskRevision: BigInt(taskRevision),
            taskState: TASK_STATES[taskState],
          };
        });
        return { response, isNew };
      });
      if (isNew && action === TaskAction.STOP && await stopped(executionId)) {
        return { ...response, result: ResultCode.APPLIED };
      }
      return response;
    },

    async applyApprovedTaskControl(request: ApplyApprovedTaskControlRequest) {
      const { tenantId, taskId, action } = request;
      if (action === ApprovedTaskAction.UNSPECIFIED || tenantId === 0n || taskId === 0n) {
        throw new TamqError(
          "INVALID_ARGUMENT",
          "task_unnamed",
          "an approved control names tenant, task and action",
        );
      }
      const task = taskKey(tenantId, taskId);
      // The door is closed first, and for good; only then is anybody sent out (G-19).
      const { meta, epoch } = await store.commit(async (tx) => {
        const { self, meta } = await openSelf(tx, core, request);
        const known = await tx.get("stop", task);
        const now = clock.now();
        if (known === undefined) await tx.insert("stop", task, { deliveries: 1, at: now });
        else {
          const deliveries = known.value.deliveries + 1;
          await tx.update("stop", task, known.revision, { ...known.value, deliveries });
        }
        return { meta, epoch: self.value.epoch };
      });
      const before = calls.of(task);
      if (action === ApprovedTaskAction.HANGUP) {
        await Promise.all(before.map(({ executionId }) => stopped(executionId)));
      }
      if (!await calls.ended(task, clock, stopWaitMs)) {
        throw new TamqError(
          "DEADLINE_EXCEEDED",
          "calls_still_active",
          `${
            calls.of(task).length
          } executions of task ${task} have not ended; its door stays closed`,
          { hint: "deliver the same control again" },
        );
      }
      return {
        meta: answerMeta(meta, epoch),
        result: ResultCode.APPLIED,
        endedExecutions: before.length,
      };
    },
  };

  async function stopped(executionId: string): Promise<boolean> {
    try {
      return await adapter.stop(executionId);
    } catch {
      return false;
    }
  }
}

function nextState(
  run: RunRecord,
  action: TaskAction,
  pausable: boolean,
): RunRecord["taskState"] {
  const refuse = (reason: string, message: string, hint: string): never => {
    throw new TamqError("FAILED_PRECONDITION", reason, message, { hint });
  };
  if (run.taskState === "stopped") {
    return refuse("task_stopped", "a stop is final", "a new task is another execution");
  }
  switch (action) {
    case TaskAction.STOP:
      return "stopped";
    case TaskAction.PAUSE:
      if (pausable) return "paused";
      return refuse("not_pausable", "a wake cannot be held once it is sent", "stop it instead");
    case TaskAction.RESUME:
      if (run.taskState === "paused") return "running";
      return refuse("not_paused", "only a paused task is resumed", "query the execution");
    default:
      throw new TamqError("INVALID_ARGUMENT", "action_unnamed", "no such action");
  }
}
