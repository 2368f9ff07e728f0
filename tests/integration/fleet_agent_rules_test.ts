/** Each agent operation's identity, replay rule and fence, against a real store. */
import assert from "node:assert/strict";
import { turn } from "../../lib/base/clock.ts";
import { authorizedRequest, decide } from "../../lib/fleet/dispatcher/authorize.ts";
import {
  AdmissionState,
  ApprovedTaskAction,
  AuthorizationDecision,
  TaskAction,
} from "../../lib/fleet/gen/agent_pb.ts";
import { ResultCode } from "../../lib/fleet/gen/common_pb.ts";
import { TaskState } from "../../lib/fleet/gen/execution_pb.ts";
import { AUTHORIZED_CONTRACT } from "../../lib/fleet/session.ts";
import { CountingAdapter, PROMPT, type Rig, withRig } from "../helpers/fleet_rig.ts";

const conflict = { code: "ABORTED", reason: "idempotency_conflict" };

const authorized = (rig: Rig, executionId: string, more: object = {}) => ({
  meta: rig.meta(),
  contract: AUTHORIZED_CONTRACT,
  binding: rig.binding(executionId),
  decision: AuthorizationDecision.ISSUED,
  deadlineUnixMs: BigInt(rig.clock.now() + 1000),
  prompt: PROMPT,
  ...more,
});

Deno.test("[G-05] a barrier moves the generation once, however often it arrives", async () => {
  await withRig(async (rig) => {
    const drain = (barrierId: string, expected: bigint, state = AdmissionState.DRAINING) =>
      rig.agent.setAdmissionState({
        meta: rig.meta(),
        barrierId,
        expectedAdmissionGeneration: expected,
        state,
      });
    const first = await drain("bar-1", 1n);
    assert.deepEqual([first.result, first.admissionGeneration], [ResultCode.APPLIED, 2n]);
    assert.equal((await drain("bar-1", 1n)).admissionGeneration, 2n);
    await assert.rejects(drain("bar-1", 1n, AdmissionState.OPEN), conflict);
    await assert.rejects(drain("bar-2", 1n), { code: "ABORTED", reason: "stale_admission" });
    assert.equal((await drain("bar-3", 2n, AdmissionState.OPEN)).admissionGeneration, 3n);
    // Late, after another barrier: it moves nothing.
    assert.equal((await drain("bar-1", 1n)).admissionGeneration, 2n);
    const status = await rig.agent.getAgentStatus({ meta: rig.meta() });
    assert.deepEqual([status.admission, status.admissionGeneration], [AdmissionState.OPEN, 3n]);
  });
});

Deno.test("[G-02] [G-19] a drain is APPLIED once nobody is inside any more, ACCEPTED until then", async () => {
  await withRig(async (rig) => {
    const inside = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    rig.adapter.during = async () => {
      entered.resolve();
      await inside.promise;
    };
    const running = rig.agent.execute({ meta: rig.meta(), ...await rig.permitted("e1") });
    const late = await rig.permitted("e2");
    await entered.promise;
    const drain = () =>
      rig.agent.setAdmissionState({
        meta: rig.meta(),
        barrierId: "bar-1",
        expectedAdmissionGeneration: 1n,
        state: AdmissionState.DRAINING,
      });
    const first = await drain();
    assert.deepEqual([first.result, first.activeExecutions], [ResultCode.ACCEPTED, 1]);
    await assert.rejects(rig.agent.execute({ meta: rig.meta(), ...late }), {
      code: "FAILED_PRECONDITION",
      reason: "admission_closed",
    });
    inside.resolve();
    assert.equal((await running).result, ResultCode.ACCEPTED);
    assert.equal((await drain()).result, ResultCode.APPLIED);
    assert.deepEqual(rig.adapter.executed, ["e1"]);
  });
});

