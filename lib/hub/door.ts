/**
 * The hub's Unix socket (K-19, K-21). The runtime's HTTP server does not tell which connection a
 * request came over. So the door accepts by itself, sees who connects, and leads each to a listener
 * that serves its kind alone; whatever comes over that one is of that kind (decision 0013).
 */
import { socketPathBytes } from "../ipc/path.ts";
import { type Clock, pause } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { ancestry } from "../base/proc.ts";
import { bindSocket, type Bound, PeerFinder } from "../socket.ts";
import type { Caller } from "./authority.ts";
import { type Guard, peerRefused, RoomGuard } from "./guard.ts";

export interface DoorOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The repository of the window that a process is in; given with those above it, nearest first. */
  readonly windowOf: (pids: readonly number[]) => string | undefined;
  readonly handle: (request: Request, guard: Guard) => Promise<Response>;
  /** Connections open at once; further ones wait in the kernel's queue. */
  readonly connections?: number;
}

interface Room {
  readonly path: string;
  close(): Promise<void>;
}

export class Door {
  readonly #o: DoorOptions;
  readonly #bound: Bound;
  readonly #peers: PeerFinder;
  /** By who may come in; windows of one repository share one. */
  readonly #rooms = new Map<string, Promise<Room>>();
  #made = 0;
  readonly #open = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #accepting: Promise<void> = Promise.resolve();

  private constructor(options: DoorOptions, bound: Bound, peers: PeerFinder) {
    this.#o = options;
    this.#bound = bound;
    this.#peers = peers;
  }

  /** Throws `peer_check_unavailable` and `socket_…`; then nothing listens. */
  static async open(options: DoorOptions): Promise<Door> {
    let peers: PeerFinder;
    const bound = await rename(() => {
      socketPathBytes(`${options.path}.9999`); // the listeners behind it have longer names
      // Made before anything listens: a hub that could not tell its users apart must not start.
      peers = new PeerFinder(options.path);
      return bindSocket(options.path, options.clock);
    });
    const door = new Door(options, bound, peers!);
    try {
      await door.#room({ kind: "operator" });
    } catch (error) {
      await bound.close();
      throw error;
    }
    door.#accepting = door.#acceptAll();
    return door;
  }

