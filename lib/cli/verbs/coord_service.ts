/** `tamq coord serve|stop` (K-21, L-01, L-02). */
import { selfCommand } from "../../base/self.ts";
import { loadSettings } from "../../config.ts";
import { engineSettings } from "../../coord/settings.ts";
import { endProcess, startOnce } from "../../detached.ts";
import { SERVICE_V8_FLAGS } from "../../service_control.ts";
import { orwellSink } from "../../ipc/orwell.ts";
import { liveHolder } from "../../socket.ts";
import type { Verb } from "../command.ts";
import {
  childOptions,
  levelOf,
  orwellProfile,
  refuseUnless,
  type ServiceFlags,
} from "../serve_flags.ts";
import { VERSION } from "../version.ts";
import type { JsonFlag } from "./service.ts";

export const serve: Verb<ServiceFlags> = async function (flags) {
  const level = levelOf(flags);
  const settings = await loadSettings(this.env);
  const { stateDir, logFile, socket } = engineSettings(settings);
  const orwell = orwellProfile(this, flags, settings, orwellSink(stateDir));
  if (flags.detach) {
    const { started, pid } = await startOnce({
      stateDir,
      runningReason: "engine_running",
      running: () => Promise.resolve(liveHolder(stateDir)?.pid),
      launch: {
        name: "coordination engine",
        argv: selfCommand(["coord", "serve", "--detached-child", ...childOptions(flags)]),
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
    refuseUnless(started, flags, "tamq coord stop");
    const what = "coordination engine";
    this.out(started ? `${what} started (pid ${pid})` : `${what} already running (pid ${pid})`);
    return;
  }
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
    orwell,
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
