/**
 * Holds the operator's keys back while a message is being typed (B-08), so that the two never mix.
 * Terminal replies pass at once – a program that waits for one must not stall – and so do ^C, ^Z
 * and ^\.
 */
import type { KeyTokens, Token } from "./keys.ts";

/** More than this and the hold is over: memory is bounded, and the operator is not locked out. */
const MAX_HELD = 64 * 1024;

export class InputHold {
  readonly #keys: KeyTokens;
  #held: Uint8Array[] = [];
  #bytes = 0;
  #active = false;
  /** Called once when ^C passes or the hold overflows while it is active. */
  onBroken: (why: "interrupt" | "overflow") => void = () => {};

  constructor(keys: KeyTokens) {
    this.#keys = keys;
  }

  get active(): boolean {
    return this.#active;
  }

  /** False when the operator is in the middle of a sequence, a character or a paste. */
  begin(): boolean {
    if (this.#active || !this.#keys.boundary) return false;
    this.#active = true;
    return true;
  }

  /** What of `chunk`, already split into `tokens`, is to be passed on now. */
  filter(chunk: Uint8Array<ArrayBuffer>, tokens: readonly Token[]): Uint8Array<ArrayBuffer> {
    if (!this.#active) return chunk;
    const pass: Uint8Array[] = [];
    for (const token of tokens) {
      const urgent = token.type === "control" && [0x03, 0x1a, 0x1c].includes(token.byte) &&
        !this.#keys.inPaste;
      if (token.type === "reply" || urgent) pass.push(token.bytes);
      else {
        this.#held.push(token.bytes);
        this.#bytes += token.bytes.length;
      }
      if (urgent && token.byte === 0x03) this.onBroken("interrupt");
    }
    if (this.#bytes > MAX_HELD) this.onBroken("overflow");
    return concat(pass);
  }

  /** Ends the hold; returns what was held, in order, to be passed on now. */
  end(): Uint8Array<ArrayBuffer> {
    if (!this.#active) return new Uint8Array();
    this.#active = false;
    const all = concat([...this.#held, this.#keys.partial]);
    this.#held = [];
    this.#bytes = 0;
    return all;
  }
}

export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
