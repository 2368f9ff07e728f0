/**
 * The listening socket: accepts serially, checks the peer, reads one request a connection, answers,
 * closes. Knows no operation. A connection that is slow, silent or gone costs the others nothing:
 * each has its own deadlines, and nothing waits for it (T-02, T-03, T-22).
 */
import { type Clock, pause, turn, within } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { probe } from "../base/probe.ts";
import { ancestry } from "../base/proc.ts";
import type { Peer } from "../model/ports.ts";
import { ticksNow } from "../peer_ffi.ts";
import type { Bound } from "./bind.ts";
import { Channel } from "./channel.ts";
import { type Answer, decodeObject, failure, type Json, lineFailure } from "./frame.ts";
import { LIMITS, type Limits } from "./limits.ts";
import { encodeLine, LineReader, writeAll } from "./lines.ts";
import type { Orwell } from "./orwell.ts";
import { type Found, PeerFinder } from "./peer.ts";

/** The result of a request; with `stream`, the connection is kept and handed over after the answer. */
export interface Reply {
  readonly result: unknown;
  readonly stream?: (channel: Channel) => Promise<void>;
  /** The stream is no work that a stop waits for: its owner ends it when all work is done. */
  readonly lasting?: boolean;
}

/** Performs one request; throws TamqError for what the client is to be told. */
export type Handle = (request: Json, peer: Peer) => Promise<Reply> | Reply;

export interface ServerOptions {
  readonly bound: Bound;
  readonly path: string;
  readonly handle: Handle;
  readonly clock: Clock;
  readonly log: Log;
  readonly orwell?: Orwell;
  readonly limits?: Limits;
}

/** New connections between two looks at those that are in. */
const ACCEPTS_A_TURN = 16;
/** How long accepting rests when there is no place, so that a client hears soon that it is so. */
const FULL_MS = 50;

