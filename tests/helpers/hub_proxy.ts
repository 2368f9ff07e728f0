/** Stands between the engine and a State Hub, and does to the answers what a test says. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly search: string;
  /** The real hub's answer. */
  forward(): Promise<Response>;
}
/** Undefined: this request is answered as the hub does. */
export type Tamper = (asked: Asked) => Promise<Response> | Response | undefined;

/** Streams that were cut; nothing to tell. */
const onError = () => new Response(null, { status: 500 });

export class HubProxy {
  readonly #server: Deno.HttpServer;
  readonly #client: Deno.HttpClient;
  #cut = new AbortController();
  /** What is done to requests; every one counts. */
  tamper: Tamper | undefined;
  tampered = 0;

  constructor(readonly path: string, hub: string) {
    this.#client = Deno.createHttpClient({ proxy: { transport: "unix", path: hub } });
    const mask = Deno.umask(0o177);
    try {
      this.#server = Deno.serve(
        { path, onListen() {}, onError },
        (request) => this.#handle(request),
      );
    } finally {
      Deno.umask(mask);
    }
  }

  async #handle(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const body = request.body === null ? undefined : await request.arrayBuffer();
    const forward = async () => {
      const headers = new Headers(request.headers);
      headers.delete("host");
      try {
        const answer = await fetch(`http://localhost${pathname}${search}`, {
          client: this.#client,
          method: request.method,
          headers,
          body,
          signal: request.signal,
        });
        const { status } = answer;
        // Through a pipe of our own: the signal of a fetch does not reach a body for sure.
        const { signal } = this.#cut;
        const through = answer.body?.pipeThrough(new TransformStream(), { signal });
        return new Response(status === 304 ? null : through, { status, headers: answer.headers });
      } catch {
        return new Response(null, { status: 502 }); // the hub is down
      }
    };
    const { method } = request;
    const changed = this.tamper?.({ method, path: pathname, search, forward });
    if (changed === undefined) return await forward();
    this.tampered++;
    return await changed;
  }

  /** Ends what is under way, streams of events above all. */
  cut(): void {
    this.#cut.abort();
    this.#cut = new AbortController();
  }

  async close(): Promise<void> {
    this.cut();
    await this.#server.shutdown();
    this.#client.close();
  }
}
