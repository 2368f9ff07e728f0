/** Every operation of the agent, in one table. */
import type { AgentService } from "../gen/agent_pb.ts";
import type { Handlers } from "../rpc.ts";
import { admissionHandlers } from "./admission.ts";
import { controlHandlers } from "./control.ts";
import type { AgentCore } from "./core.ts";
import { executionHandlers } from "./executions.ts";

export function agentHandlers(core: AgentCore, stopWaitMs?: number): Handlers<typeof AgentService> {
  return {
    ...admissionHandlers(core),
    ...executionHandlers(core),
    ...controlHandlers(core, stopWaitMs),
  };
}
