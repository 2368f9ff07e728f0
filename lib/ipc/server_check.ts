/** How a client makes sure that the service is its own user's (T-02). */
import { TamqError } from "../base/errors.ts";
import { available, descriptors, isNamed, peerCredentials } from "../peer_ffi.ts";
import { socketPathBytes } from "./path.ts";

function notOurs(path: string, uid: number): TamqError {
  return new TamqError(
    "PERMISSION_DENIED",
    "socket_not_ours",
    `the socket ${path} belongs to user ${uid}, not to user ${Deno.uid()}`,
    { hint: "set TAMQ_SOCKET to a path in a directory of your own" },
  );
}

/**
 * Throws `socket_not_ours` or `socket_path_occupied` for a file that another user, or something
 * else, put in the socket's place: the fallback directory `/tmp` is open to all. Silent when
 * nothing is there: connecting will tell.
 */
export function assertOurSocket(path: string): void {
  socketPathBytes(path);
  let file: Deno.FileInfo;
  try {
    file = Deno.statSync(path);
  } catch {
    return;
  }
  if (file.uid !== Deno.uid()) throw notOurs(path, file.uid ?? -1);
  if (file.isSocket === false) {
    throw new TamqError("FAILED_PRECONDITION", "socket_path_occupied", `${path} is not a socket`, {
      hint: "move it away, or set TAMQ_SOCKET to another path",
    });
  }
}

/**
 * Throws `socket_not_ours` when any of our connections to `path` ends at another user's process:
 * the file may have been exchanged between look and connection. Without the C library the check of
 * the file stands alone.
 */
export function assertOurServer(path: string): void {
  if (!available) return;
  const name = socketPathBytes(path);
  for (const fd of descriptors()) {
    if (!isNamed(fd, "remote", name)) continue;
    const server = peerCredentials(fd);
    if (server !== undefined && server.uid !== Deno.uid()) throw notOurs(path, server.uid);
  }
}
