/** A window without a terminal: this process is the broker, a waiting child its worker. */
import { openStream, type Stream } from "../../lib/client.ts";
import type { RequestOf } from "../../lib/protocol/operations.ts";
import type { ServiceFrame, Settlement } from "../../lib/protocol/schema.ts";

export type Deliver = Extract<ServiceFrame, { type: "deliver" }>;

export class TestWindow implements AsyncDisposable {
  readonly #worker: Deno.ChildProcess;

  constructor(readonly repo: string, readonly instance = `i-${repo}`) {
    // Ends with us, however we end.
    this.#worker = new Deno.Command("cat", { stdin: "piped", stdout: "null" }).spawn();
  }

  request(extra: Partial<RequestOf<"attach">> = {}): RequestOf<"attach"> {
    return {
      capabilities: ["bounded_delivery_ack_v1"],
      repos: [this.repo],
      path: `/repos/${this.repo}`,
      command: ["cat"],
      mode: "trigger",
      tmux: { server_pid: Deno.ppid, session: "s", window_id: "@1", pane_id: "%1" },
      instance: this.instance,
      worker_pid: this.#worker.pid,
      ...extra,
    };
  }

  async attach(socket: string, outstanding?: Settlement): Promise<TestStream> {
    const extra = outstanding === undefined ? {} : { outstanding };
    return new TestStream(await openStream(socket, this.request(extra)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#worker.kill("SIGKILL");
    await this.#worker.status;
    await this.#worker.stdin.close().catch(() => {});
  }
}

/** An attached stream whose frames are read one at a time. */
export class TestStream implements Disposable {
  readonly #frames: AsyncIterator<ServiceFrame>;
  constructor(readonly stream: Stream) {
    this.#frames = stream.frames[Symbol.asyncIterator]();
  }
  /** Undefined at the end of the stream. */
  async next(): Promise<ServiceFrame | undefined> {
    return (await this.#frames.next()).value;
  }
  async delivery(): Promise<Deliver> {
    const frame = await this.next();
    if (frame?.type !== "deliver") throw new Error(`no delivery but ${JSON.stringify(frame)}`);
    return frame;
  }
  open(): Promise<void> {
    return this.stream.send({ type: "gate", open: true });
  }
  /** Reports and waits for the answer. */
  async settle(report: Settlement): Promise<ServiceFrame | undefined> {
    await this.stream.send({ type: "settle", ...report });
    return await this.next();
  }
  [Symbol.dispose](): void {
    this.stream.close();
  }
}
