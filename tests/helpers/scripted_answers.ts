/** A message service that answers each operation with what the test says, and records the requests. */
export class ScriptedAnswers implements AsyncDisposable {
  readonly requests: Record<string, unknown>[] = [];
  readonly #listener: Deno.UnixListener;
  readonly #done: Promise<void>;

  /** `answers`: result by operation; looked up for each request. */
  constructor(socket: string, readonly answers: Record<string, unknown>) {
    this.#listener = Deno.listen({ transport: "unix", path: socket }) as Deno.UnixListener;
    this.#done = this.#serve();
  }

  ops(): unknown[] {
    return this.requests.map((request) => request.op);
  }

  async #serve(): Promise<void> {
    try {
      for await (const conn of this.#listener) {
        using open = conn;
        const bytes = new Uint8Array(64 * 1024);
        const count = await open.read(bytes) ?? 0;
        const request = JSON.parse(new TextDecoder().decode(bytes.subarray(0, count)));
        this.requests.push(request);
        const answer = { ok: true, result: this.answers[request.op] };
        await open.write(new TextEncoder().encode(JSON.stringify(answer) + "\n"));
      }
    } catch {
      // closed
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#done;
  }
}
