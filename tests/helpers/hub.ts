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

/** For hubs whose callers are all outside of windows. */
export const noWindow = () => undefined;

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
    windowOf?: (pids: readonly number[]) => string | undefined;
    limits?: { requests?: number; streams?: number };
  } = {},
): Promise<void> {
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    const running = await startHub({
      hub,
      version: "0.0.0-test",
      log: options.log ?? silentLog,
      windowOf: options.windowOf ?? noWindow,
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

/** The argument vector of a State Hub as a process of this checkout. */
export function hubCommand(...args: string[]): string[] {
  const root = new URL("../../", import.meta.url).pathname;
  const flags = ["-A", "--no-check", "--quiet", "--frozen", "--config", `${root}deno.json`];
  return [Deno.execPath(), "run", ...flags, `${root}tests/helpers/hub_entry.ts`, ...args];
}

/** The environment in which a process has those settings. */
export function hubEnvironment(dir: string, hub: HubSettings): Record<string, string> {
  return {
    TAMQ_STATE_DIR: hub.stateDir.replace(/\/hub$/, ""),
    TAMQ_HUB_SOCKET: hub.socket,
    XDG_CONFIG_HOME: `${dir}/config`,
  };
}

/** A State Hub as a process of its own; its log lines are read from standard error. */
export class HubProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #lines: AsyncGenerator<Record<string, unknown>>;

  private constructor(dir: string, readonly hub: HubSettings, env: Record<string, string>) {
    const [program, ...args] = hubCommand();
    this.#child = new Deno.Command(program!, {
      args,
      env: { ...hubEnvironment(dir, hub), ...env },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#lines = jsonLines(this.#child.stderr);
  }

  /** Started and ready; throws with the reason when it ends before. */
  static async start(dir: string, env: Record<string, string> = {}): Promise<HubProcess> {
    const hub = new HubProcess(dir, await hubSettingsIn(dir), env);
    const first = await hub.event(/^hub\.(ready|failed)$/);
    if (first?.event === "hub.ready") return hub;
    await hub[Symbol.asyncDispose]();
    throw new Error(`the hub did not start: ${String(first?.reason)}`);
  }

  /** The next line of the log whose event matches; undefined when the log ended. */
  async event(wanted: RegExp): Promise<Record<string, unknown> | undefined> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) return undefined;
      if (wanted.test(String(value.event))) return value;
    }
  }

  kill(signal: Deno.Signal = "SIGKILL"): void {
    this.#child.kill(signal);
  }

  /** Reads the log to its end; the exit status. */
  async ended(): Promise<Deno.CommandStatus> {
    while (await this.event(/^$/) !== undefined) { /* to the end */ }
    return await this.#child.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.kill();
    } catch {
      // ended already
    }
    await this.ended();
  }
}

async function* jsonLines(
  stream: ReadableStream<Uint8Array>,
): AsyncGenerator<Record<string, unknown>> {
  let rest = "";
  for await (
    const chunk of stream.pipeThrough(
      new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>,
    )
  ) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (line.startsWith("{")) yield JSON.parse(line);
  }
}
