/** `tamq hub serve|stop|status` (K-19, K-21). */
import { selfCommand } from "../../base/self.ts";
import { loadSettings } from "../../config.ts";
import { connectHub } from "../../coord/connect.ts";
import { endProcess, startOnce } from "../../detached.ts";
import { ensureStateDir } from "../../ipc/state_dir.ts";
import { refuseNetwork } from "../../ipc/filesystem.ts";
import { findHub, hubSettings } from "../../hub/settings.ts";
import { orwellSink } from "../../ipc/orwell.ts";
import { liveHolder } from "../../socket.ts";
import type { Verb } from "../command.ts";
import { lookOf, table } from "../layout.ts";
import { relativeTime } from "../render.ts";
import {
  childOptions,
  levelOf,
  orwellProfile,
  refuseUnless,
  type ServiceFlags,
} from "../serve_flags.ts";
import { VERSION } from "../version.ts";
import type { JsonFlag } from "./service.ts";

export interface HubServeFlags extends ServiceFlags {
  readonly tcp?: number;
}

export const serve: Verb<HubServeFlags> = async function (flags) {
  const level = levelOf(flags);
  const settings = await loadSettings(this.env);
  const hub = hubSettings(settings, this.env);
  ensureStateDir(settings.stateDir);
  if (!settings.allowNetworkState) refuseNetwork(settings.stateDir);
  const orwell = orwellProfile(this, flags, settings, orwellSink(hub.stateDir));
  if (flags.detach) {
    const tcp = flags.tcp === undefined ? [] : ["--tcp", String(flags.tcp)];
    const { started, pid } = await startOnce({
      stateDir: hub.stateDir,
      runningReason: "hub_running",
      running: () => Promise.resolve(liveHolder(hub.stateDir)?.pid),
      launch: {
        name: "State Hub",
        argv: selfCommand(["hub", "serve", "--detached-child", ...childOptions(flags), ...tcp]),
        env: {
          TAMQ_STATE_DIR: settings.stateDir,
          TAMQ_HUB_SOCKET: hub.socket,
          ...(settings.configured ? { TAMQ_CONFIG: settings.configFile } : {}),
        },
        logFile: hub.logFile,
        foreground: "tamq hub serve",
      },
    });
    refuseUnless(started, flags, "tamq hub stop");
    this.out(started ? `State Hub started (pid ${pid})` : `State Hub already running (pid ${pid})`);
    return;
  }
  const { serveHub } = await import("../../hub/serve.ts");
  const { windowOfAncestry } = await import("../../broker_process.ts");
  await serveHub({
    hub,
    version: VERSION,
    mode: flags.detachedChild ? "detached" : "foreground",
    level,
    json: flags.json,
    orwell,
    tcpPort: flags.tcp,
    windowOf: windowOfAncestry,
  });
};

export const stop: Verb<JsonFlag> = async function ({ json }) {
  const settings = await loadSettings(this.env);
  const { stateDir, graceMs } = hubSettings(settings, this.env);
  const holder = liveHolder(stateDir);
  if (holder !== undefined) {
    await endProcess(holder, { name: "State Hub", graceMs, safe: "what it answered is on disk" });
  }
  if (json) {
    return this.out(JSON.stringify({ stopped: holder !== undefined, pid: holder?.pid }));
  }
  this.out(
    holder === undefined ? "no State Hub was running" : `State Hub stopped (pid ${holder.pid})`,
  );
};

export const status: Verb<JsonFlag> = async function ({ json }) {
  const settings = await loadSettings(this.env);
  const found = findHub(settings, hubSettings(settings, this.env));
  const address = "unix" in found ? found.unix : found.base;
  using hub = connectHub(settings, this.env, { backoffMs: [] });
  const { value } = await hub.call("hub", {});
  if (json) return this.out(JSON.stringify({ address, ...value }));
  this.out(table([
    ["address", address],
    ["hub", value.hub_id],
    ["version", `${value.version} (interface ${value.api_version})`],
    ["started", relativeTime(value.started_at, this.clock.now())],
  ], lookOf(this)));
};
