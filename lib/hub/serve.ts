/** `tamq hub serve`: the hub in the foreground, or as what `--detach` started (K-19, C-05). */
import { type Clock, systemClock } from "../base/clock.ts";
import type { Level } from "../base/log.ts";
import { announce, announceFailure, logDeath, serviceLog } from "../base/service.ts";
import { openOrwell, orwellSink } from "../ipc/orwell.ts";
import { ensureStateDir } from "../ipc/state_dir.ts";
import type { PolicyProfile } from "../model/policy.ts";
import { runHub } from "./server.ts";
import type { DoorOptions } from "./door.ts";
import type { HubSettings } from "./settings.ts";

export interface HubServeOptions {
  readonly hub: HubSettings;
  readonly version: string;
  readonly mode: "foreground" | "detached";
  readonly level?: Level;
  readonly json?: boolean;
  /** Turns `--orwell` on, if this profile admits it (C-06). */
  readonly orwell?: PolicyProfile;
  /** Listens on this loopback port as well. */
  readonly tcpPort?: number;
  readonly windowOf: DoorOptions["windowOf"];
  readonly clock?: Clock;
}

/** Returns after an orderly end; the caller exits by `Deno.exit`. Throws the errors of `startHub`. */
export async function serveHub(options: HubServeOptions): Promise<void> {
  const { hub, mode, version, tcpPort, windowOf, clock = systemClock } = options;
  try {
    ensureStateDir(hub.stateDir);
    using output = serviceLog({ ...options, logFile: hub.logFile, clock });
    const { log } = output;
    logDeath(log, "hub.crashed");
    const sink = orwellSink(hub.stateDir);
    using orwell = options.orwell && openOrwell(options.orwell, sink, clock);
    if (orwell !== undefined) log.warn("orwell.active", { sink });
    await runHub({
      hub,
      version,
      tcpPort,
      windowOf,
      log,
      orwell,
      clock,
      onReady: ({ port }) => {
        if (mode === "detached") announce({ ready: true, pid: Deno.pid, port });
      },
    });
  } catch (error) {
    if (mode === "detached") announceFailure(error, hub.logFile);
    throw error;
  }
}
