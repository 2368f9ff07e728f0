/** A socket client that may misbehave: tests write any bytes and see what comes back. */
import { LineReader, writeAll } from "../../lib/ipc/lines.ts";

// deno-lint-ignore no-explicit-any
type Answer = any;

export class RawClient implements Disposable {
  readonly #reader: LineReader;
  private constructor(readonly conn: Deno.UnixConn) {
    this.#reader = new LineReader(conn, 8 << 20);
  }

  static async open(path: string): Promise<RawClient> {
    return new RawClient(await Deno.connect({ transport: "unix", path }));
  }

  /** Bytes as they are; a string as UTF-8. Ignores that the service may have closed already. */
  async write(bytes: Uint8Array | string): Promise<void> {
    const all = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
    await writeAll(this.conn, all).catch(() => {});
  }

  /** The next answer; undefined at the end of the connection. */
  async answer(): Promise<Answer> {
    const line = await this.#reader.next().catch(() => "end" as const);
    return typeof line === "string" ? undefined : JSON.parse(new TextDecoder().decode(line));
  }

  /** Writes, then returns the answer. */
  async ask(bytes: Uint8Array | string): Promise<Answer> {
    const [, answer] = await Promise.all([this.write(bytes), this.answer()]);
    return answer;
  }

  [Symbol.dispose](): void {
    try {
      this.conn.close();
    } catch {
      // closed by the test
    }
  }
}

/** One exchange on a connection of its own. */
export async function exchange(path: string, bytes: Uint8Array | string): Promise<Answer> {
  using client = await RawClient.open(path);
  return await client.ask(bytes);
}