Deno.test("[G-06] binding and permit are one execution: repeated it is the receipt, changed a conflict", async () => {
  await withRig(async (rig) => {
    const work = await rig.permitted("e1");
    const first = await rig.agent.execute({ meta: rig.meta(), ...work });
    assert.equal(first.result, ResultCode.ACCEPTED);
    assert.equal(first.receipt?.messageId, "m-e1");
    assert.deepEqual(
      (await rig.agent.execute({ meta: rig.meta(), ...work })).receipt,
      first.receipt,
    );
    await assert.rejects(
      rig.agent.execute({
        meta: rig.meta(),
        ...work,
        permit: { ...work.permit, permitId: "another" },
      }),
      conflict,
    );
    await assert.rejects(
      rig.agent.execute({
        meta: rig.meta(),
        ...work,
        binding: rig.binding("e1", { targetRepo: "web" }),
      }),
      conflict,
    );
    assert.deepEqual(rig.adapter.executed, ["e1"]);
  });
});

Deno.test("[G-02] [G-06] [G-20] UNKNOWN is on disk before the adapter is called; after a failure only a query helps", async () => {
  await withRig(async (rig) => {
    let before: string | undefined;
    rig.adapter.during = async ({ executionId }) => {
      const run = await rig.agentCore.store.commit((tx) => tx.get("run", executionId));
      before = run?.value.result;
      throw new Error("the reply was lost");
    };
    const work = await rig.permitted("e1");
    const first = await rig.agent.execute({ meta: rig.meta(), ...work });
    assert.equal(before, "unknown");
    assert.equal(first.result, ResultCode.UNKNOWN);
    assert.equal(
      (await rig.agent.execute({ meta: rig.meta(), ...work })).result,
      ResultCode.UNKNOWN,
    );
    const query = () => rig.agent.queryExecution({ meta: rig.meta(), executionId: "e1" });
    assert.equal((await query()).result, ResultCode.UNKNOWN);
    // There was an effect after all: evidence settles it, nothing is executed again.
    rig.adapter.evidence.set("e1", {
      messageId: "m9",
      messageState: "injected",
      outcome: "applied",
    });
    const found = await query();
    assert.deepEqual([found.result, found.receipt?.messageId], [ResultCode.APPLIED, "m9"]);
    assert.deepEqual(rig.adapter.executed, ["e1"]);
  });
});

Deno.test("[G-18] a permit is void at its very deadline, for another session, binding or token", async () => {
  await withRig(async (rig) => {
    const work = await rig.permitted("e1");
    const send = (permit: object) =>
      rig.agent.execute({ meta: rig.meta(), ...work, permit: { ...work.permit, ...permit } });
    await assert.rejects(send({ dispatcherEpoch: "old" }), {
      code: "ABORTED",
      reason: "stale_epoch",
    });
    await assert.rejects(send({ sessionGeneration: 0n }), { reason: "permit_fenced" });
    await assert.rejects(send({ bootId: "b0" }), { code: "ABORTED", reason: "permit_fenced" });
    await assert.rejects(send({ bindingSha256: "00" }), conflict);
    await assert.rejects(send({ fencingToken: 0n }), { reason: "permit_fenced" });
    await assert.rejects(send({ reservationId: "" }), { reason: "permit_fenced" });
    await assert.rejects(send({ permitId: "" }), { code: "PERMISSION_DENIED" });
    rig.clock.advance(60_000);
    await assert.rejects(send({}), { code: "DEADLINE_EXCEEDED", reason: "permit_expired" });
    assert.deepEqual(rig.adapter.executed, []);
    rig.clock.advance(-1);
    await send({});
    assert.deepEqual(rig.adapter.executed, ["e1"]);
    // Another permit on that reservation needs a higher token.
    const second = { ...work, binding: rig.binding("e2") };
    const { contentDigest } = await import("../../lib/fleet/idempotency.ts");
    const { ExecutionBindingSchema } = await import("../../lib/fleet/gen/execution_pb.ts");
    const bindingSha256 = contentDigest(ExecutionBindingSchema, second.binding);
    await assert.rejects(
      rig.agent.execute({
        meta: rig.meta(),
        ...second,
        permit: { ...work.permit, permitId: "p2", bindingSha256 },
      }),
      { code: "ABORTED", reason: "permit_fenced" },
    );
  });
});

