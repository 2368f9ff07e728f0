/** Socket paths: what the kernel can bind and connect to. */
import { TamqError } from "../base/errors.ts";

/** `sun_path` holds 108 bytes with its closing NUL; a longer path would be cut or refused obscurely. */
export const MAX_SOCKET_PATH_BYTES = 107;

/** The path in bytes; throws `socket_path_too_long` with the length and the way out. */
export function socketPathBytes(path: string): Uint8Array {
  const bytes = new TextEncoder().encode(path);
  if (bytes.length <= MAX_SOCKET_PATH_BYTES) return bytes;
  throw new TamqError(
    "INVALID_ARGUMENT",
    "socket_path_too_long",
    `the socket path has ${bytes.length} bytes; the system allows ${MAX_SOCKET_PATH_BYTES}: ${path}`,
    { hint: "set TAMQ_SOCKET to a shorter path in a directory of your own" },
  );
}
