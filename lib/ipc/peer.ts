/** Who is at the other end of a connection just accepted (T-02). */
import { TamqError } from "../base/errors.ts";
import type { Peer } from "../model/ports.ts";
import {
  available,
  descriptors,
  isListening,
  isNamed,
  peerCredentials,
  socketCookie,
} from "../peer_ffi.ts";
import { socketPathBytes } from "./path.ts";

/** The check that is in force, as `status` names it. */
export const PEER_CHECK = "SO_PEERCRED";

/** With this many remembered sockets it is time for a full look, which forgets those that are gone. */
const PRUNE_AT = 4096;

/** Descriptors of other kinds that may have been opened since the last full look; more cost one. */
const OPENED_SINCE = 8;

/** A new connection: who is there, and its descriptor. */
export interface Found {
  readonly peer: Peer;
  readonly fd: number;
}

/**
 * Finds the credentials of each new connection of one listener. The runtime shows no descriptor, so
 * the new socket is the one among ours that was not there before. The caller accepts serially and
 * calls {@link PeerFinder.next} after every accept, before anything else is awaited.
 */
export class PeerFinder {
  readonly #name: Uint8Array;
  #known = new Set<bigint>();
  /** Descriptors that were in use when last seen, and were not given back since. */
  #busy = new Set<number>();

  /** Throws `peer_check_unavailable` where credentials cannot be read: the service must not start. */
  constructor(path: string) {
    this.#name = socketPathBytes(path);
    if (available) return;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "peer_check_unavailable",
      "the C library (libc.so.6) cannot be loaded, so users of the socket cannot be told apart",
      { hint: "run tamq on a Linux system with glibc" },
    );
  }

  /** Undefined unless exactly one new connection is found; the caller then drops it (fails closed). */
  next(): Found | undefined {
    // The kernel gives the lowest free number, so the new one is nearly always in the gaps between
    // those that are in use; listing /proc costs many times as much. Whatever the gaps say is only
    // where to look: a cookie that was seen before is never taken for a new connection.
    const seen = new Set<bigint>();
    let found = this.#known.size < PRUNE_AT ? this.#examine(this.#gaps(), seen) : [];
    if (found.length === 0) {
      const all = descriptors();
      found = this.#examine(all, seen);
      this.#known = seen; // those that are gone are forgotten
      this.#busy = new Set(all);
    }
    const fd = found[0];
    if (found.length === 1 && fd !== undefined) {
      this.#busy.add(fd);
      const peer = peerCredentials(fd);
      return peer && { peer, fd };
    }
    // Whatever confused us may be anywhere: look at everything next time.
    this.#busy.clear();
    return undefined;
  }

  /** The connection with this descriptor has been closed: its number will be given again. */
  release(fd: number): void {
    this.#busy.delete(fd);
  }

  *#gaps(): Generator<number> {
    // The lowest free number is at most the count of those in use; a few files more may be open now.
    const end = this.#busy.size === 0 ? 0 : this.#busy.size + OPENED_SINCE;
    for (let fd = 0; fd < end; fd++) if (!this.#busy.has(fd)) yield fd;
  }

  /** Those that are new connections of our listener; all seen are known from now on. */
  #examine(fds: Iterable<number>, seen: Set<bigint>): number[] {
    const found: number[] = [];
    for (const fd of fds) {
      const cookie = socketCookie(fd);
      if (cookie === undefined) continue;
      seen.add(cookie);
      if (this.#known.has(cookie)) continue;
      this.#known.add(cookie);
      if (isNamed(fd, "local", this.#name) && !isListening(fd)) found.push(fd);
    }
    return found;
  }
}
