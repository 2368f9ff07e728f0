/**
 * The service lock: one service a database, also when two shells disagree about the socket (L-02).
 * The lock is `flock` on a file in the state directory: the kernel frees it with the process, so a
 * dead holder never has to be guessed at. The file's text only tells people and clients who holds it.
 */
import { TamqError } from "../base/errors.ts";
import { openOwnFile } from "../base/own_file.ts";
import { isAlive } from "../base/proc.ts";
import { stateDirUnusable } from "./state_dir.ts";

/** Who holds the lock, as the holder wrote it. */
export interface Holder {
  readonly pid: number;
  /** Start identity of that process (`ProcessIdentity.start`): a reused pid is not the holder. */
  readonly start: string;
  readonly socket: string;
  readonly service_id: string;
  readonly version: string;
}

export interface ServiceLock {
  /** Replaces the file's text. */
  publish(holder: Holder): void;
  /** Empties the text and frees the lock; the file stays (removing it would let two hold it). */
  release(): void;
}

export function lockPath(stateDir: string): string {
  return `${stateDir}/service.lock`;
}

/** The lock, or undefined when another process holds it. Throws when the file cannot be used. */
export async function tryServiceLock(stateDir: string): Promise<ServiceLock | undefined> {
  const path = lockPath(stateDir);
  const file = await tryLockFile(path);
  if (file === undefined) return undefined;
  let released = false;
  return {
    publish(holder) {
      try {
        file.truncateSync(0);
        file.seekSync(0, Deno.SeekMode.Start);
        file.writeSync(new TextEncoder().encode(JSON.stringify(holder) + "\n"));
      } catch (cause) {
        throw stateDirUnusable(path, cause); // a full disk, most likely
      }
    },
    release() {
      if (released) return;
      released = true;
      try {
        file.truncateSync(0);
      } finally {
        file.close(); // closing frees the lock
      }
    },
  };
}

/**
 * The file at `path`, created 0600, locked; undefined when somebody else holds its lock. Throws
 * `file_unusable` for a link, or what is no file of ours, and `state_dir_…`.
 */
export async function tryLockFile(path: string): Promise<Deno.FsFile | undefined> {
  let file: Deno.FsFile;
  try {
    file = openOwnFile(path, "read-write");
  } catch (cause) {
    if (cause instanceof TamqError) throw cause;
    throw stateDirUnusable(path, cause);
  }
  let held = false;
  try {
    held = await file.tryLock(true);
  } finally {
    if (!held) file.close();
  }
  return held ? file : undefined;
}

/** What the file says, live or not; undefined when absent, empty or not understood. */
export function readHolder(stateDir: string): Holder | undefined {
  try {
    const value: unknown = JSON.parse(Deno.readTextFileSync(lockPath(stateDir)));
    if (typeof value !== "object" || value === null) return undefined;
    const { pid, start, socket, service_id, version } = value as Record<string, unknown>;
    if (typeof pid !== "number" || !Number.isInteger(pid) || pid < 1) return undefined;
    if (typeof start !== "string" || typeof socket !== "string") return undefined;
    return {
      pid,
      start,
      socket,
      service_id: typeof service_id === "string" ? service_id : "",
      version: typeof version === "string" ? version : "",
    };
  } catch {
    return undefined;
  }
}

/** The holder whose process lives; undefined otherwise. */
export function liveHolder(stateDir: string): Holder | undefined {
  const holder = readHolder(stateDir);
  return holder !== undefined && isAlive(holder) ? holder : undefined;
}

/** Why no second service is started; `holder` is undefined while the first has not said who it is. */
export function serviceRunning(stateDir: string, holder: Holder | undefined): TamqError {
  return new TamqError(
    "ALREADY_EXISTS",
    "service_running",
    holder === undefined
      ? `another service is starting on ${stateDir}`
      : `a service (process ${holder.pid}) already serves ${stateDir} on ${holder.socket}`,
    { hint: "use that one, or stop it first: tamq stop" },
  );
}
