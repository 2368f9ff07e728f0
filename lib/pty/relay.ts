/**
 * The byte path between the outer terminal and the worker (B-01): one loop around one poll. Bytes
 * are relayed first and observed afterwards, and an observer that fails is left out from then on:
 * the relay goes on. Both directions are bounded: what cannot be written is not read.
 */
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  AGAIN,
  closeFd,
  type ExitStatus,
  hushBell,
  openBell,
  POLLERR,
  POLLHUP,
  POLLIN,
  POLLNVAL,
  POLLOUT,
  PollSet,
  readFd,
  ringBell,
  type TerminalSize,
} from "../pty_ffi.ts";
import type { Session } from "./session.ts";
import type { OuterTerminal } from "./terminal.ts";
import { WriteQueue } from "./write_queue.ts";

/** Each may throw; then none is called again, and {@link RelayOptions.onDegraded} is. */
export interface RelayHooks {
  /** After a chunk of output was relayed. The chunk is valid during the call only. */
  output(chunk: Uint8Array): void;
  /** What of a chunk of keys is to be passed on now: the chunk itself unless keys are held. */
  input(chunk: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>;
  /** After those were passed on. */
  inputRelayed(): void;
  /** The worker's terminal got this size. */
  resized?(size: TerminalSize): void;
}

/** Gets what went either way, in its order, behind the relay. Bytes are valid during the call only. */
export interface Tap {
  /** For the outer terminal: the worker's output, and what the broker displays. */
  output(bytes: Uint8Array): void;
  /** From the operator, as typed. */
  input(bytes: Uint8Array): void;
  resized(size: TerminalSize): void;
}

export interface RelayOptions {
  readonly session: Session;
  readonly terminal: OuterTerminal;
  readonly hooks: RelayHooks;
  /** One that throws is left out from then on; nothing else changes. */
  readonly tap?: Tap;
  readonly clock: Clock;
  readonly log: Log;
  readonly onDegraded: (error: unknown) => void;
}

const CHUNK = 64 * 1024;
/** Keys waiting for a worker that does not read; then standard input is left unread. */
const MAX_TO_WORKER = 64 * 1024;
/** Turns without a pause, so that timers and sockets are served during bulk output. */
const MAX_BUSY_TURNS = 8;
/**
 * After a turn, the next bytes are waited for on this thread so long, milliseconds: an echo follows
 * its key within some microseconds, and handing the wait to a helper thread costs more than that.
 */
const LINGER_MS = 1;
/** A process that outlives the worker may print for ever: what is read after the exit is bounded. */
const MAX_AFTER_EXIT = 1 << 20;
/** Between the hang-up and the kill of a worker that ignores it, milliseconds. */
const HANGUP_GRACE_MS = 2000;

const MASTER = 0, EXIT = 1, INPUT = 2, OUTPUT = 3, BELL = 4;

export class Relay {
  readonly #o: RelayOptions;
  readonly #toWorker: WriteQueue;
  readonly #toTerminal: WriteQueue;
  readonly #bell = openBell();
  readonly #poll = new PollSet(5);
  readonly #chunk = new Uint8Array(CHUNK);
  readonly #keys = new Uint8Array(16 * 1024);
  #masterOpen = true;
  #inputOpen = true;
  #degraded = false;
  #tap: Tap | undefined;
  #ending = false;
  #cancelKill = () => {};

  constructor(options: RelayOptions) {
    this.#o = options;
    this.#tap = options.tap;
    this.#toWorker = new WriteQueue(options.session.master, options.clock);
    this.#toTerminal = new WriteQueue(options.terminal.output, options.clock);
  }