Deno.test("[G-07] authorized: UNKNOWN first, the receipt to replays, a conflict to anything else", async () => {
  await withRig(async (rig) => {
    let before: string | undefined;
    rig.adapter.during = async ({ executionId }) => {
      before = (await rig.agentCore.store.commit((tx) => tx.get("run", executionId)))?.value.result;
    };
    const request = authorized(rig, "e1");
    const first = await rig.agent.executeAuthorized(request);
    assert.deepEqual([before, first.result], ["unknown", ResultCode.ACCEPTED]);
    assert.deepEqual((await rig.agent.executeAuthorized(request)).receipt, first.receipt);
    // A second operation for the same execution, and changed content.
    await assert.rejects(
      rig.agent.executeAuthorized({ ...request, meta: rig.meta() }),
      conflict,
    );
    await assert.rejects(
      rig.agent.executeAuthorized({ ...request, deadlineUnixMs: request.deadlineUnixMs + 1n }),
      conflict,
    );
    // A permit does not make it another path's execution.
    const permitted = await rig.permitted("e1");
    await assert.rejects(rig.agent.execute({ meta: rig.meta(), ...permitted }), conflict);
    assert.deepEqual(rig.adapter.executed, ["e1"]);
  });
});

Deno.test("[G-07] [G-18] an expired, refused or unknown authorization calls no adapter, nor a real one ever", async () => {
  await withRig(async (rig) => {
    const now = BigInt(rig.clock.now());
    await assert.rejects(
      rig.agent.executeAuthorized(authorized(rig, "e1", { deadlineUnixMs: now })),
      { code: "DEADLINE_EXCEEDED", reason: "authorization_expired" },
    );
    await assert.rejects(
      rig.agent.executeAuthorized(
        authorized(rig, "e2", { decision: AuthorizationDecision.REFUSED }),
      ),
      { code: "PERMISSION_DENIED", reason: "not_authorized" },
    );
    await assert.rejects(
      rig.agent.executeAuthorized(authorized(rig, "e3", { contract: "v9" })),
      { reason: "contract_unknown" },
    );
    await assert.rejects(
      rig.agent.executeAuthorized(
        authorized(rig, "e4", { meta: rig.meta({ session: undefined }) }),
      ),
      { code: "UNAUTHENTICATED", reason: "session_missing" },
    );
    assert.deepEqual(rig.adapter.executed, []);
  });
  await withRig(async (rig) => {
    await assert.rejects(rig.agent.executeAuthorized(authorized(rig, "e1")), {
      code: "PERMISSION_DENIED",
      reason: "authorized_is_mock_only",
    });
    assert.deepEqual(rig.adapter.executed, []);
  }, { adapter: new CountingAdapter("wake") });
});

