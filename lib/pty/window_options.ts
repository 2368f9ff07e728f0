/** What a window is made of; see `window.ts`. */
import type { Clock } from "../base/clock.ts";
import type { Mode } from "../model/endpoint.ts";
import type { Provenance } from "../model/message.ts";
import type { Agent } from "./agent.ts";
import type { AgentInjector, AgentInjectorOptions } from "./agent_injector.ts";
import type { GateState } from "./gate.ts";
import type { Profile } from "./profiles/plain.ts";
import type { ScreenNotice } from "./screen.ts";
import type { Session } from "./session.ts";

/** The window's agent, and what writes to it; loaded before the worker starts. */
export interface AgentSide {
  readonly agent: Agent;
  readonly injector: (options: Omit<AgentInjectorOptions, "agent">) => AgentInjector;
}

export interface WindowOptions {
  readonly clock: Clock;
  readonly profile: Profile;
  /** Where the profile is an agent's. */
  readonly agent?: AgentSide;
  /** False: what the worker prints is not searched for messages. */
  readonly observe?: boolean;
  readonly mode: Mode;
  readonly session: Session;
  /** Registered names as they are now; empty when the registry cannot be read. */
  readonly names: () => readonly string[];
  /** A complete message that the worker or the operator addressed. */
  readonly onMessage: (target: string, body: string, provenance: Provenance) => void;
  /** An addressed text that is not sent, and why. */
  readonly onRefusal: (target: string, reason: string) => void;
  /** A message that the worker began stays open for long. */
  readonly onLongBlock: (target: string) => void;
  readonly onGate: (state: GateState) => void;
  /** What the observer of an agent's screen has to say beside refusals. */
  readonly onNotice: (notice: Exclude<ScreenNotice, { target: string }>) => void;
}
