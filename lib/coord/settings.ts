/** Where the engine keeps its things (K-08, K-22). */
import type { Settings } from "../config.ts";
import { liveHolder } from "../ipc/lock.ts";

export interface EngineSettings {
  /** Its lock and log; the database lies beside the message service's. */
  readonly stateDir: string;
  readonly database: string;
  readonly logFile: string;
  readonly socket: string;
}

export function engineSettings(settings: Settings): EngineSettings {
  const stateDir = `${settings.stateDir}/coord`;
  return Object.freeze({
    stateDir,
    database: `${settings.stateDir}/coord.sqlite3`,
    logFile: `${stateDir}/coord.log`,
    socket: settings.coordSocket,
  });
}

/** The engine to talk to: the named socket, else that of the live one on this state directory. */
export function findEngine(settings: Settings): string {
  const { stateDir, socket } = engineSettings(settings);
  if (settings.coordSocketExplicit) return socket;
  return liveHolder(stateDir)?.socket ?? socket;
}
