/** Services of their own for tests: real processes on private paths. */
import { SERVICE_V8_FLAGS } from "../../lib/service_control.ts";
import { loadSettings, type Settings } from "../../lib/config.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** How a process of this checkout is started with the test's own service as its main module. */
export function serviceCommand(mode: "foreground" | "detached"): string[] {
  return [
    Deno.execPath(),
    "run",
    "-A",
    "--no-check",
    "--quiet",
    "--frozen",
    "--config",
    `${ROOT}deno.json`,
    `${ROOT}tests/helpers/service_entry.ts`,
    mode,
  ];
}

/** Settings whose every path is inside `dir`. */
export async function settingsIn(
  dir: string,
  env: Record<string, string> = {},
): Promise<Settings> {
  const all: Record<string, string> = {
    HOME: dir,
    XDG_STATE_HOME: `${dir}/state`,
    XDG_CONFIG_HOME: `${dir}/config`,
    XDG_RUNTIME_DIR: `${dir}/run`,
    ...env,
  };
  return await loadSettings((name) => all[name]);
}

/** The environment in which a process has those settings. */
export function environmentOf(settings: Settings): Record<string, string> {
  return {
    TAMQ_STATE_DIR: settings.stateDir,
    TAMQ_SOCKET: settings.socket,
    // The user's own configuration is not read, also when there is none here.
    XDG_CONFIG_HOME: settings.configFile.replace(/\/tamq\/config\.toml$/, ""),
    ...(settings.configured ? { TAMQ_CONFIG: settings.configFile } : {}),
  };
}

export interface ServiceRun {
  readonly env?: Record<string, string>;
  /** Put before the command, e.g. `strace …`. */
  readonly prefix?: readonly string[];
}

/** A service in the foreground; its log lines are read from standard error. */
export class ServiceProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  /** Lines that came and were not looked at; null after the last one. */
  readonly #arrived: (Record<string, unknown> | null)[] = [];
  #wake: (() => void) | undefined;
  /** What was looked at. */
  readonly log: Record<string, unknown>[] = [];

  private constructor(readonly settings: Settings, options: ServiceRun) {
    const [program, ...args] = [...options.prefix ?? [], ...serviceCommand("foreground")];
    this.#child = new Deno.Command(program!, {
      args,
      env: { DENO_V8_FLAGS: SERVICE_V8_FLAGS, ...environmentOf(settings), ...options.env },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    // Read as it comes: a pipe that nobody empties would stop the service in the middle of a line.
    void this.#collect(this.#child.stderr);
  }

  async #collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const line of textLines(stream)) {
      if (!line.startsWith("{")) continue;
      this.#arrived.push(JSON.parse(line));
      this.#wake?.();
    }
    this.#arrived.push(null);
    this.#wake?.();
  }

  /** Started and ready; throws with its log when it ends before. */
  static async start(settings: Settings, options: ServiceRun = {}): Promise<ServiceProcess> {
    const service = new ServiceProcess(settings, options);
    const ready = await service.event("service.ready");
    if (ready === undefined) {
      const { code } = await service.#child.status;
      throw new Error(`the service ended with ${code}: ${JSON.stringify(service.log)}`);
    }
    return service;
  }

  /** Waits for that line of the log; undefined when the service ended without it. */
  async event(name: string): Promise<Record<string, unknown> | undefined> {
    for (;;) {
      const line = this.#arrived[0];
      if (line === null) return undefined;
      if (line === undefined) {
        await new Promise<void>((resolve) => this.#wake = resolve);
        continue;
      }
      this.#arrived.shift();
      this.log.push(line);
      if (line.event === name) return line;
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  kill(signal: Deno.Signal = "SIGKILL"): void {
    this.#child.kill(signal);
  }

  /** Reads the log to its end; the exit status. */
  async ended(): Promise<Deno.CommandStatus> {
    while (await this.event("") !== undefined) { /* to the end */ }
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

/** Lines of text as they come. */
export async function* textLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** Open descriptors of a process. */
export function descriptorCount(pid: number): number {
  return [...Deno.readDirSync(`/proc/${pid}/fd`)].length;
}
