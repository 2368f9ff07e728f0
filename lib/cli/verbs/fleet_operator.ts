/** `tamq fleet status|agents|approve|run|executions|explain|release|drain|resume`. */
import { rfc3339, systemClock } from "../../base/clock.ts";
import { displaySafe } from "../../base/display.ts";
import { newId } from "../../base/ids.ts";
import { systemRandom } from "../../base/random.ts";
import { loadSettings } from "../../config.ts";
import { Credentials } from "../../fleet/credentials.ts";
import { AdmissionState } from "../../fleet/gen/agent_pb.ts";
import { ResultCode } from "../../fleet/gen/common_pb.ts";
import {
  type AgentRecord,
  type ExecutionRecord,
  OperatorService,
} from "../../fleet/gen/operator_pb.ts";
import { sha256 } from "../../fleet/idempotency.ts";
import { type Client, connect } from "../../fleet/rpc.ts";
import { FLEET_PROTOCOL } from "../../fleet/session.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { EXIT } from "../exit_codes.ts";
import { lookOf, table } from "../layout.ts";
import { relativeTime } from "../render.ts";

export interface OperatorFlags {
  readonly dispatcher?: string;
  readonly tls?: string;
  readonly json?: boolean;
}

export interface ApproveFlags extends OperatorFlags {
  readonly address: string;
  readonly cell?: string;
}

export interface RunFlags extends OperatorFlags {
  readonly id?: string;
  readonly task?: number;
  readonly tenant?: number;
  readonly endpoint?: string;
}

export interface ExecutionsFlags extends OperatorFlags {
  readonly agent?: string;
  readonly limit?: number;
}

interface Asked {
  readonly client: Client<typeof OperatorService>;
  readonly meta: { protocolVersion: string; operationId: string; idempotencyKey: string };
}

async function ask<T>(
  context: CliContext,
  flags: OperatorFlags,
  work: (asked: Asked) => Promise<T>,
): Promise<T> {
  const { stateDir } = await loadSettings(context.env);
  using credentials = await Credentials.open(
    flags.tls ?? `${stateDir}/fleet/tls/operator`,
    systemClock,
  );
  credentials.own("operator");
  const link = connect(
    OperatorService,
    flags.dispatcher ?? "127.0.0.1:7443",
    credentials.channel("dispatcher"),
  );
  try {
    const id = newId(systemClock, systemRandom);
    const meta = { protocolVersion: FLEET_PROTOCOL, operationId: id, idempotencyKey: id };
    return await work({ client: link.client, meta });
  } finally {
    link.close();
  }
}

function agentJson(agent: AgentRecord) {
  return {
    agent_id: agent.agentId,
    cell_id: agent.cellId,
    address: agent.address,
    joined: agent.session !== undefined,
    session_generation: Number(agent.session?.sessionGeneration ?? 0),
    admission: AdmissionState[agent.admission]!.toLowerCase(),
    admission_generation: Number(agent.admissionGeneration),
    unreachable: agent.unreachable === "" ? null : agent.unreachable,
  };
}

function executionJson({ binding, state, reason, permitId, receipt }: ExecutionRecord) {
  return {
    execution_id: binding!.executionId,
    agent_id: binding!.agentId,
    target_repo: binding!.targetRepo,
    state,
    reason,
    permit_id: permitId === "" ? null : permitId,
    message_id: receipt?.messageId || null,
    message_state: receipt?.messageState || null,
  };
}

function agentRows(agents: readonly AgentRecord[]): string[][] {
  return agents.map(agentJson).map((one) => [
    one.agent_id,
    one.cell_id,
    one.address,
    one.unreachable ?? (one.joined ? `joined (${one.session_generation})` : "not joined"),
    one.admission,
  ]);
}

export const status: Verb<OperatorFlags> = async function (flags) {
  const fleet = await ask(this, flags, ({ client, meta }) => client.getFleet({ meta }));
  const well = fleet.agents.every((one) => one.session !== undefined && one.unreachable === "");
  if (flags.json) {
    this.out(JSON.stringify({
      dispatcher_epoch: fleet.dispatcherEpoch,
      agents: fleet.agents.map(agentJson),
      executions: fleet.executions,
      facts_unqueued: fleet.factsUnqueued,
    }));
  } else {
    const counts = Object.entries(fleet.executions).map(([state, n]) => `${n} ${state}`);
    this.out(table([
      ["epoch", fleet.dispatcherEpoch],
      ["executions", counts.join(", ") || "none"],
      ...agentRows(fleet.agents),
    ], lookOf(this)));
  }
  return well ? EXIT.ok : EXIT.failure;
};