Deno.test("[G-10] control by revision: compared, applied once, STOP final, PAUSE undone by a new request alone", async () => {
  await withRig(async (rig) => {
    await rig.agent.execute({ meta: rig.meta(), ...await rig.permitted("e1") });
    const control = (action: TaskAction, expected: bigint, meta = rig.meta()) =>
      rig.agent.applyTaskControl({
        meta,
        executionId: "e1",
        expectedTaskRevision: expected,
        action,
      });
    const meta = rig.meta();
    const paused = await control(TaskAction.PAUSE, 1n, meta);
    assert.deepEqual([paused.taskState, paused.taskRevision], [TaskState.PAUSED, 2n]);
    assert.deepEqual(await control(TaskAction.PAUSE, 1n, meta), paused);
    await assert.rejects(control(TaskAction.RESUME, 2n, meta), conflict);
    await assert.rejects(control(TaskAction.RESUME, 1n), {
      code: "ABORTED",
      reason: "stale_revision",
    });
    const resumed = await control(TaskAction.RESUME, 2n);
    assert.deepEqual([resumed.taskState, resumed.taskRevision], [TaskState.RUNNING, 3n]);
    // The old pause, redelivered, pauses nothing.
    assert.deepEqual(await control(TaskAction.PAUSE, 1n, meta), paused);
    const stopped = await control(TaskAction.STOP, 3n);
    assert.deepEqual([stopped.result, stopped.taskState], [ResultCode.APPLIED, TaskState.STOPPED]);
    for (const action of [TaskAction.RESUME, TaskAction.PAUSE, TaskAction.STOP]) {
      await assert.rejects(control(action, 4n), {
        code: "FAILED_PRECONDITION",
        reason: "task_stopped",
      });
    }
    assert.deepEqual(rig.adapter.stoppedIds, ["e1"]);
    const query = await rig.agent.queryExecution({ meta: rig.meta(), executionId: "e1" });
    assert.equal(query.receipt?.taskRevision, 4n);
    await assert.rejects(
      rig.agent.applyTaskControl({
        meta: rig.meta(),
        executionId: "none",
        action: TaskAction.STOP,
      }),
      { code: "NOT_FOUND" },
    );
  });
});

Deno.test("[G-11] [G-19] an approved stop: the door first, for good; success only after the last call; every delivery counts", async () => {
  await withRig(async (rig) => {
    const inside = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    rig.adapter.during = async () => {
      entered.resolve();
      await inside.promise;
    };
    const running = rig.agent.execute({ meta: rig.meta(), ...await rig.permitted("e1") });
    const sameTask = await rig.permitted("e2");
    const otherTask = await rig.permitted("e3", { taskId: 8n });
    await entered.promise;
    const stop = (action = ApprovedTaskAction.HANGUP) =>
      rig.agent.applyApprovedTaskControl({
        // No operation, no key: the documented exception.
        meta: rig.meta({ operationId: "", idempotencyKey: "" }),
        tenantId: 1n,
        taskId: 7n,
        action,
      });
    const first = stop();
    const refused = assert.rejects(first, {
      code: "DEADLINE_EXCEEDED",
      reason: "calls_still_active",
    });
    // Moves the clock once the delivery waits for the call.
    while (rig.adapter.stoppedIds.length === 0) await turn();
    await turn();
    rig.clock.advance(1000);
    await refused;
    const closed = { code: "FAILED_PRECONDITION", reason: "task_stopped" };
    await assert.rejects(rig.agent.execute({ meta: rig.meta(), ...sameTask }), closed);
    inside.resolve();
    await running;
    rig.adapter.during = () => {};
    assert.equal((await stop()).result, ResultCode.APPLIED);
    assert.equal((await stop(ApprovedTaskAction.DRAIN)).result, ResultCode.APPLIED);
    const known = await rig.agentCore.store.commit((tx) => tx.get("stop", "1/7"));
    assert.equal(known?.value.deliveries, 3);
    await assert.rejects(rig.agent.execute({ meta: rig.meta(), ...sameTask }), closed);
    await rig.agent.execute({ meta: rig.meta(), ...otherTask });
    await assert.rejects(
      rig.agent.applyApprovedTaskControl({
        meta: rig.meta({ session: { ...rig.session, dispatcherEpoch: "old" } as never }),
        tenantId: 1n,
        taskId: 9n,
        action: ApprovedTaskAction.DRAIN,
      }),
      { code: "ABORTED", reason: "stale_epoch" },
    );
    await assert.rejects(
      rig.agent.applyApprovedTaskControl({ meta: rig.meta(), taskId: 9n, action: 1 }),
      { code: "INVALID_ARGUMENT" },
    );
  }, { stopWaitMs: 1000 });
});

