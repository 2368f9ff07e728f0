/** The other end of our own connections (T-02); loaded only where the file's own check is not enough. */
import { available, descriptors, isNamed, peerCredentials } from "../peer_ffi.ts";
import { socketPathBytes } from "./path.ts";
import { socketNotOurs } from "./socket_file.ts";

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
    if (server !== undefined && server.uid !== Deno.uid()) throw socketNotOurs(path, server.uid);
  }
}
