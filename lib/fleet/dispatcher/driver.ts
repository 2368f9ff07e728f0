/**
 * Drives executions: permit, execute, query. What is in doubt is queried, never originated again
 * (G-06, G-20): the only request that ever goes out twice is the very same one, and only after the
 * agent has said that it never recorded it.
 */
import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import type { Clock } from "../../base/clock.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { probe } from "../../base/probe.ts";
import type { AgentService } from "../gen/agent_pb.ts";
import { RequestMetaSchema } from "../gen/common_pb.ts";
import { GetExecutionPermitRequestSchema } from "../gen/dispatcher_pb.ts";
import {
  type ExecutionPermit,
  type ExecutionReceipt,
  ExecutionReceiptSchema,
} from "../gen/execution_pb.ts";
import type { AgentRecord, ExecutionRecord, ExecutionState } from "../records.ts";
import type { Client } from "../rpc.ts";
import { bindingOf, FLEET_PROTOCOL } from "../session.ts";
import { Turns } from "../turns.ts";
import {
  assertActive,
  bindingFromJson,
  type DispatcherCore,
  isFinal,
  moveExecution,
} from "./core.ts";
import { queueFacts, stateOf } from "./facts.ts";
import { issuePermit, permitOf } from "./permits.ts";

export interface DriverOptions {
  readonly core: DispatcherCore;
  /** A client of the agent at that address, whose certificate must name that agent. */
  readonly agent: (agentId: string, address: string) => Client<typeof AgentService>;
  readonly clock: Clock;
  readonly log: Log;
  /** Between two turns when nothing happens, milliseconds. */
  readonly everyMs: number;
  /** For one call to an agent, milliseconds. */
  readonly callMs: number;
}

const OPEN: readonly ExecutionState[] = ["reserved", "permitted", "unknown", "accepted"];
/** Executions of one state looked at in one turn. */
const PER_TURN = 200;

export class Driver {
  readonly #o: DriverOptions;
  readonly #turns: Turns;

  constructor(options: DriverOptions) {
    this.#o = options;
    const { clock, everyMs } = options;
    this.#turns = new Turns({ clock, everyMs, turn: () => this.#safeTurn() });
  }

  start(): void {
    this.#turns.start();
  }

  nudge(): void {
    this.#turns.nudge();
  }

  async stop(): Promise<void> {
    await this.#turns.stop();
  }

  async #safeTurn(): Promise<void> {
    try {
      await this.turn();
      await queueFacts(this.#o.core, PER_TURN);
    } catch (error) {
      this.#o.log.error("fleet.turn_failed", { reason: errorText(error) });
    }
  }

  /** Every open execution one step further; agents side by side, one agent's in their order. */
  async turn(): Promise<void> {
    const { store } = this.#o.core;
    const byAgent = new Map<string, [string, ExecutionRecord][]>();
    await store.commit(async (tx) => {
      for (const group of OPEN) {
        for (const { key, value } of await tx.list("execution", { group, limit: PER_TURN })) {
          const { agentId } = bindingFromJson(value.binding);
          byAgent.set(agentId, [...byAgent.get(agentId) ?? [], [key, value]]);
        }
      }
    });
    await Promise.all([...byAgent].map(async ([agentId, executions]) => {
      for (const [id, execution] of executions) {
        if (this.#turns.ending) return;
        if (!await this.#advance(agentId, id, execution)) return;
      }
    }));
  }

  /** One execution as far as it goes now; false when its agent cannot be spoken to. */
  async #advance(agentId: string, id: string, execution: ExecutionRecord): Promise<boolean> {
    const { core, log } = this.#o;
    const agent = (await core.store.commit((tx) => tx.get("agent", agentId)))!.value;
    const joined = agent.epoch === core.epoch && agent.bootId !== undefined;
    if (!joined) return false;
    try {
      if (execution.state === "reserved") {
        if (agent.admission !== "open") return true;
        execution = await this.#permit(agentId, agent, id, execution);
      }
      if (execution.state === "permitted") await this.#execute(agentId, agent, id, execution);
      else await this.#query(agentId, agent, id, execution);
      await this.#reached(agentId, "");
      return true;
    } catch (error) {
      log.debug("fleet.execution_waits", { execution: id, reason: errorText(error) });
      const away = error instanceof TamqError &&
        (error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED");
      if (away) await this.#reached(agentId, error.reason);
      return !away;
    }
  }

  async #permit(
    agentId: string,
    agent: AgentRecord,
    id: string,
    execution: ExecutionRecord,
  ): Promise<ExecutionRecord> {
    const { core } = this.#o;
    const operation = `permit/${id}`;
    await issuePermit(
      core,
      agentId,
      create(GetExecutionPermitRequestSchema, {
        meta: this.#meta(agentId, agent, operation),
        reservationId: execution.reservationId,
        binding: bindingFromJson(execution.binding),
        expectedRevision: 1n,
      }),
    );
    return (await core.store.commit((tx) => tx.get("execution", id)))!.value;
  }

  async #execute(agentId: string, agent: AgentRecord, id: string, execution: ExecutionRecord) {
    const { core, callMs } = this.#o;
    const permit = await core.store.commit((tx) => permitOf(tx, execution.permitId));
    if (permit === undefined || !this.#valid(permit, agent)) {
      await this.#record(id, "unknown", "permit_void");
      return;
    }
    // From here on it may have happened (G-20).
    await this.#record(id, "unknown", "sent");
    probe("fleet.before_execute");
    const client = this.#o.agent(agentId, agent.address);
    try {
      const { receipt } = await client.execute({
        meta: this.#meta(agentId, agent, `execute/${id}`),
        binding: bindingFromJson(execution.binding),
        permit,
        prompt: execution.prompt,
      }, { deadlineMs: callMs });
      probe("fleet.after_execute");
      await this.#receipt(id, receipt, "executed");
    } catch (error) {
      if (!(error instanceof TamqError)) throw error;
      const { code, reason } = error;
      // Refused before anything was recorded, and its permit may still be good.
      if (reason === "admission_closed") await this.#record(id, "permitted", reason);
      else if (code === "INVALID_ARGUMENT" || code === "PERMISSION_DENIED") {
        await this.#record(id, "refused", reason);
      } else if (reason === "task_stopped") await this.#record(id, "refused", reason);
      else {
        // Everything else leaves it in doubt.
        await this.#record(id, "unknown", reason);
        throw error;
      }
    }
  }

