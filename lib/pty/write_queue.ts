/** Bytes on their way to a descriptor that may not take them at once; strictly in order. */
import type { Clock } from "../base/clock.ts";
import { AGAIN, GONE, writeFd } from "../pty_ffi.ts";

/** `blocked`: none of the bytes were taken in time; `stalled`: some were. */
export type WriteResult = "written" | "blocked" | "stalled" | "gone";

interface Entry {
  bytes: Uint8Array<ArrayBuffer>;
  offset: number;
  done?: (result: WriteResult) => void;
}

export class WriteQueue {
  #entries: Entry[] = [];
  #bytes = 0;
  #gone = false;

  constructor(readonly fd: number, readonly clock: Clock) {}

  /** Bytes not taken yet. */
  get pending(): number {
    return this.#bytes;
  }
  /** The other end is closed: everything is dropped from then on. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Writes what it can at once and keeps a copy of the rest: the caller may reuse its buffer. */
  push(bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.length === 0 || this.#gone) return;
    let taken = 0;
    if (this.#entries.length === 0) {
      while (taken < bytes.length) {
        const n = writeFd(this.fd, taken === 0 ? bytes : bytes.subarray(taken));
        if (n === AGAIN) break;
        if (n === GONE) return this.drop();
        taken += n;
      }
      if (taken === bytes.length) return;
    }
    this.#entries.push({ bytes: bytes.slice(taken), offset: 0 });
    this.#bytes += bytes.length - taken;
  }

  /**
   * The same, telling what became of it within `ms`. After that time the rest is taken back; where
   * a part was written, `tail` follows it, so that a frame once begun is always closed.
   */
  async send(
    bytes: Uint8Array<ArrayBuffer>,
    ms: number,
    tail: Uint8Array<ArrayBuffer> = new Uint8Array(),
  ): Promise<WriteResult> {
    if (this.#gone) return "gone";
    const { promise, resolve } = Promise.withResolvers<WriteResult>();
    const entry: Entry = { bytes, offset: 0, done: resolve };
    this.#entries.push(entry);
    this.#bytes += bytes.length;
    this.flush();
    if (!this.#entries.includes(entry)) return await promise;
    const cancel = this.clock.after(ms, () => {
      const rest = entry.bytes.length - entry.offset;
      this.#bytes -= rest;
      if (entry.offset === 0) this.#entries = this.#entries.filter((other) => other !== entry);
      else {
        entry.bytes = tail;
        this.#bytes += tail.length;
      }
      resolve(entry.offset === 0 ? "blocked" : "stalled");
      entry.offset = 0;
    });
    const result = await promise;
    cancel();
    return result;
  }

  /** Writes on; call when the descriptor polls writable. */
  flush(): void {
    while (this.#entries.length > 0) {
      const entry = this.#entries[0]!;
      while (entry.offset < entry.bytes.length) {
        const n = writeFd(this.fd, entry.bytes.subarray(entry.offset));
        if (n === AGAIN) return;
        if (n === GONE) return this.drop();
        entry.offset += n;
        this.#bytes -= n;
      }
      this.#entries.shift();
      entry.done?.("written");
    }
  }

  /** Nobody reads any more. */
  drop(): void {
    this.#gone = true;
    this.#bytes = 0;
    for (const entry of this.#entries.splice(0)) entry.done?.("gone");
  }
}
