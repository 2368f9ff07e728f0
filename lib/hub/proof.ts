/**
 * How client and hub prove to each other over TCP that they know the token, which itself never
 * crosses: another user's program may have taken the port, and must learn nothing it can use (K-19).
 * Every request carries a MAC over what it asks; every answer carries one over what it says.
 */
import { hex } from "../base/ids.ts";

export const SCHEME = "TAMQ-HMAC-SHA256";
export const PROOF_HEADER = "tamq-proof";
/** How far apart two clocks of one machine may be read, milliseconds. */
export const MAX_SKEW_MS = 60_000;

const encoder = new TextEncoder();

export interface RequestClaim {
  readonly method: string;
  /** As in the Host header: it names the port, so that a request for one cannot be used on another. */
  readonly host: string;
  /** Path and query. */
  readonly target: string;
  readonly timeMs: number;
  readonly nonce: string;
  readonly bodyDigest: string;
}

export interface AnswerClaim {
  readonly nonce: string;
  readonly status: number;
  /** Of the body; `events` for a stream, whose bytes come later on the same connection. */
  readonly bodyDigest: string;
}

export async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** A token, able to sign; the token cannot be read back from it. */
export class ProofKey {
  readonly #key: CryptoKey;

  private constructor(key: CryptoKey) {
    this.#key = key;
  }

  static async of(token: string): Promise<ProofKey> {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    return new ProofKey(
      await crypto.subtle.importKey("raw", encoder.encode(token), algorithm, false, ["sign"]),
    );
  }

  request(claim: RequestClaim): Promise<string> {
    const { method, host, target, timeMs, nonce, bodyDigest } = claim;
    return this.#mac(["tamq-hub-request-v1", method, host, target, timeMs, nonce, bodyDigest]);
  }

  answer({ nonce, status, bodyDigest }: AnswerClaim): Promise<string> {
    return this.#mac(["tamq-hub-answer-v1", nonce, status, bodyDigest]);
  }

  async #mac(parts: readonly (string | number)[]): Promise<string> {
    // As JSON no part can run into the next one.
    const text = encoder.encode(JSON.stringify(parts));
    return hex(new Uint8Array(await crypto.subtle.sign("HMAC", this.#key, text)));
  }
}

export interface Credentials {
  readonly timeMs: number;
  readonly nonce: string;
  readonly mac: string;
}

export function writeCredentials({ timeMs, nonce, mac }: Credentials): string {
  return `${SCHEME} time=${timeMs}, nonce=${nonce}, mac=${mac}`;
}

export function readCredentials(header: string): Credentials | undefined {
  const match = /^TAMQ-HMAC-SHA256 time=(\d{1,15}), nonce=([a-z0-9]{20,64}), mac=([0-9a-f]{64})$/
    .exec(header);
  return match === null
    ? undefined
    : { timeMs: Number(match[1]), nonce: match[2]!, mac: match[3]! };
}

/** Equality that takes as long for a near miss as for a far one; the lengths are no secret. */
export function sameSecret(a: string, b: string): boolean {
  const left = encoder.encode(a);
  const right = encoder.encode(b);
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= left[i]! ^ right[i]!;
  return difference === 0;
}

/** Nonces seen within the time in which a request could be sent again by somebody who saw it. */
export class NonceGuard {
  readonly #seen = new Map<string, number>();
  readonly #limit: number;

  constructor(limit = 100_000) {
    this.#limit = limit;
  }

  /** False for a repeat, and when so many are remembered that a repeat could slip through. */
  accept(nonce: string, nowMs: number): boolean {
    for (const [old, until] of this.#seen) {
      if (until > nowMs) break;
      this.#seen.delete(old);
    }
    if (this.#seen.has(nonce) || this.#seen.size >= this.#limit) return false;
    // Monotonic time: twice the skew, since a request may come from either side of it.
    this.#seen.set(nonce, nowMs + 2 * MAX_SKEW_MS);
    return true;
  }
}
