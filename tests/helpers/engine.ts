/** A coordination engine as a process of its own; its log lines are read from standard error. */
import type { Settings } from "../../lib/config.ts";
import { SERVICE_V8_FLAGS } from "../../lib/service_control.ts";
import { environmentOf, textLines } from "./service.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

export class EngineProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly log: string[] = [];
  readonly #drained: Promise<void>;
  #ready = Promise.withResolvers<void>();

  private constructor(settings: Settings, env: Record<string, string>) {
    const flags = ["-A", "--no-check", "--quiet", "--frozen", "--config", `${ROOT}deno.json`];
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", ...flags, `${ROOT}tests/helpers/engine_entry.ts`],
      env: {
        DENO_V8_FLAGS: SERVICE_V8_FLAGS,
        ...environmentOf(settings),
        TAMQ_COORD_SOCKET: settings.coordSocket,
        ...env,
      },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#ready.promise.catch(() => {});
    this.#drained = this.#read();
  }

  async #read(): Promise<void> {
    for await (const line of textLines(this.#child.stderr)) {
      this.log.push(line);
      if (line.includes(`"engine.ready"`)) this.#ready.resolve();
    }
    this.#ready.reject(new Error(`the engine ended: ${this.log.join("\n")}`));
  }

  /** Started and ready; throws with its log when it ends before. */
  static async start(settings: Settings, env: Record<string, string>): Promise<EngineProcess> {
    const engine = new EngineProcess(settings, env);
    await engine.#ready.promise;
    return engine;
  }

  get pid(): number {
    return this.#child.pid;
  }

  kill(signal: Deno.Signal = "SIGKILL"): void {
    this.#child.kill(signal);
  }

  /** Reads the log to its end; the exit status. */
  async ended(): Promise<Deno.CommandStatus> {
    await this.#drained;
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
