/** How a client looks at a socket file before it connects (T-02). */
import { TamqError } from "../base/errors.ts";
import { socketPathBytes } from "./path.ts";

export function socketNotOurs(path: string, uid: number): TamqError {
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
  if (file.uid !== Deno.uid()) throw socketNotOurs(path, file.uid ?? -1);
  if (file.isSocket === false) {
    throw new TamqError("FAILED_PRECONDITION", "socket_path_occupied", `${path} is not a socket`, {
      hint: "move it away, or set TAMQ_SOCKET to another path",
    });
  }
}

/**
 * True when only we can put files beside `path`, so that what {@link assertOurSocket} saw cannot be
 * exchanged before the connection; elsewhere (`/tmp`) the server itself is to be checked as well.
 */
export function inOurDirectory(path: string): boolean {
  try {
    const dir = Deno.statSync(path.slice(0, path.lastIndexOf("/")) || "/");
    return dir.uid === Deno.uid() && (dir.mode! & 0o022) === 0;
  } catch {
    return false;
  }
}
