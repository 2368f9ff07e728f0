/** `tamq hub serve|stop|status` (K-19, K-21). */
import type { Level } from "../../base/log.ts";
import { selfCommand } from "../../base/self.ts";
import { loadSettings } from "../../config.ts";
import { connectHub } from "../../coord/connect.ts";
import { endProcess, startOnce } from "../../detached.ts";
import { ensureStateDir } from "../../ipc/state_dir.ts";
import { refuseNetwork } from "../../ipc/filesystem.ts";
import { findHub, hubSettings } from "../../hub/settings.ts";
import { liveHolder } from "../../socket.ts";
import type { Verb } from "../command.ts";
import { usageError } from "../errors.ts";
import { table } from "../render.ts";
import { VERSION } from "../version.ts";
import type { JsonFlag } from "./service.ts";

export interface HubServeFlags {
  readonly detach?: boolean;
  readonly tcp?: number;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
  readonly detachedChild?: boolean;
}

export const serve: Verb<HubServeFlags> = async function (flags) {
  if (flags.quiet && flags.verbose) {
    throw usageError("--quiet and --verbose exclude each other", "give one of them");
  }
  const settings = await loadSettings(this.env);
  const hub = hubSettings(settings, this.env);
  ensureStateDir(settings.stateDir);
  if (!settings.allowNetworkState) refuseNetwork(settings.stateDir);
  if (flags.detach) {
    const tcp = flags.tcp === undefined ? [] : ["--tcp", String(flags.tcp)];
    const { started, pid } = await startOnce({
      stateDir: hub.stateDir,
      runningReason: "hub_running",
      running: () => Promise.resolve(liveHolder(hub.stateDir)?.pid),
      launch: {
        name: "State Hub",
        argv: selfCommand(["hub", "serve", "--detached-child", ...tcp]),
        env: {
          TAMQ_STATE_DIR: settings.stateDir,
          TAMQ_HUB_SOCKET: hub.socket,
          ...(settings.configured ? { TAMQ_CONFIG: settings.configFile } : {}),
        },
        logFile: hub.logFile,
        foreground: "tamq hub serve",
      },
    });
    this.out(started ? `State Hub started (pid ${pid})` : `State Hub already running (pid ${pid})`);
    return;
  }
  const level: Level = flags.quiet ? "warn" : flags.verbose ? "debug" : "info";
  const { serveHub } = await import("../../hub/serve.ts");
  const { windowOfAncestry } = await import("../../broker_process.ts");
  await serveHub({
    hub,
    version: VERSION,
    mode: flags.detachedChild ? "detached" : "foreground",
    level,
    json: flags.json,
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
    ["started", value.started_at],
  ]));
};
