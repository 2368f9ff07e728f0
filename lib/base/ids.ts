import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** Crockford's alphabet, lower case: no i, l, o, u, so that an id can be read out loud. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * Makes ids of 26 characters: 48 bits of milliseconds, 80 bits of randomness (the ULID layout).
 * They sort by creation time between processes only roughly; nothing may rely on that order.
 */
export function newId(clock: Pick<Clock, "now">, random: Random): string {
  const bytes = random.bytes(16);
  let ms = Math.max(0, Math.floor(clock.now()));
  for (let i = 5; i >= 0; i--) {
    bytes[i] = ms % 256;
    ms = Math.floor(ms / 256);
  }
  return base32(bytes);
}

/** 128 random bits, 26 characters: lease tokens and instance ids. */
export function newToken(random: Random): string {
  return base32(random.bytes(16));
}

/** 26 characters for 16 bytes; the first carries 3 bits, the others 5. */
function base32(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (let i = 0; i < 26; i++) {
    text = ALPHABET[Number(value & 31n)] + text;
    value >>= 5n;
  }
  return text;
}

/** Lower-case hexadecimal. */
export function hex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}
