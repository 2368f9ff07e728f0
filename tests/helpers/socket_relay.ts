/** Stands between a client of the message service and the service; holds a request where a test says. */
export interface Held {
  /** Resolves when a request is held. */
  readonly caught: Promise<void>;
  /** Lets it go – one held before the service is lost – and holds no more. */
  release(): void;
}

export class SocketRelay {
  readonly #listener: Deno.UnixListener;
  readonly #serving: Promise<void>;
  readonly #open = new Set<Deno.Conn>();
  #wanted:
    | { op: string; place: "before" | "after"; caught: () => void; go: Promise<void> }
    | undefined;

  /** The service need not live yet. */
  constructor(readonly path: string, readonly service: string) {
    this.#listener = Deno.listen({ transport: "unix", path });
    this.#serving = this.#accept();
  }

  /** The next request of that operation: `before` it reaches the service, or `after` it did. */
  hold(op: string, place: "before" | "after"): Held {
    const caught = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    this.#wanted = { op, place, caught: caught.resolve, go: go.promise };
    return {
      caught: caught.promise,
      release: () => {
        this.#wanted = undefined;
        go.resolve();
      },
    };
  }

  async #accept(): Promise<void> {
    for await (const conn of this.#listener) void this.#serve(conn).catch(() => {});
  }

  async #serve(conn: Deno.Conn): Promise<void> {
    this.#open.add(conn);
    let service: Deno.Conn | undefined;
    try {
      const first = new Uint8Array(256 * 1024);
      let length = 0;
      while (!first.subarray(0, length).includes(10)) {
        const n = await conn.read(first.subarray(length));
        if (n === null) return;
        length += n;
      }
      const { op } = JSON.parse(new TextDecoder().decode(first.subarray(0, length)));
      const mine = this.#wanted?.op === op ? this.#wanted : undefined;
      if (mine?.place === "before") {
        mine.caught();
        await mine.go;
        return; // it never reaches the service
      }
      service = await Deno.connect({ transport: "unix", path: this.service });
      this.#open.add(service);
      for (let at = 0; at < length;) at += await service.write(first.subarray(at, length));
      const answer = new Uint8Array(64 * 1024);
      for (let n = await service.read(answer); n !== null; n = await service.read(answer)) {
        if (mine?.place === "after") {
          mine.caught();
          await mine.go;
        }
        for (let at = 0; at < n;) at += await conn.write(answer.subarray(at, n));
      }
    } finally {
      for (const end of [conn, service]) {
        if (end === undefined) continue;
        this.#open.delete(end);
        try {
          end.close();
        } catch {
          // closed already
        }
      }
    }
  }

  async close(): Promise<void> {
    this.#wanted = undefined;
    this.#listener.close();
    await this.#serving.catch(() => {});
    for (const conn of this.#open) {
      try {
        conn.close();
      } catch {
        // closed already
      }
    }
  }
}