  /** Relays until the worker ended and its output is out; then returns its status. */
  async run(): Promise<ExitStatus> {
    try {
      for (let busy = 0;;) {
        this.#arm();
        let ready = this.#poll.now(busy > 0 ? LINGER_MS : 0);
        if (ready === 0 || ++busy > MAX_BUSY_TURNS) {
          busy = 0;
          ready = await this.#poll.wait();
        }
        if (ready < 0) continue; // interrupted by a signal
        if (this.#turn()) break;
      }
      const status = this.#o.session.reap() ?? { code: 1 };
      await this.#drain();
      return status;
    } finally {
      this.#cancelKill();
      this.#toWorker.drop();
      closeFd(this.#bell);
    }
  }

  /** Why nobody can take over right now (B-17); undefined: nothing read waits to be written. */
  get unfinished(): "worker_exited" | "worker_not_reading" | "terminal_not_read" | undefined {
    if (this.#ending || !this.#masterOpen) return "worker_exited";
    if (this.#toWorker.pending > 0) return "worker_not_reading";
    return this.#toTerminal.pending > 0 ? "terminal_not_read" : undefined;
  }

  /** Queues bytes for the worker behind everything before them; see {@link WriteQueue.send}. */
  async sendWorker(bytes: Uint8Array<ArrayBuffer>, ms: number, tail?: Uint8Array<ArrayBuffer>) {
    const sent = this.#toWorker.send(bytes, ms, tail);
    if (this.#toWorker.pending > 0) ringBell(this.#bell);
    return await sent;
  }
  pushWorker(bytes: Uint8Array<ArrayBuffer>): void {
    this.#toWorker.push(bytes);
    if (this.#toWorker.pending > 0) ringBell(this.#bell);
  }
  /** Queues bytes for the outer terminal, between two chunks of the worker's output. */
  async sendTerminal(bytes: Uint8Array<ArrayBuffer>, ms: number) {
    const sent = this.#toTerminal.send(bytes, ms);
    this.#tell((tap) => tap.output(bytes));
    if (this.#toTerminal.pending > 0) ringBell(this.#bell);
    return await sent;
  }

  resize(): void {
    const { session, terminal, hooks } = this.#o;
    const size = terminal.size;
    session.resize(size);
    this.#observe(() => hooks.resized?.(size));
    this.#tell((tap) => tap.resized(size));
  }

  /** The terminal is gone or we are to stop: ends the worker's process group, in bounded time. */
  hangUp(terminalGone: boolean): void {
    if (terminalGone) {
      this.#inputOpen = false;
      this.#toTerminal.drop();
      ringBell(this.#bell);
    }
    if (this.#ending) return;
    this.#ending = true;
    this.#o.session.hangUp();
    this.#cancelKill = this.#o.clock.after(HANGUP_GRACE_MS, () => this.#o.session.kill());
  }

  #arm(): void {
    const { session, terminal } = this.#o;
    const read = this.#masterOpen && this.#toTerminal.pending === 0;
    const write = this.#masterOpen && this.#toWorker.pending > 0;
    const input = this.#inputOpen && this.#toWorker.pending < MAX_TO_WORKER;
    const output = this.#toTerminal.pending > 0;
    const master = read || write ? session.master : -1;
    this.#poll.set(MASTER, master, (read ? POLLIN : 0) | (write ? POLLOUT : 0));
    this.#poll.set(EXIT, session.pidfd, POLLIN);
    this.#poll.set(INPUT, input ? terminal.input : -1, POLLIN);
    this.#poll.set(OUTPUT, output ? terminal.output : -1, POLLOUT);
    this.#poll.set(BELL, this.#bell, POLLIN);
  }

  /** Deals with what is ready; true once the worker has ended. */
  #turn(): boolean {
    if (this.#poll.ready(BELL) !== 0) hushBell(this.#bell);
    if (this.#poll.ready(OUTPUT) !== 0) this.#toTerminal.flush();
    if (this.#toTerminal.gone && !this.#ending) this.hangUp(true);
    if ((this.#poll.ready(MASTER) & POLLOUT) !== 0) this.#toWorker.flush();
    if (this.#poll.ready(INPUT) !== 0) this.#readKeys();
    if ((this.#poll.ready(MASTER) & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) !== 0) {
      if (this.#toTerminal.pending === 0) this.#readOutput();
    }
    return this.#poll.ready(EXIT) !== 0;
  }

  /** Reads what is there, up to one chunk, and relays it in one write; returns its length. */
  #readOutput(): number {
    let length = 0;
    while (length < CHUNK) {
      const n = readFd(this.#o.session.master, this.#chunk.subarray(length));
      if (n === AGAIN) break;
      if (n === 0) {
        this.#masterOpen = false; // every process has closed the terminal; the exit is told apart
        break;
      }
      length += n;
    }
    if (length === 0) return 0;
    const chunk = this.#chunk.subarray(0, length);
    this.#toTerminal.push(chunk);
    this.#observe(() => this.#o.hooks.output(chunk));
    this.#tell((tap) => tap.output(chunk));
    return length;
  }

  #readKeys(): void {
    const n = readFd(this.#o.terminal.input, this.#keys);
    if (n === AGAIN) return;
    if (n === 0) {
      this.#inputOpen = false;
      if (this.#o.terminal.isTerminal) this.hangUp(true);
      return;
    }
    const chunk = this.#keys.subarray(0, n);
    // Before: the program that gets a password turns the echo on again.
    this.#tell((tap) => tap.input(chunk));
    let pass = chunk;
    this.#observe(() => pass = this.#o.hooks.input(chunk));
    this.#toWorker.push(pass);
    this.#observe(() => this.#o.hooks.inputRelayed());
  }

  #observe(work: () => void): void {
    if (this.#degraded) return;
    try {
      work();
    } catch (error) {
      this.#degraded = true;
      this.#o.log.error("broker.degraded", { reason: errorText(error) });
      try {
        this.#o.onDegraded(error);
      } catch {
        // nothing more can be done; the relay goes on
      }
    }
  }

  #tell(work: (tap: Tap) => void): void {
    if (this.#tap === undefined) return;
    try {
      work(this.#tap);
    } catch (error) {
      this.#tap = undefined;
      this.#o.log.error("recording.failed", { reason: errorText(error) });
    }
  }

  /** What the worker printed before it ended is still in the terminal's buffer. */
  async #drain(): Promise<void> {
    for (let total = 0;;) {
      while (this.#toTerminal.pending > 0) {
        this.#arm();
        this.#poll.set(MASTER, -1, 0);
        this.#poll.set(EXIT, -1, 0);
        this.#poll.set(INPUT, -1, 0);
        await this.#poll.wait();
        hushBell(this.#bell);
        this.#toTerminal.flush();
      }
      if (!this.#masterOpen || total > MAX_AFTER_EXIT) return;
      const n = this.#readOutput();
      if (n === 0) return;
      total += n;
    }
  }
}
