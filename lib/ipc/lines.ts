/** Bounded lines over a byte stream: the framing of the socket protocol (T-22). */

/** The part of a connection that a reader needs. */
export interface ByteSource {
  read(into: Uint8Array): Promise<number | null>;
}
/** The part of a connection that a writer needs. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<number>;
}

/** What came instead of a line. */
export type NoLine = "end" | "incomplete" | "too_large";

const LINE_FEED = 10;
/** Most requests fit; a connection that sends nothing costs no more than this. */
const FIRST_BUFFER = 2048;

/** Reads lines of at most `limit` bytes, whatever the sizes in which they arrive. */
export class LineReader {
  readonly #source: ByteSource;
  readonly #limit: number;
  #buffer = new Uint8Array(FIRST_BUFFER);
  #start = 0;
  #end = 0;

  constructor(source: ByteSource, limit: number) {
    this.#source = source;
    this.#limit = limit;
  }

  /**
   * The next line without its line feed, valid until the next call. `end`: the stream closed
   * between lines; `incomplete`: inside one; `too_large`: the limit came before a line feed.
   */
  async next(): Promise<Uint8Array | NoLine> {
    let searched = this.#start;
    for (;;) {
      const at = this.#buffer.subarray(0, this.#end).indexOf(LINE_FEED, searched);
      if (at >= 0) {
        const line = this.#buffer.subarray(this.#start, at);
        this.#start = at + 1;
        return line.length > this.#limit ? "too_large" : line;
      }
      if (this.#end - this.#start > this.#limit) return "too_large";
      searched = this.#end - this.#start;
      this.#makeRoom();
      const count = await this.#source.read(this.#buffer.subarray(this.#end));
      if (count === null) return this.#end > this.#start ? "incomplete" : "end";
      this.#end += count;
    }
  }

  #makeRoom(): void {
    if (this.#start > 0) {
      this.#buffer.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    if (this.#end < this.#buffer.length) return;
    // One byte more than the limit must fit, or an oversized line could not be told from a full one.
    const size = Math.min(this.#buffer.length * 4, this.#limit + 1);
    const larger = new Uint8Array(Math.max(size, this.#buffer.length + 1));
    larger.set(this.#buffer.subarray(0, this.#end));
    this.#buffer = larger;
  }
}

/** Writes all of `bytes`; a single write may take only a part. */
export async function writeAll(sink: ByteSink, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await sink.write(bytes.subarray(done));
}

const encoder = new TextEncoder();

/** `value` as one JSON line. JSON escapes line feeds, so the line is one. */
export function encodeLine(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value) + "\n");
}
