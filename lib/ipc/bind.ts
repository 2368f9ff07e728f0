/** Putting a listening socket at a path without ever taking anything from anybody (T-01, L-02). */
import { type Clock, pause } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import { probe } from "../base/probe.ts";
import { socketPathBytes } from "./path.ts";

export interface Bound {
  readonly listener: Deno.UnixListener;
  /**
   * Closes the listener and removes its file. False when the path holds something else by now: the
   * runtime removes whatever stands there when it closes a listener, so this one then stays open
   * until the process exits (by `Deno.exit`, which removes nothing).
   */
  close(): Promise<boolean>;
}

/** Binding takes milliseconds; longer means that somebody sits on the directory's lock. */
const BIND_LOCK_MS = 5000;

/**
 * Binds `path`, mode 0600 from the first instant. The caller holds the service lock. Throws
 * `socket_path_too_long`, `socket_path_occupied` (not a socket: never removed), `socket_not_ours`,
 * `socket_in_use` (somebody listens: never stolen) or `socket_unusable`. A socket of ours that
 * refuses connections is what a dead service left, and is replaced.
 */
export async function bindSocket(path: string, clock: Clock): Promise<Bound> {
  socketPathBytes(path);
  const dir = path.slice(0, path.lastIndexOf("/")) || "/";
  try {
    // Every directory that has to be made is ours alone.
    await Deno.mkdir(dir, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw unusable(path, `cannot create ${dir}: ${errorText(cause)}`, cause);
  }
  // The service lock keeps out services of the same state directory. Those of another one may want
  // the same path: between look and replacement nobody else may act, so the directory is locked.
  using _guard = await lockDirectory(dir, clock);
  await clear(path);
  const listener = listenPrivately(path);
  const { dev, ino } = Deno.lstatSync(path);
  return {
    listener,
    async close() {
      using _guard = await lockDirectory(dir, clock);
      const now = lstat(path);
      if (now !== undefined && (now.dev !== dev || now.ino !== ino)) return false;
      // This removes the file as well. Looking again and removing by ourselves would be worse than
      // nothing: the inode number of what appears there next may be the old one.
      listener.close();
      return true;
    },
  };
}

function lstat(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Removes what a dead service left at `path`; throws for everything else that is there. */
async function clear(path: string): Promise<void> {
  let file: Deno.FileInfo | undefined;
  try {
    file = lstat(path);
  } catch (error) {
    throw unusable(path, errorText(error), error);
  }
  if (file === undefined) return;
  if (file.isSocket !== true) {
    throw new TamqError("FAILED_PRECONDITION", "socket_path_occupied", `${path} is not a socket`, {
      hint: "move it away, or set TAMQ_SOCKET to another path",
    });
  }
  if (file.uid !== Deno.uid()) {
    throw new TamqError(
      "PERMISSION_DENIED",
      "socket_not_ours",
      `the socket ${path} belongs to user ${file.uid}, not to user ${Deno.uid()}`,
      { hint: "set TAMQ_SOCKET to a path in a directory of your own" },
    );
  }
  try {
    (await Deno.connect({ transport: "unix", path })).close();
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused) {
      probe("ipc.stale_socket", path);
      Deno.removeSync(path);
      return;
    }
    if (error instanceof Deno.errors.NotFound) return;
    // A full backlog is a live service that is busy.
    if (!(error instanceof Deno.errors.WouldBlock)) throw unusable(path, errorText(error), error);
  }
  throw new TamqError(
    "ALREADY_EXISTS",
    "socket_in_use",
    `another service listens on ${path}, with another state directory`,
    { hint: "stop that service, or set TAMQ_SOCKET to another path" },
  );
}

function listenPrivately(path: string): Deno.UnixListener {
  // Synchronous from mask to mask: the file has mode 0600 when it appears, and no other code of
  // ours creates a file meanwhile.
  const mask = Deno.umask(0o177);
  try {
    return Deno.listen({ transport: "unix", path });
  } catch (cause) {
    throw unusable(path, errorText(cause), cause);
  } finally {
    Deno.umask(mask);
  }
}

function unusable(path: string, why: string, cause: unknown): TamqError {
  return new TamqError(
    "FAILED_PRECONDITION",
    "socket_unusable",
    `cannot use the socket ${path}: ${why}`,
    { hint: "check the directory, or set TAMQ_SOCKET to another path", cause },
  );
}

async function lockDirectory(dir: string, clock: Clock): Promise<Disposable> {
  const handle = await Deno.open(dir, { read: true });
  const end = clock.monotonic() + BIND_LOCK_MS;
  try {
    while (!await handle.tryLock(true)) {
      if (clock.monotonic() >= end) {
        throw unusable(dir, "another process keeps the directory locked", undefined);
      }
      await pause(clock, 10);
    }
  } catch (error) {
    handle.close();
    throw error;
  }
  return { [Symbol.dispose]: () => handle.close() };
}