export class SocketServer {
  readonly #options: ServerOptions;
  readonly #limits: Limits;
  readonly #peers: PeerFinder;
  readonly #stopping = new AbortController();
  /** Everything open, with what resolves when it is closed. */
  readonly #open = new Map<Deno.Conn, Promise<void>>();
  /** Those of them that {@link drained} does not wait for. */
  readonly #lasting = new Set<Deno.Conn>();
  /** Resolves waits for {@link drained} anew when a connection becomes a lasting one. */
  #settled = () => {};
  /** Those that have not sent their request yet, oldest first. */
  readonly #silent = new Map<Deno.Conn, { since: number; drop: () => void }>();
  /** Set while accepting waits for a place. */
  #freed: (() => void) | undefined;
  #accepting: Promise<void> = Promise.resolve();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#limits = options.limits ?? LIMITS;
    this.#peers = new PeerFinder(options.path);
  }

  /** Open connections, delivery streams among them. */
  get connections(): number {
    return this.#open.size;
  }

  start(): void {
    this.#accepting = this.#acceptAll();
  }

  /** No new connection and no new request from now on; what is under way goes on. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    if (await this.#options.bound.close()) await this.#accepting;
  }

  /** Resolves when every connection but lasting streams has ended by itself, at the latest after `ms`. */
  async drained(ms = Infinity): Promise<void> {
    await within(this.#options.clock, ms, this.#workEnded(), () => {});
  }

  async #workEnded(): Promise<void> {
    for (;;) {
      const work = [...this.#open].filter(([conn]) => !this.#lasting.has(conn));
      if (work.length === 0) return;
      const changed = new Promise<void>((resolve) => this.#settled = resolve);
      await Promise.race([Promise.all(work.map(([, ended]) => ended)), changed]);
    }
  }

  /** Resolves when lasting streams have ended as well, at the latest after `ms`. */
  async ended(ms = Infinity): Promise<void> {
    await within(this.#options.clock, ms, this.#allEnded(), () => {});
  }

  async #allEnded(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.values());
  }

  /** Cuts what is left. */
  async abandon(): Promise<void> {
    for (const conn of this.#open.keys()) closeQuietly(conn);
    await this.#allEnded();
  }

  async #acceptAll(): Promise<void> {
    const { bound, clock, log } = this.#options;
    let accepted = 0;
    while (!this.#stopping.signal.aborted) {
      let conn: Deno.UnixConn;
      try {
        conn = await bound.listener.accept();
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        // Out of descriptors, most likely. Those in use end by their deadlines; look again soon.
        log.error("socket.accept_failed", { reason: errorText(error) });
        await pause(clock, 50, this.#stopping.signal);
        continue;
      }
      if (this.#stopping.signal.aborted) return closeQuietly(conn);
      // Nothing is awaited between accept and this: the newest socket must be this one.
      const found = this.#identify();
      this.#dropSilent();
      const full = this.#open.size >= this.#limits.connections;
      this.#open.set(conn, this.#serve(conn, found));
      // This one is refused. Accepting on at full speed only to refuse would leave no time for those
      // that are in: the rest waits in the kernel's queue until there is a place, or for a moment.
      if (full) await this.#place();
      // Accepting resolves at once while the kernel's queue holds any: reading and answering must
      // have their turn in between.
      else if (++accepted % ACCEPTS_A_TURN === 0) await turn();
    }
  }

  /** Resolves when a connection ends, at the latest after a moment. */
  async #place(): Promise<void> {
    const enough = new AbortController();
    const stop = () => enough.abort();
    this.#freed = stop;
    this.#stopping.signal.addEventListener("abort", stop);
    await pause(this.#options.clock, FULL_MS, enough.signal);
    this.#stopping.signal.removeEventListener("abort", stop);
    this.#freed = undefined;
  }

  /** Makes room at the cost of who has been silent longest. */
  #dropSilent(): void {
    const { connections, silent, silentMs } = this.#limits;
    const now = this.#options.clock.monotonic();
    let full = this.#open.size >= connections;
    for (const [conn, { since, drop }] of this.#silent) {
      if (!full && this.#silent.size <= silent || now - since < silentMs) return;
      this.#silent.delete(conn);
      drop();
      // Its place is free once it has been told; the client refused meanwhile tries again.
      full = false;
    }
  }

  async #serve(conn: Deno.Conn, found: Found | undefined): Promise<void> {
    await Promise.resolve(); // so that it is among the open ones before it can end
    try {
      await this.#converse(conn, found?.peer);
    } catch (error) {
      this.#options.log.error("socket.connection_failed", { reason: errorText(error) });
    } finally {
      closeQuietly(conn);
      if (found !== undefined) this.#peers.release(found.fd);
      this.#open.delete(conn);
      this.#lasting.delete(conn);
      if (this.#open.size < this.#limits.connections) this.#freed?.();
      probe("ipc.closed");
    }
  }

  #identify(): Found | undefined {
    try {
      const found = this.#peers.next();
      if (found === undefined) return undefined;
      // Most requests need no ancestry: it is read by those that do, and tied to this moment.
      const { pid } = found.peer;
      const tick = ticksNow();
      return { ...found, peer: { ...found.peer, ancestry: () => ancestry(pid, tick) } };
    } catch {
      return undefined; // /proc/self/fd could not be listed (no descriptor left): fail closed
    }
  }

  async #converse(conn: Deno.Conn, peer: Peer | undefined): Promise<void> {
    const { log, clock } = this.#options;
    if (peer === undefined) {
      log.warn("peer.unknown");
      return;
    }
    if (peer.uid !== Deno.uid()) {
      log.warn("peer.refused", { uid: peer.uid, pid: peer.pid });
      await this.#answer(conn, failure(strangerRefused(peer.uid)));
      return;
    }
    if (this.#open.size > this.#limits.connections) {
      await this.#answer(conn, failure(tooMany(this.#limits.connections)));
      return;
    }
    const reader = new LineReader(conn, this.#limits.requestBytes);
    let reply: Reply;
    try {
      const request = await this.#request(conn, reader);
      if (request === undefined) return;
      this.#options.orwell?.see("request", { pid: peer.pid, request });
      reply = await this.#options.handle(request, peer);
    } catch (error) {
      if (!(error instanceof TamqError)) {
        log.error("request.failed", { reason: errorText(error) });
      }
      await this.#answer(conn, failure(error));
      return;
    }
    const answered = await this.#answer(conn, { ok: true, result: reply.result });
    if (reply.stream === undefined) return;
    const channel = new Channel(conn, reader, {
      clock,
      writeMs: this.#limits.writeMs,
      frameBytes: this.#limits.requestBytes,
      orwell: this.#options.orwell,
      stopping: this.#stopping.signal,
    });
    // Handed over also when the answer could not be written: the owner then sees the end at once
    // and undoes what it did for this connection.
    if (!answered) channel.close();
    if (reply.lasting === true) {
      this.#lasting.add(conn);
      this.#settled();
    }
    await reply.stream(channel);
  }

  /** The first request; undefined when the client went away without one. */
  async #request(conn: Deno.Conn, reader: LineReader): Promise<Json | undefined> {
    const { clock } = this.#options;
    const stopped = aborted(this.#stopping.signal);
    const dropped = new Promise<"dropped">((resolve) => {
      this.#silent.set(conn, { since: clock.monotonic(), drop: () => resolve("dropped") });
    });
    try {
      const line = await within(
        clock,
        this.#limits.requestMs,
        Promise.race([reader.next().catch(() => "end" as const), stopped.promise, dropped]),
        () => {
          throw tooSlow(this.#limits.requestMs);
        },
      );
      if (line === "dropped") throw tooSlow(this.#limits.silentMs);
      if (line instanceof Uint8Array) return decodeObject(line);
      if (line === "stopping") throw shuttingDown();
      const refusal = lineFailure(line, this.#limits.requestBytes);
      if (refusal !== undefined) throw refusal;
      return undefined;
    } finally {
      this.#silent.delete(conn);
      stopped.dispose();
    }
  }

  /** True when the client has taken all of it in time. */
  async #answer(conn: Deno.Conn, answer: Answer): Promise<boolean> {
    const { clock, log } = this.#options;
    this.#options.orwell?.see("answer", { answer });
    let bytes = encodeLine(answer);
    if (bytes.length > this.#limits.answerBytes) {
      log.error("answer.too_large", { bytes: bytes.length });
      bytes = encodeLine(failure(answerTooLarge()));
    }
    try {
      await within(clock, this.#limits.writeMs, writeAll(conn, bytes), () => {
        throw new Error("the client did not read");
      });
      return true;
    } catch {
      return false; // gone, or too slow: nobody to tell
    }
  }
}

function aborted(signal: AbortSignal): { promise: Promise<"stopping">; dispose: () => void } {
  let listener = () => {};
  const promise = new Promise<"stopping">((resolve) => {
    listener = () => resolve("stopping");
    if (signal.aborted) listener();
    else signal.addEventListener("abort", listener);
  });
  return { promise, dispose: () => signal.removeEventListener("abort", listener) };
}

function closeQuietly(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch {
    // closed already
  }
}

export function shuttingDown(): TamqError {
  return new TamqError("UNAVAILABLE", "shutting_down", "the service is shutting down", {
    hint: "start it with: tamq serve --detach",
  });
}

function tooSlow(ms: number): TamqError {
  return new TamqError(
    "DEADLINE_EXCEEDED",
    "request_timeout",
    `no complete request came within ${ms / 1000} seconds`,
  );
}

function strangerRefused(uid: number): TamqError {
  return new TamqError(
    "UNAUTHENTICATED",
    "peer_refused",
    `user ${uid} may not use the service of user ${Deno.uid()}`,
    { hint: "run tamq as the user whose service this is" },
  );
}

function tooMany(limit: number): TamqError {
  return new TamqError(
    "RESOURCE_EXHAUSTED",
    "too_many_connections",
    `the service has its limit of ${limit} connections`,
    { hint: "try again in a moment" },
  );
}

function answerTooLarge(): TamqError {
  return new TamqError("RESOURCE_EXHAUSTED", "answer_too_large", "the answer is too large", {
    hint: "ask for less: use filters or a smaller limit",
  });
}
