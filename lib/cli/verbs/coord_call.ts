/** How verbs reach the engine. */
import { briefClock } from "../../base/brief_clock.ts";
import { loadSettings } from "../../config.ts";
import { callEngine } from "../../coord/client.ts";
import type { EngineOperation, EngineRequest } from "../../coord/operations.ts";
import { findEngine } from "../../coord/settings.ts";
import type { CliContext } from "../context.ts";

/** Performs one operation at the configured engine; its answers are of our own program. */
export async function askEngine<T, K extends EngineOperation = EngineOperation>(
  context: CliContext,
  op: K,
  request: EngineRequest<K>,
): Promise<T> {
  const settings = await loadSettings(context.env);
  return await callEngine(findEngine(settings), op, request, { clock: briefClock }) as T;
}

/** A lease as the engine tells it. */
export interface LeaseAnswer {
  readonly lease: string;
  readonly trigger_id: string;
  readonly target_repo: string;
  readonly state: string;
  readonly held: boolean;
  readonly attempt: number;
  readonly expires_at: string;
  readonly local_message_id: string | null;
  readonly message_state: string | null;
}
