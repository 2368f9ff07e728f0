/** `tamq coord serve|stop` (K-21, L-01, L-02). */
import type { Level } from "../../base/log.ts";
import { selfCommand } from "../../base/self.ts";
import { loadSettings } from "../../config.ts";
import { engineSettings } from "../../coord/settings.ts";
import { endProcess, startOnce } from "../../detached.ts";
import { SERVICE_V8_FLAGS } from "../../service_control.ts";
import { liveHolder } from "../../socket.ts";
import type { Verb } from "../command.ts";
import { usageError } from "../errors.ts";
import { VERSION } from "../version.ts";
import type { JsonFlag } from "./service.ts";

export interface CoordServeFlags {
  readonly detach?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
  readonly detachedChild?: boolean;
}

export const serve: Verb<CoordServeFlags> = async function (flags) {
  if (flags.quiet && flags.verbose) {
    throw usageError("--quiet and --verbose exclude each other", "give one of them");
  }
  const settings = await loadSettings(this.env);
  const { stateDir, logFile, socket } = engineSettings(settings);
  if (flags.detach) {
    const { started, pid } = await startOnce({
      stateDir,
      runningReason: "engine_running",
      running: () => Promise.resolve(liveHolder(stateDir)?.pid),
      launch: {
        name: "coordination engine",
        argv: selfCommand(["coord", "serve", "--detached-child"]),
        env: {
          DENO_V8_FLAGS: Deno.env.get("DENO_V8_FLAGS") ?? SERVICE_V8_FLAGS,
          TAMQ_STATE_DIR: settings.stateDir,
          TAMQ_COORD_SOCKET: socket,
          ...(settings.configured ? { TAMQ_CONFIG: settings.configFile } : {}),
        },
        logFile,
        foreground: "tamq coord serve",
      },
    });
    const what = "coordination engine";
    this.out(started ? `${what} started (pid ${pid})` : `${what} already running (pid ${pid})`);
    return;
  }
  const level: Level = flags.quiet ? "warn" : flags.verbose ? "debug" : "info";
  const { runEngine } = await import("../../coord/engine.ts");
  const { gitaRegistry } = await import("../../gita.ts");
  const { brokerProcesses } = await import("../../broker_process.ts");
  await runEngine({
    settings,
    registry: gitaRegistry(this.env),
    version: VERSION,
    isBroker: brokerProcesses(this.clock),
    mode: flags.detachedChild ? "detached" : "foreground",
    env: this.env,
    level,
    json: flags.json,
  });
};

export const stop: Verb<JsonFlag> = async function ({ json }) {
  const settings = await loadSettings(this.env);
  const holder = liveHolder(engineSettings(settings).stateDir);
  if (holder !== undefined) {
    await endProcess(holder, {
      name: "coordination engine",
      graceMs: settings.graceMs,
      safe: "leases and receipts survive that",
    });
  }
  if (json) {
    return this.out(JSON.stringify({ stopped: holder !== undefined, pid: holder?.pid }));
  }
  this.out(
    holder === undefined
      ? "no coordination engine was running"
      : `coordination engine stopped (pid ${holder.pid})`,
  );
};
