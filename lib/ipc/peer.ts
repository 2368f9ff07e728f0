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

/** Beyond this many remembered sockets those that are gone are forgotten. */
const PRUNE_AT = 4096;

/**
 * Finds the credentials of each new connection of one listener. The runtime shows no descriptor, so
 * the new socket is the one among ours that was not there before. The caller accepts serially and
 * calls {@link PeerFinder.next} after every accept, before anything else is awaited.
 */
export class PeerFinder {
  readonly #name: Uint8Array;
  #known = new Set<bigint>();

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
    const seen = new Set<bigint>();
    let found: number | undefined;
    let candidates = 0;
    for (const fd of descriptors()) {
      const cookie = socketCookie(fd);
      if (cookie === undefined) continue;
      seen.add(cookie);
      if (this.#known.has(cookie)) continue;
      this.#known.add(cookie);
      if (!isNamed(fd, "local", this.#name) || isListening(fd)) continue;
      candidates++;
      found = fd;
    }
    if (this.#known.size > PRUNE_AT) this.#known = seen;
    return candidates === 1 ? peerCredentials(found!) : undefined;
  }
}
