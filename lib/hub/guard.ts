/** Who may ask: the same user over the Unix socket, the holder of the token over TCP (K-19, K-21). */
import type { Clock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { socketPathBytes } from "../ipc/path.ts";
import { descriptors, isListening, isNamed, peerCredentials } from "../peer_ffi.ts";
import type { Caller } from "./authority.ts";
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
  /** Who asks. Throws for whoever may not; nothing of the request has been acted on then. */
  admit(request: Request): Caller;
  /** Checks what needs the body; the result signs the answer, if the client wants it signed. */
  authenticate(request: Request, body: Uint8Array<ArrayBuffer>): Promise<Sign | undefined>;
}
/** The proof for an answer of that status and body digest. */
export type Sign = (status: number, bodyDigest: string) => Promise<string>;

/**
 * Of one room behind the door: only the door's own connections lead into it, so a request's caller
 * is the room's. While anybody else is connected to it, nobody in it is answered: fails closed.
 */
export class RoomGuard implements Guard {
  readonly #name: Uint8Array;
  readonly #who: Caller | TamqError;
  /** Found good in this turn of the event loop, in which no connection can have come. */
  #checked = false;

  /** With an error in place of a caller, that is what everybody in the room is told. */
  constructor(path: string, who: Caller | TamqError) {
    this.#name = socketPathBytes(path);
    this.#who = who;
  }

  admit(): Caller {
    if (!this.#checked) this.#check();
    if (this.#who instanceof TamqError) throw this.#who;
    return this.#who;
  }

  authenticate(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  #check(): void {
    let seen = 0;
    for (const fd of descriptors()) {
      if (!isNamed(fd, "local", this.#name) || isListening(fd)) continue;
      const peer = peerCredentials(fd);
      if (peer?.pid !== Deno.pid || peer.uid !== Deno.uid()) throw peerRefused(undefined);
      seen++;
    }
    if (seen === 0) throw peerRefused(undefined);
    // Requests that arrive together are handed over in one turn; the kernel's queue of new
    // connections is looked at between turns only.
    this.#checked = true;
    queueMicrotask(() => this.#checked = false);
  }
}

/** `uid` undefined: it cannot be determined who that is. */
export function peerRefused(uid: number | undefined): TamqError {
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

  admit(request: Request): Caller {
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
    return { kind: "token" };
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
