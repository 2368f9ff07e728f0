/** What a window with an agent needs beside the rest of a broker; loaded only for one. */
import { Agent, type AgentOptions, type KeptAgent } from "./pty/agent.ts";
import { AgentInjector } from "./pty/agent_injector.ts";
import type { AgentSide } from "./pty/window_options.ts";

export { loadModel } from "./pty/screen/model.ts";

/** Loads the terminal model; await it before the worker is spawned. */
export async function openAgentSide(
  options: AgentOptions,
  kept?: KeptAgent,
): Promise<AgentSide> {
  const agent = await Agent.open(options, kept);
  return { agent, injector: (more) => new AgentInjector({ ...more, agent }) };
}
