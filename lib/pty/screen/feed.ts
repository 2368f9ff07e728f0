/**
 * Bytes on their way to the terminal model. The model parses some 10 MB a second and shares the
 * thread with the relay, so output may come twenty times faster than it is read: the queue is
 * bounded, and a flood is dropped whole instead of parsed late.
 */
import type { Clock } from "../../base/clock.ts";

/** Parsed at a time: some 1.5 ms, the longest that the relay may be kept waiting. */
const SLICE_BYTES = 16 * 1024;
/** Waiting at most: a long transcript that is printed again fits; 0.2 s of parsing. */
const MAX_QUEUE_BYTES = 2 * 1024 * 1024;
/** A flood is over once so little came in so much time. */
const CALM_MS = 100;
const CALM_BYTES = 64 * 1024;
const ESC = 0x1b, LF = 0x0a;

export interface FeedHooks {
  /** Parses `bytes`, then calls `done`. */
  write(bytes: Uint8Array, done: () => void): void;
  /** Output was dropped: what is known of the screen is worth nothing. Called once a gap. */
  onGap(): void;
  /** Bytes of a gap; valid during the call only. */
  onDropped(bytes: Uint8Array): void;
  /** The gap is over after so many bytes; what follows is parsed. */
  onResume(dropped: number): void;
  /** All that came was parsed. */
  onDrained(): void;
}

export class Feed {
  readonly #clock: Clock;
  readonly #hooks: FeedHooks;
  /** Bytes, and what must happen between them (a resize). */
  #queue: (Uint8Array | (() => void))[] = [];
  #queued = 0;
  #writing = false;
  #dropping = false;
  #dropped = 0;
  /** After a gap: skip to the next place where a sequence can begin. */
  #resync = false;
  #window = { since: 0, bytes: 0 };
  #cancelCalm = () => {};
  #closed = false;
  #waiters: (() => void)[] = [];

  constructor(clock: Clock, hooks: FeedHooks) {
    this.#clock = clock;
    this.#hooks = hooks;
  }

  /** Bytes that wait or are being parsed. */
  get pending(): number {
    return this.#queued;
  }
  /** Whether output is being dropped. */
  get dropping(): boolean {
    return this.#dropping;
  }

  /** Takes bytes of output; copies what it keeps, never waits. */
  push(bytes: Uint8Array): void {
    if (this.#closed || bytes.length === 0) return;
    if (this.#dropping && !this.#calm(bytes)) return;
    let rest = bytes;
    if (this.#resync) {
      const at = rest.findIndex((byte) => byte === ESC || byte === LF);
      if (at < 0) return;
      this.#resync = false;
      rest = rest.subarray(at);
    }
    if (this.#queued + rest.length > MAX_QUEUE_BYTES) return this.#flood(rest);
    this.#queue.push(rest.slice());
    this.#queued += rest.length;
    this.#next();
  }

  /** Calls `step` between what was pushed before and what comes after. */
  between(step: () => void): void {
    if (this.#closed) return;
    this.#queue.push(step);
    this.#next();
  }

  /** Resolves once all that was pushed is parsed or dropped. */
  drained(): Promise<void> {
    if (!this.#writing && this.#queue.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** Drops what waits and takes no more; resolves when the model is no longer in use. */
  close(): Promise<void> {
    this.#closed = true;
    this.#cancelCalm();
    this.#queue = [];
    this.#queued = 0;
    return this.drained();
  }

  #next(): void {
    if (this.#writing) return;
    for (let head = this.#queue[0]; typeof head === "function"; head = this.#queue[0]) {
      this.#queue.shift();
      head();
    }
    if (this.#queue.length === 0) return;
    const slice = this.#slice();
    this.#writing = true;
    this.#hooks.write(slice, () => {
      this.#writing = false;
      this.#queued = Math.max(0, this.#queued - slice.length);
      this.#next();
      if (this.#writing) return;
      if (this.#dropping) this.#queued = 0;
      if (!this.#closed) this.#hooks.onDrained();
      const waiters = this.#waiters;
      this.#waiters = [];
      for (const resolve of waiters) resolve();
    });
  }

  /** The next bytes, small chunks together: each write to the model costs a turn of the event loop. */
  #slice(): Uint8Array {
    const first = this.#queue[0] as Uint8Array;
    if (first.length >= SLICE_BYTES) {
      if (first.length === SLICE_BYTES) this.#queue.shift();
      else this.#queue[0] = first.subarray(SLICE_BYTES);
      return first.subarray(0, SLICE_BYTES);
    }
    let count = 0;
    let bytes = 0;
    for (const entry of this.#queue) {
      if (typeof entry === "function" || bytes + entry.length > SLICE_BYTES) break;
      bytes += entry.length;
      count++;
    }
    const slice = new Uint8Array(bytes);
    let at = 0;
    for (const chunk of this.#queue.splice(0, count) as Uint8Array[]) {
      slice.set(chunk, at);
      at += chunk.length;
    }
    return slice;
  }

  #flood(bytes: Uint8Array): void {
    this.#dropping = true;
    this.#dropped = 0;
    this.#window = { since: this.#clock.monotonic(), bytes: 0 };
    this.#hooks.onGap();
    for (const entry of this.#queue) {
      if (typeof entry === "function") entry();
      else this.#drop(entry);
    }
    this.#queue = [];
    this.#queued = 0;
    this.#drop(bytes);
    this.#awaitCalm();
  }

  #drop(bytes: Uint8Array): void {
    this.#dropped += bytes.length;
    this.#window.bytes += bytes.length;
    this.#hooks.onDropped(bytes);
  }

  /** While dropping: whether the flood is over, so that `bytes` are parsed again. */
  #calm(bytes: Uint8Array): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#window.since >= CALM_MS) {
      if (this.#window.bytes <= CALM_BYTES && !this.#writing) {
        this.#resume();
        return true;
      }
      this.#window = { since: now, bytes: 0 };
    }
    this.#drop(bytes);
    this.#awaitCalm();
    return false;
  }

  /** Silence ends a flood as well. */
  #awaitCalm(): void {
    this.#cancelCalm();
    this.#cancelCalm = this.#clock.after(CALM_MS, () => this.#resume());
  }

  #resume(): void {
    this.#cancelCalm();
    if (!this.#dropping) return;
    // The model must be at rest: it is reset now.
    if (this.#writing) return this.#awaitCalm();
    this.#dropping = false;
    this.#resync = true;
    this.#hooks.onResume(this.#dropped);
  }
}
