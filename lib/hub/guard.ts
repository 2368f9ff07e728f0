/** Who may ask: the same user over the Unix socket, the holder of the token over TCP (K-19, K-21). */
import type { Clock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { socketPathBytes } from "../ipc/path.ts";
import { available, descriptors, isListening, isNamed, peerCredentials } from "../peer_ffi.ts";
import {
  digest,
  MAX_SKEW_MS,
  NonceGuard,
  type ProofKey,
  readCredentials,
  sameSecret,
} from "./proof.ts";

/** What a listener knows about a request before its body is looked at. */
export interface Guard {
  /** Throws for whoever may not ask; nothing of the request has been acted on then. */
  admit(request: Request): Promise<void> | void;
  /** Checks what needs the body; the result signs the answer, if the client wants it signed. */
  authenticate(request: Request, body: Uint8Array<ArrayBuffer>): Promise<Sign | undefined>;
}
/** The proof for an answer of that status and body digest. */
export type Sign = (status: number, bodyDigest: string) => Promise<string>;

/**
 * The runtime's HTTP server does not tell which connection a request came over. So every open
 * connection of the socket is asked for its peer, and nothing is answered while any of them is not
 * this user's: fails closed (decision 0008).
 */
export class PeerGuard implements Guard {
  readonly #name: Uint8Array;
  /** Found good in this turn of the event loop, in which no connection can have come. */
  #checked = false;

  /** Throws `peer_check_unavailable` where credentials cannot be read. */
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

  admit(): void {
    if (this.#checked) return;
    const ours = Deno.uid();
    let seen = 0;
    for (const fd of descriptors()) {
      if (!isNamed(fd, "local", this.#name) || isListening(fd)) continue;
      const peer = peerCredentials(fd);
      if (peer?.uid !== ours) throw peerRefused(peer?.uid);
      seen++;
    }
    if (seen === 0) throw peerRefused(undefined);
    // Requests that arrive together are handed over in one turn; the kernel's queue of new
    // connections is looked at between turns only.
    this.#checked = true;
    queueMicrotask(() => this.#checked = false);
  }

  authenticate(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
}

function peerRefused(uid: number | undefined): TamqError {
  return new TamqError(
    "UNAUTHENTICATED",
    "peer_refused",
    uid === undefined
      ? "who is connected cannot be determined"
      : `user ${uid} is connected to the hub of user ${Deno.uid()}`,
    { hint: "run tamq as the user whose hub this is" },
  );
}

export interface TcpGuardOptions {
  readonly token: string;
  readonly key: ProofKey;
  readonly port: () => number;
  readonly clock: Clock;
}

/** Loopback names only, then the token: a page in a browser has neither (DNS rebinding). */
export class TcpGuard implements Guard {
  readonly #options: TcpGuardOptions;
  readonly #nonces = new NonceGuard();
  /** Requests from before this hub started were for another one, whose nonces are not known. */
  readonly #since: { readonly wall: number; readonly monotonic: number };

  constructor(options: TcpGuardOptions) {
    this.#options = options;
    const { clock } = options;
    this.#since = { wall: clock.now(), monotonic: clock.monotonic() };
  }

  admit(request: Request): void {
    const port = this.#options.port();
    const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
    if (port === 80) hosts.push("127.0.0.1", "localhost", "[::1]");
    const host = request.headers.get("host")?.toLowerCase() ?? "";
    if (!hosts.includes(host)) {
      throw new TamqError(
        "PERMISSION_DENIED",
        "host_refused",
        "the Host header names no loopback address of this hub",
        { hint: `use http://127.0.0.1:${port}` },
      );
    }
    const origin = request.headers.get("origin")?.toLowerCase();
    if (origin !== undefined && !hosts.some((name) => origin === `http://${name}`)) {
      throw new TamqError(
        "PERMISSION_DENIED",
        "origin_refused",
        "requests made by a page of another origin are refused",
        { hint: "use a program instead of a web page" },
      );
    }
    if (request.headers.get("authorization") === null) throw tokenRequired();
  }

  async authenticate(
    request: Request,
    body: Uint8Array<ArrayBuffer>,
  ): Promise<Sign | undefined> {
    const header = request.headers.get("authorization") ?? "";
    const bearer = /^Bearer ([\x21-\x7e]+)$/i.exec(header)?.[1];
    if (bearer !== undefined) {
      if (!sameSecret(bearer, this.#options.token)) throw tokenWrong("the token is wrong");
      return undefined;
    }
    const given = readCredentials(header);
    if (given === undefined) throw tokenRequired();
    const { key, clock } = this.#options;
    const url = new URL(request.url);
    const expected = await key.request({
      method: request.method,
      host: request.headers.get("host") ?? "",
      target: url.pathname + url.search,
      timeMs: given.timeMs,
      nonce: given.nonce,
      bodyDigest: await digest(body),
    });
    if (!sameSecret(expected, given.mac)) {
      throw tokenWrong("the request is not signed with the token");
    }
    if (!this.#isOfNow(given.timeMs)) throw tokenWrong("the request is from another time");
    if (!this.#nonces.accept(given.nonce, clock.monotonic())) {
      throw tokenWrong("the request was made before");
    }
    const { nonce } = given;
    return (status, bodyDigest) => key.answer({ nonce, status, bodyDigest });
  }

  #isOfNow(timeMs: number): boolean {
    const { clock } = this.#options;
    if (Math.abs(clock.now() - timeMs) > MAX_SKEW_MS) return false;
    // Later on the first test keeps old requests out by itself, and the wall clock may have been
    // set back since.
    const young = clock.monotonic() - this.#since.monotonic < 2 * MAX_SKEW_MS;
    return !young || timeMs >= Math.floor(this.#since.wall);
  }
}

function tokenRequired(): TamqError {
  return new TamqError("UNAUTHENTICATED", "token_required", "over TCP the hub's token is needed", {
    hint: "send Authorization: Bearer with the content of the hub's token file",
  });
}

function tokenWrong(why: string): TamqError {
  return new TamqError("UNAUTHENTICATED", "token_wrong", why, {
    hint: "read the hub's token file again",
  });
}
