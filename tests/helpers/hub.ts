/** State Hubs of their own for tests: in this process, on private paths. */
import { type Clock, systemClock } from "../../lib/base/clock.ts";
import { type Log, silentLog } from "../../lib/base/log.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { type HubSettings, hubSettings } from "../../lib/hub/settings.ts";
import { type RunningHub, startHub } from "../../lib/hub/server.ts";
import { settingsIn } from "./service.ts";
import { withTempDir } from "./temp.ts";

/** Settings of a hub whose every path is inside `dir`. */
export async function hubSettingsIn(
  dir: string,
  env: Record<string, string> = {},
): Promise<HubSettings> {
  const all: Record<string, string> = { XDG_RUNTIME_DIR: `${dir}/run`, ...env };
  return hubSettings(await settingsIn(dir, env), (name) => all[name]);
}

export interface HubRig {
  readonly dir: string;
  readonly hub: HubSettings;
  readonly running: RunningHub;
  /** Over the Unix socket. */
  readonly client: StateHubClient;
  /** Over TCP with the token; needs `tcp`. */
  tcpClient(): StateHubClient;
}

/** Runs `body` with a hub in this process. */
export async function withHub(
  body: (rig: HubRig) => Promise<void>,
  options: {
    tcp?: boolean;
    clock?: Clock;
    log?: Log;
    limits?: { requests?: number; streams?: number };
  } = {},
): Promise<void> {
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    const running = await startHub({
      hub,
      version: "0.0.0-test",
      log: options.log ?? silentLog,
      clock: options.clock ?? systemClock,
      tcpPort: options.tcp ? 0 : undefined,
      limits: options.limits,
    });
    const clients: StateHubClient[] = [];
    const add = (client: StateHubClient) => (clients.push(client), client);
    try {
      await body({
        dir,
        hub,
        running,
        client: add(new StateHubClient({ address: { unix: hub.socket } })),
        tcpClient: () =>
          add(
            new StateHubClient({
              address: {
                base: `http://127.0.0.1:${running.port}`,
                tokenFile: hub.tokenFile,
              },
            }),
          ),
      });
    } finally {
      for (const client of clients) client.close();
      await running.stop();
    }
  });
}