Deno.test("[G-14] reads repeat without a session and keep their trace; what is not there is NOT_FOUND", async () => {
  await withRig(async (rig) => {
    const meta = rig.meta({ session: undefined, trace: { traceId: "T", spanId: "S" } });
    const one = await rig.agent.getAgentStatus({ meta });
    assert.deepEqual(await rig.agent.getAgentStatus({ meta }), one);
    assert.equal(one.meta?.trace?.traceId, "T");
    assert.equal(one.meta?.operationId, meta.operationId);
    await assert.rejects(rig.agent.queryExecution({ meta, executionId: "none" }), {
      code: "NOT_FOUND",
      reason: "unknown_execution",
    });
    assert.equal(rig.doubts, 0);
  });
});

Deno.test("[G-15] [G-17] the agent obeys one epoch, one boot, one generation", async () => {
  await withRig(async (rig) => {
    const work = await rig.permitted("e1");
    const old = rig.session;
    const { dispatcher } = await rig.takeOver();
    await rig.join("b1", "act-2", dispatcher);
    await assert.rejects(rig.agent.execute({ meta: rig.meta({ session: old }), ...work }), {
      code: "ABORTED",
      reason: "stale_epoch",
    });
    // The new dispatcher cannot use the old one's permit either.
    await assert.rejects(rig.agent.execute({ meta: rig.meta(), ...work }), {
      code: "ABORTED",
      reason: "stale_epoch",
    });
    const before = rig.session;
    await rig.join("b2", "act-3", dispatcher);
    await assert.rejects(rig.asBoot("b1").execute({ meta: rig.meta(), ...work }), {
      code: "UNAUTHENTICATED",
      reason: "session_fenced",
    });
    await assert.rejects(
      rig.asBoot("b2").execute({ meta: rig.meta({ session: before }), ...work }),
      { code: "UNAUTHENTICATED", reason: "session_fenced" },
    );
    assert.equal(rig.doubts, 3);
    assert.deepEqual(rig.adapter.executed, []);
  });
});

Deno.test("[G-07] [G-18] one decision an execution, kept before it is sent; no permit beside it, nothing sent on a no", async () => {
  await withRig(async (rig) => {
    const asked = await rig.reserve("e1");
    const deadline = rig.clock.now() + 1000;
    const yes = { executionId: "e1", operationId: "op-a", decision: "issued", deadline } as const;
    const kept = await decide(rig.core, yes);
    assert.deepEqual(await decide(rig.core, yes), kept);
    await assert.rejects(decide(rig.core, { ...yes, decision: "refused" }), conflict);
    await assert.rejects(decide(rig.core, { ...yes, operationId: "op-b" }), conflict);
    await assert.rejects(decide(rig.core, { ...yes, deadline: deadline + 1 }), conflict);
    await assert.rejects(rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...asked }), {
      code: "FAILED_PRECONDITION",
      reason: "reservation_fenced",
    });
    const state = async (id: string) =>
      (await rig.core.store.commit((tx) => tx.get("execution", id)))?.value.state;
    assert.equal(await state("e1"), "unknown");
    const first = await rig.agent.executeAuthorized(await authorizedRequest(rig.core, "e1"));
    const again = await rig.agent.executeAuthorized(await authorizedRequest(rig.core, "e1"));
    assert.deepEqual(again.receipt, first.receipt);
    assert.deepEqual(rig.adapter.executed, ["e1"]);

    await rig.reserve("e2");
    await decide(rig.core, { ...yes, executionId: "e2", decision: "refused" });
    await assert.rejects(authorizedRequest(rig.core, "e2"), { reason: "not_authorized" });
    assert.equal(await state("e2"), "refused");
    await rig.permitted("e3");
    await assert.rejects(decide(rig.core, { ...yes, executionId: "e3" }), {
      reason: "not_reserved",
    });
    assert.deepEqual(rig.adapter.executed, ["e1"]);
  });
});
