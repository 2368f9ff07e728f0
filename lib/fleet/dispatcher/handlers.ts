/** Every operation of the dispatcher for agents, in one table. */
import type { DispatcherService } from "../gen/dispatcher_pb.ts";
import type { Handlers } from "../rpc.ts";
import type { DispatcherCore } from "./core.ts";
import { factHandlers } from "./facts.ts";
import { permitHandlers } from "./permits.ts";
import { sessionHandlers } from "./sessions.ts";

export function dispatcherHandlers(core: DispatcherCore): Handlers<typeof DispatcherService> {
  const { queueFact: _, ...facts } = factHandlers(core);
  return { ...sessionHandlers(core), ...permitHandlers(core), ...facts };
}
