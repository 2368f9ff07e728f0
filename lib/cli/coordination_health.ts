/** What `tamq status` tells of the coordination engine and the embedded State Hub (L-06, K-21). */
import { briefClock } from "../base/brief_clock.ts";
import { errorText } from "../base/errors.ts";
import type { Settings } from "../config.ts";
import { callEngine } from "../coord/client.ts";
import { engineSettings } from "../coord/settings.ts";
import { hubSettings } from "../hub/settings.ts";
import { liveHolder } from "../socket.ts";
import type { CliContext } from "./context.ts";

export interface PartHealth {
  /** True also while it does not run: messages do not need it. */
  readonly ok: boolean;
  readonly running: boolean;
  readonly detail: string;
}

const AWAY: PartHealth = { ok: true, running: false, detail: "not running" };
const TIMEOUT_MS = 2000;

export async function coordinationHealth(
  { env }: CliContext,
  settings: Settings,
): Promise<{ engine: PartHealth; hub: PartHealth }> {
  const hub = liveHolder(hubSettings(settings, env).stateDir);
  return {
    engine: await engineHealth(engineSettings(settings).stateDir),
    // That it lives is told by its lock; `tamq hub status` asks it.
    hub: hub === undefined ? AWAY : { ok: true, running: true, detail: `process ${hub.pid}` },
  };
}

async function engineHealth(stateDir: string): Promise<PartHealth> {
  const holder = liveHolder(stateDir);
  if (holder === undefined) return AWAY;
  try {
    const options = { timeoutMs: TIMEOUT_MS, clock: briefClock };
    const status = await callEngine(holder.socket, "status", {}, options);
    const parts = ["engine", "sqlite", "gita", "state_hub", "message_service"] as const;
    const ill = parts.filter((name) => (status[name] as { ok: boolean }).ok === false);
    const { held } = status.leases as { held: number };
    const gated = (status.triggers as Record<string, number>).gated ?? 0;
    const detail = ill.length === 0
      ? `process ${holder.pid}, ${held} leases held, ${gated} triggers gated`
      : `process ${holder.pid}; not well: ${ill.join(", ")} (see: tamq coord status)`;
    return { ok: ill.length === 0, running: true, detail };
  } catch (error) {
    return { ok: false, running: true, detail: errorText(error) };
  }
}
