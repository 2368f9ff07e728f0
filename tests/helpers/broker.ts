/** A broker under test: in this process, on a terminal that the test holds, against a scripted service. */
import { type BrokerOptions, runBroker } from "../../lib/broker.ts";
import { loadSettings } from "../../lib/config.ts";
import type { Mode } from "../../lib/model/endpoint.ts";
import type { Registry } from "../../lib/model/ports.ts";
import type { BrokerFrame, ServiceFrame } from "../../lib/protocol/schema.ts";
import { TestTerminal } from "./pty.ts";

export function registryOf(...names: string[]): Registry {
  return {
    source: "test registry",
    names: () => names,
    find: (name) => names.includes(name) ? { name, path: `/${name}` } : "unknown",
  };
}

export interface TestBroker {
  readonly terminal: TestTerminal;
  /** Exit status of the broker. */
  readonly done: Promise<number>;
}

export interface TestBrokerOptions {
  command: string[];
  dir: string;
  cwd?: string;
  mode?: Mode;
  service?: boolean;
  names?: string[];
  terminal?: TestTerminal;
  profile?: string;
  record?: BrokerOptions["record"];
  capture?: boolean;
}

/** Runs `body` with a broker of repository `alpha`; afterwards the terminal goes away and it ends. */
export async function withBroker(
  options: TestBrokerOptions,
  body: (broker: TestBroker) => Promise<void>,
): Promise<void> {
  const terminal = options.terminal ?? new TestTerminal();
  const done = runBroker(await brokerOptions(options, terminal));
  done.catch(() => {}); // the body sees it
  try {
    await body({ terminal, done });
  } finally {
    await terminal.close();
    await done.catch(() => {});
  }
}

export async function brokerOptions(
  options: TestBrokerOptions,
  terminal: TestTerminal,
): Promise<BrokerOptions> {
  const { dir } = options;
  const env: Record<string, string> = {
    HOME: dir,
    TAMQ_STATE_DIR: `${dir}/state`,
    TAMQ_SOCKET: `${dir}/tamq.sock`,
  };
  return {
    repo: "alpha",
    path: options.cwd ?? dir,
    command: options.command,
    mode: options.mode ?? "trigger",
    tmux: { server_pid: Deno.pid, session: "test", window_id: "@1", pane_id: "" },
    settings: await loadSettings((name) => env[name]),
    service: options.service ?? true,
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.capture ? { capture: true } : {}),
    ...(options.record === undefined ? {} : { record: options.record }),
    registry: registryOf(...options.names ?? ["alpha", "beta", "gamma"]),
    terminal: { stdin: terminal.slave, stdout: terminal.slave },
  };
}

type Answer = { ok: true; result: unknown } | { ok: false; error: unknown };
export type Json = Record<string, unknown>;

/** A service that says what the test tells it to; records what it is asked. */
export class ScriptedService {
  readonly sends: Json[] = [];
  readonly attaches: Json[] = [];
  readonly frames: BrokerFrame[] = [];
  /** Answer to `send`; the default admits. */
  onSend: (request: Json) => Answer = () => ({
    ok: true,
    result: { message_id: `m${this.sends.length}`, deduplicated: false, state: "pending" },
  });
  onAttach: (request: Json) => Answer = () => ({
    ok: true,
    result: {
      endpoint_id: "tmux-amq-1",
      service_id: "test",
      protocol: "0.1",
      capabilities: [],
      ack_mode: "injected",
    },
  });
  readonly #listener: Deno.UnixListener;
  readonly #conns = new Set<Deno.Conn>();
  readonly #tasks: Promise<void>[] = [];
  #stream: Deno.Conn | undefined;
  #changed = Promise.withResolvers<void>();
  #token = 0;

  constructor(socket: string) {
    this.#listener = Deno.listen({ transport: "unix", path: socket }) as Deno.UnixListener;
    this.#tasks.push(this.#accept());
  }