  /** No new connection; requests under way are answered, then everything is closed. */
  async close(): Promise<void> {
    this.#stopping.abort();
    if (await this.#bound.close()) await this.#accepting;
    const rooms = await Promise.allSettled(this.#rooms.values());
    await Promise.all(
      rooms.map((room) => room.status === "fulfilled" ? room.value.close() : undefined),
    );
    await Promise.all(this.#open);
  }

  async #acceptAll(): Promise<void> {
    const { clock, log, connections = 256 } = this.#o;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      let conn: Deno.UnixConn;
      try {
        conn = await this.#bound.listener.accept();
      } catch (error) {
        if (signal.aborted) return;
        // Out of descriptors, most likely: look again soon.
        log.error("socket.accept_failed", { reason: errorText(error) });
        await pause(clock, 50, signal);
        continue;
      }
      // Nothing is awaited between accept and this: the newest socket must be this one.
      const { who, fd } = this.#identify();
      const led = this.#lead(conn, who).finally(() => fd === undefined || this.#peers.release(fd));
      this.#open.add(led);
      void led.finally(() => this.#open.delete(led));
      while (this.#open.size >= connections && !signal.aborted) await Promise.race(this.#open);
    }
  }

  /** Who is at the other end, or the answer to whoever may not ask. */
  #identify(): { readonly who: Caller | TamqError; readonly fd?: number } {
    try {
      const found = this.#peers.next();
      if (found === undefined) return { who: peerRefused(undefined) };
      const { fd, peer } = found;
      if (peer.uid !== Deno.uid()) return { who: peerRefused(peer.uid), fd };
      const pids = ancestry(peer.pid);
      if (pids.length === 0) return { who: peerRefused(undefined), fd };
      const repo = this.#o.windowOf(pids);
      return { who: repo === undefined ? { kind: "operator" } : { kind: "window", repo }, fd };
    } catch {
      return { who: peerRefused(undefined) }; // /proc could not be read: fails closed
    }
  }

  async #lead(outer: Deno.UnixConn, who: Caller | TamqError): Promise<void> {
    let inner: Deno.UnixConn | undefined;
    try {
      const room = await this.#room(who);
      inner = await Deno.connect({ transport: "unix", path: room.path });
      const asked = pump(outer, inner);
      // The hub's side ends the exchange; what is sent after that is for nobody.
      const answered = pump(inner, outer);
      await Promise.race([answered, asked.then(() => answered)]);
    } catch (error) {
      // One side is gone. Only that there is no room at all is the hub's own failure.
      if (inner === undefined) this.#o.log.error("request.failed", { reason: errorText(error) });
    } finally {
      closeQuietly(outer);
      if (inner !== undefined) closeQuietly(inner);
    }
  }

  #room(who: Caller | TamqError): Promise<Room> {
    const key = who instanceof TamqError ? who.message : JSON.stringify(who);
    let room = this.#rooms.get(key);
    if (room === undefined) {
      room = this.#openRoom(`${this.#o.path}.${this.#made++}`, who);
      this.#rooms.set(key, room);
      // What was in the way may be gone the next time.
      room.catch(() => this.#rooms.delete(key));
    }
    return room;
  }

  async #openRoom(path: string, who: Caller | TamqError): Promise<Room> {
    const { clock, handle } = this.#o;
    const guard = new RoomGuard(path, who);
    const server = await serveUnix(path, clock, (request) => handle(request, guard));
    const bound = Deno.lstatSync(path);
    return {
      path,
      async close() {
        // The runtime removes whatever stands at the path when it closes a listener. If that is not
        // our socket any more, it is left alone, and our listener goes with the process.
        const now = lstat(path);
        if (now !== undefined && (now.dev !== bound.dev || now.ino !== bound.ino)) {
          return server.unref();
        }
        await server.shutdown();
      },
    };
  }
}

/** Everything from one end to the other, then its end. */
async function pump(from: Deno.UnixConn, to: Deno.UnixConn): Promise<void> {
  const buffer = new Uint8Array(16 * 1024);
  for (let n = await from.read(buffer); n !== null; n = await from.read(buffer)) {
    for (let at = 0; at < n;) at += await to.write(buffer.subarray(at, n));
  }
  await to.closeWrite();
}

/**
 * Takes the path as the other services do – never from somebody else, safely from the dead – and
 * gives it at once to the HTTP server, which can only bind for itself.
 */
async function serveUnix(
  path: string,
  clock: Clock,
  handler: (request: Request) => Promise<Response>,
): Promise<Deno.HttpServer> {
  const bound = await rename(() => bindSocket(path, clock));
  await bound.close();
  const mask = Deno.umask(0o177);
  try {
    return Deno.serve({ path, onListen() {}, onError }, handler);
  } catch (error) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "socket_unusable",
      `cannot use the socket ${path}: ${errorText(error)}`,
      { hint: "check the directory, or set TAMQ_HUB_SOCKET to another path", cause: error },
    );
  } finally {
    Deno.umask(mask);
  }
}

/** Hints name the variable of this socket. */
async function rename(bind: () => Promise<Bound>): Promise<Bound> {
  try {
    return await bind();
  } catch (error) {
    if (!(error instanceof TamqError)) throw error;
    throw new TamqError(error.code, error.reason, error.message, {
      hint: error.hint?.replace("TAMQ_SOCKET", "TAMQ_HUB_SOCKET"),
      cause: error,
    });
  }
}

/** `HubApp.handle` never throws; should it ever, nothing of the error crosses. */
export function onError(): Response {
  return new Response(null, { status: 500 });
}

function closeQuietly(conn: Deno.UnixConn): void {
  try {
    conn.close();
  } catch {
    // closed already
  }
}

function lstat(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
