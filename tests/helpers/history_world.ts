/** A real service with a window on `beta` in a process of its own, and the command line against it. */
import { call } from "../../lib/client.ts";
import type { Settings } from "../../lib/config.ts";
import { openStore } from "../../lib/store/store.ts";
import { systemClock, within } from "../../lib/base/clock.ts";
import { runInside } from "./cli.ts";
import { environmentOf, ServiceProcess, settingsIn, textLines } from "./service.ts";
import type { Result } from "./world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
export const REPOS = { alpha: "/repos/alpha", beta: "/repos/beta", gamma: "/repos/gamma" };

export class HistoryWorld {
  /** Every window is at this one: the tests' own process poses as the tmux server. */
  readonly endpoint = `tmux-amq-${Deno.pid}`;
  service: ServiceProcess | undefined;

  private constructor(readonly dir: string, readonly settings: Settings) {}

  static async create(dir: string): Promise<HistoryWorld> {
    return new HistoryWorld(dir, await settingsIn(dir));
  }

  get env(): Record<string, string> {
    return { ...environmentOf(this.settings), HOME: this.dir };
  }

  async start(): Promise<ServiceProcess> {
    const env = { TEST_REPOS: JSON.stringify(REPOS) };
    this.service = await ServiceProcess.start(this.settings, { env });
    return this.service;
  }

  async stop(): Promise<void> {
    this.service?.kill("SIGTERM");
    await this.service?.ended();
    this.service = undefined;
  }

  /** A window of `beta` that shows whatever comes. */
  async receiver(): Promise<Receiver> {
    return await this.#window(new Receiver(this.settings.socket));
  }

  /** A window of `beta` that takes nothing. */
  async closedWindow(): Promise<AsyncDisposable> {
    return await this.#window(new Receiver(this.settings.socket, "closed_window_entry.ts"));
  }

  async #window<T>(window: T): Promise<T> {
    await this.service!.event("window.attached");
    return window;
  }

  /** Runs `tamq` in this process. */
  tamq(args: readonly string[], options: Parameters<typeof runInside>[1] = {}): Promise<Result> {
    return runInside(args, { ...options, env: { ...this.env, ...options.env } });
  }

  /** `tamq` as a process of its own: an argument vector. */
  argv(args: readonly string[]): string[] {
    return [Deno.execPath(), "run", "-A", "--no-check", "--frozen", `${ROOT}main.ts`, ...args];
  }

  send(key: string, fields: Record<string, unknown> = {}) {
    return call(this.settings.socket, "send", {
      client_id: "test",
      idempotency_key: key,
      sender_repo: "local",
      target_repo: "beta",
      provenance: "cli",
      body: key,
      ...fields,
    });
  }

  /** The database with nobody else around. */
  async withStore<T>(
    body: (opened: Awaited<ReturnType<typeof openStore>>) => T | Promise<T>,
  ): Promise<T> {
    const { database, busyTimeoutMs } = this.settings;
    const opened = await openStore(database, { busyTimeoutMs, clock: systemClock });
    try {
      return await body(opened);
    } finally {
      opened.db.close();
    }
  }
}

export class Receiver implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly shown: AsyncGenerator<string>;

  constructor(socket: string, entry = "receiver_entry.ts") {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--quiet", "--frozen", "--config", `${ROOT}deno.json`]
        .concat(`${ROOT}tests/helpers/${entry}`, socket),
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.shown = textLines(this.#child.stdout);
  }

  /** The ids of the next `count` messages that it showed. */
  async next(count: number): Promise<string[]> {
    const ids: string[] = [];
    while (ids.length < count) {
      const { value, done } = await within(systemClock, 30_000, this.shown.next(), () => {
        throw new Error(`only ${ids.length} of ${count} messages were shown`);
      });
      if (done) throw new Error("the receiver has ended");
      ids.push(value);
    }
    return ids;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.close().catch(() => {});
    while (!(await this.shown.next()).done) { /* to the end */ }
    await this.#child.status;
  }
}

export const jsonLines = (text: string): Record<string, unknown>[] =>
  text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));

/** Runs `body` with a world in a temporary folder; its service is stopped at the end. */
export async function withHistory(body: (world: HistoryWorld) => Promise<void>): Promise<void> {
  // Short: a socket path may hold at most 107 bytes.
  const dir = await Deno.makeTempDir({ prefix: "tamq-" });
  const world = await HistoryWorld.create(dir);
  try {
    await body(world);
  } finally {
    await world.stop();
    await Deno.remove(dir, { recursive: true });
  }
}
