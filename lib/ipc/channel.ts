/** A kept connection after its first answer: JSON lines both ways (T-25). */
import { type Clock, within } from "../base/clock.ts";
import { decodeObject, type Json, lineFailure } from "./frame.ts";
import { encodeLine, type LineReader, writeAll } from "./lines.ts";
import type { Orwell } from "./orwell.ts";

export interface ChannelOptions {
  readonly clock: Clock;
  readonly writeMs: number;
  readonly frameBytes: number;
  readonly orwell?: Orwell;
  /** Aborts when the server stops; the owner then says goodbye and closes. */
  readonly stopping: AbortSignal;
}

export class Channel {
  readonly stopping: AbortSignal;
  readonly #conn: Deno.Conn;
  readonly #reader: LineReader;
  readonly #options: ChannelOptions;
  #tail: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(conn: Deno.Conn, reader: LineReader, options: ChannelOptions) {
    this.#conn = conn;
    this.#reader = reader;
    this.#options = options;
    this.stopping = options.stopping;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Writes one frame, in the order of the calls. Never rejects: a peer that is gone or does not
   * read within the write deadline ends the channel, which `frames` tells.
   */
  send(frame: unknown): Promise<void> {
    this.#options.orwell?.see("frame.sent", { frame });
    const bytes = encodeLine(frame);
    this.#tail = this.#tail.then(async () => {
      if (this.#closed) return;
      try {
        await within(
          this.#options.clock,
          this.#options.writeMs,
          writeAll(this.#conn, bytes),
          () => {
            throw new Error("the peer did not read");
          },
        );
      } catch {
        this.close();
      }
    });
    return this.#tail;
  }

  /** What the peer sends, until either side closes; throws TamqError for a line that is no frame. */
  async *frames(): AsyncGenerator<Json> {
    while (!this.#closed) {
      const line = await this.#reader.next().catch(() => "end" as const);
      if (line instanceof Uint8Array) {
        const frame = decodeObject(line);
        this.#options.orwell?.see("frame.received", { frame });
        yield frame;
        continue;
      }
      // A line cut short is a peer that died in the middle of it.
      const refusal = line === "incomplete"
        ? undefined
        : lineFailure(line, this.#options.frameBytes);
      if (refusal !== undefined) throw refusal;
      return;
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#conn.close();
    } catch {
      // closed already
    }
  }
}