  async #query(agentId: string, agent: AgentRecord, id: string, execution: ExecutionRecord) {
    const { core, callMs } = this.#o;
    const client = this.#o.agent(agentId, agent.address);
    try {
      const { receipt } = await client.queryExecution({
        meta: this.#meta(agentId, agent, `execute/${id}`),
        executionId: id,
      }, { deadlineMs: callMs });
      await this.#receipt(id, receipt, "queried");
    } catch (error) {
      if (!(error instanceof TamqError) || error.reason !== "unknown_execution") throw error;
      const permit = await core.store.commit((tx) => permitOf(tx, execution.permitId));
      if (permit !== undefined && this.#valid(permit, agent)) {
        // Reconciled: the agent never recorded it. The very same request may go out again.
        await this.#record(id, "permitted", "not_recorded");
        await this.#execute(agentId, agent, id, { ...execution, state: "permitted" });
      } else if (execution.reason !== "no_evidence") {
        await this.#record(id, "unknown", "no_evidence");
      }
    }
  }

  #valid(permit: ExecutionPermit, agent: AgentRecord): boolean {
    const { core, clock } = this.#o;
    return permit.dispatcherEpoch === core.epoch && permit.bootId === agent.bootId &&
      permit.sessionGeneration === BigInt(agent.generation) &&
      BigInt(clock.now()) < permit.deadlineUnixMs;
  }

  async #receipt(id: string, receipt: ExecutionReceipt | undefined, why: string): Promise<void> {
    if (receipt === undefined) return;
    await this.#record(
      id,
      stateOf(receipt.result),
      receipt.messageState === "" ? why : `${why}: ${receipt.messageState}`,
      toJson(ExecutionReceiptSchema, receipt) as JsonObject,
    );
  }

  async #record(id: string, to: ExecutionState, why: string, receipt?: JsonObject): Promise<void> {
    const { core, clock } = this.#o;
    await core.store.commit(async (tx) => {
      await assertActive(tx, core.epoch);
      const now = (await tx.get("execution", id))!.value;
      // A report may have been faster; what is over stays over.
      if (isFinal(now.state) || (now.state === to && now.reason === why)) return;
      if (to === "unknown" && now.state === "accepted") return;
      await moveExecution(tx, id, clock.now(), to, why, receipt === undefined ? {} : { receipt });
    });
  }

  async #reached(agentId: string, unreachable: string): Promise<void> {
    await this.#o.core.store.commit(async (tx) => {
      const agent = (await tx.get("agent", agentId))!;
      if (agent.value.unreachable === unreachable) return;
      await tx.update("agent", agentId, agent.revision, { ...agent.value, unreachable });
    });
  }

  #meta(agentId: string, agent: AgentRecord, operationId: string) {
    const { epoch } = this.#o.core;
    const { cellId, bootId = "", generation } = agent;
    return create(RequestMetaSchema, {
      protocolVersion: FLEET_PROTOCOL,
      agentId,
      operationId,
      idempotencyKey: operationId,
      session: bindingOf({ epoch, cellId, bootId, generation }),
    });
  }
}
