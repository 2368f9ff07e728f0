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

/**
 * Finds the credentials of each new connection of one listener. The runtime shows no descriptor, so
 * the new socket is the one among ours that was not there before. The caller accepts serially and
 * calls {@link PeerFinder.next} after every accept, before anything else is awaited.
 */
export class PeerFinder {
  readonly #name: Uint8Array;
  #known = new Set<bigint>();
  /** The highest descriptor of the last full look. */
  #highest = -1;

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
  next(): Peer | undefined {
    // The kernel gives the lowest free number, so the new one is nearly always among those that
    // were in use at the last full look; listing /proc costs several times as much.
    const seen = new Set<bigint>();
    let found = this.#known.size < PRUNE_AT ? this.#examine(this.#range(), seen) : [];
    if (found.length === 0) {
      const all = descriptors();
      this.#highest = Math.max(...all);
      found = this.#examine(all, seen);
      this.#known = seen; // those that are gone are forgotten
    }
    if (found.length === 1) return peerCredentials(found[0]!);
    this.#highest = -1; // whatever confused us may be anywhere: look at everything next time
    return undefined;
  }

  *#range(): Generator<number> {
    for (let fd = 0; fd <= this.#highest; fd++) yield fd;
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