  /** Resolves once `condition` holds; looked at after everything that arrives. */
  async when(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#changed.promise;
  }
  get open(): boolean {
    const gate = this.frames.findLast((frame) => frame.type === "gate");
    return gate?.type === "gate" && gate.open;
  }

  /** Waits for an open gate, delivers, and returns the settlement. */
  async deliver(body: string, extra: Partial<Json> = {}): Promise<BrokerFrame> {
    await this.when(() => this.open);
    return await this.deliverNow(body, extra);
  }
  async deliverNow(body: string, extra: Partial<Json> = {}): Promise<BrokerFrame> {
    const lease_token = `t${++this.#token}`;
    await this.push({
      type: "deliver",
      message_id: `d${this.#token}`,
      attempt: 1,
      lease_token,
      envelope: {
        message_id: `d${this.#token}`,
        sender_repo: "beta",
        provenance: "worker",
        body,
        ack_requested: false,
        ...extra,
      },
    });
    const settled = () =>
      this.frames.find((frame) => frame.type === "settle" && frame.lease_token === lease_token);
    await this.when(() => settled() !== undefined);
    await this.push({ type: "settled", lease_token, accepted: true });
    return settled()!;
  }

  async push(frame: ServiceFrame): Promise<void> {
    await this.when(() => this.#stream !== undefined);
    await writeLine(this.#stream!, frame);
  }
  /** Ends the delivery stream, as a dying service would. */
  cut(): void {
    this.#stream?.close();
    this.#conns.delete(this.#stream!);
    this.#stream = undefined;
  }

  async close(): Promise<void> {
    this.#listener.close();
    for (const conn of this.#conns) {
      try {
        conn.close();
      } catch { /* closed by the other side */ }
    }
    await Promise.all(this.#tasks);
  }

  #changedNow(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  async #accept(): Promise<void> {
    try {
      for await (const conn of this.#listener) {
        this.#conns.add(conn);
        this.#tasks.push(this.#serve(conn));
      }
    } catch { /* closed */ }
  }

  async #serve(conn: Deno.Conn): Promise<void> {
    try {
      for await (const line of jsonLines(conn)) {
        if (line.op === "attach") {
          this.attaches.push(line);
          await writeLine(conn, this.onAttach(line));
          this.#stream = conn;
        } else if (line.op === "send") {
          this.sends.push(line);
          await writeLine(conn, this.onSend(line));
        } else this.frames.push(line as unknown as BrokerFrame);
        this.#changedNow();
      }
    } catch { /* closed by either side */ }
    if (this.#stream === conn) this.#stream = undefined;
    if (this.#conns.delete(conn)) {
      try {
        conn.close();
      } catch { /* closed already */ }
    }
    this.#changedNow();
  }
}

async function writeLine(conn: Deno.Conn, value: unknown): Promise<void> {
  const bytes = new TextEncoder().encode(JSON.stringify(value) + "\n");
  for (let done = 0; done < bytes.length;) done += await conn.write(bytes.subarray(done));
}

async function* jsonLines(conn: Deno.Conn): AsyncGenerator<Json> {
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(64 * 1024);
  let text = "";
  for (;;) {
    const n = await conn.read(chunk);
    if (n === null) return;
    text += decoder.decode(chunk.subarray(0, n), { stream: true });
    for (let end; (end = text.indexOf("\n")) >= 0; text = text.slice(end + 1)) {
      yield JSON.parse(text.slice(0, end));
    }
  }
}

/** Runs `body` with a scripted service and a broker attached to it. */
export async function withAttached(
  options: TestBrokerOptions,
  body: (broker: TestBroker & { service: ScriptedService }) => Promise<void>,
): Promise<void> {
  const service = new ScriptedService(`${options.dir}/tamq.sock`);
  try {
    await withBroker(options, async (broker) => {
      await service.when(() => service.attaches.length > 0);
      await body({ ...broker, service });
    });
  } finally {
    await service.close();
  }
}