export const agents: Verb<OperatorFlags> = async function (flags) {
  const fleet = await ask(this, flags, ({ client, meta }) => client.getFleet({ meta }));
  if (flags.json) { for (const one of fleet.agents) this.out(JSON.stringify(agentJson(one))); }
  else if (fleet.agents.length === 0) this.out("no agents; approve one: tamq fleet approve");
  else this.out(table(agentRows(fleet.agents), lookOf(this)));
};

export const approve: Verb<ApproveFlags, [string]> = async function (flags, agentId) {
  const { address, cell = "default" } = flags;
  await ask(
    this,
    flags,
    ({ client, meta }) => client.approveAgent({ meta, agentId, cellId: cell, address }),
  );
  if (flags.json) return this.out(JSON.stringify({ agent_id: agentId, cell_id: cell, address }));
  this.out(displaySafe(`${agentId} is approved for cell ${cell} at ${address}`));
};

export const run: Verb<RunFlags, [string, string, string]> = async function (
  flags,
  agentId,
  targetRepo,
  prompt,
) {
  const executionId = flags.id ?? newId(systemClock, systemRandom);
  const binding = {
    executionId,
    agentId,
    targetRepo,
    tenantId: BigInt(flags.tenant ?? 1),
    taskId: BigInt(flags.task ?? 1),
    endpointId: flags.endpoint ?? "",
    contentSha256: sha256(prompt),
  };
  const { execution } = await ask(
    this,
    flags,
    ({ client, meta }) => client.submitExecution({ meta, binding, prompt }),
  );
  if (flags.json) return this.out(JSON.stringify(executionJson(execution!)));
  this.out(displaySafe(`${executionId} ${execution!.state}`));
};

export const executions: Verb<ExecutionsFlags> = async function (flags) {
  const { agent: agentId = "", limit = 50 } = flags;
  const answer = await ask(
    this,
    flags,
    ({ client, meta }) => client.listExecutions({ meta, agentId, limit }),
  );
  const found = answer.executions.map(executionJson);
  if (flags.json) { for (const one of found) this.out(JSON.stringify(one)); }
  else if (found.length === 0) this.out("no executions");
  else {
    this.out(table(
      found.map((one) => [
        one.execution_id,
        one.agent_id,
        one.target_repo,
        one.state,
        one.reason,
      ]),
      lookOf(this),
    ));
  }
};

export const explain: Verb<OperatorFlags, [string]> = async function (flags, executionId) {
  const { execution, steps } = await ask(
    this,
    flags,
    ({ client, meta }) => client.explainExecution({ meta, executionId }),
  );
  const told = steps.map(({ atUnixMs, what, why }) => ({
    at: rfc3339(Number(atUnixMs)),
    what,
    why,
  }));
  if (flags.json) {
    return this.out(JSON.stringify({ ...executionJson(execution!), steps: told }));
  }
  const now = systemClock.now();
  this.out(table(
    told.map(({ at, what, why }) => [relativeTime(at, now), what, why]),
    lookOf(this),
  ));
  const advice = ADVICE[execution!.state];
  if (advice !== undefined) this.out(advice);
};

const ADVICE: Readonly<Record<string, string>> = {
  reserved: "waits for its agent: joined, and its door open (tamq fleet agents)",
  unknown: "nobody knows whether it happened: look at the host (tamq history), then decide anew",
};

export const release: Verb<OperatorFlags, [string]> = async function (flags, executionId) {
  await ask(this, flags, ({ client, meta }) => client.releaseExecution({ meta, executionId }));
  if (flags.json) return this.out(JSON.stringify({ execution_id: executionId, state: "released" }));
  this.out(displaySafe(`${executionId} released; nobody is woken for it`));
};

function door(state: AdmissionState, words: string): Verb<OperatorFlags, [string]> {
  return async function (flags, agentId) {
    const answer = await ask(
      this,
      flags,
      ({ client, meta }) => client.setAgentAdmission({ meta, agentId, state }),
    );
    const applied = answer.result === ResultCode.APPLIED;
    if (flags.json) {
      return this.out(JSON.stringify({
        agent_id: agentId,
        result: ResultCode[answer.result],
        admission_generation: Number(answer.admissionGeneration),
        active_executions: answer.activeExecutions,
      }));
    }
    const rest = applied ? "" : `; ${answer.activeExecutions} still run, ask again`;
    this.out(displaySafe(`${agentId} ${words}${rest}`));
  };
}

export const drain = door(AdmissionState.DRAINING, "takes no new executions");
export const resume = door(AdmissionState.OPEN, "takes executions");
