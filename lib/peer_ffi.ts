/**
 * The only libc binding for socket credentials (T-02). `Deno.listen` and `Deno.connect` expose no
 * descriptor, so sockets are found among our own descriptors by what the kernel says of them.
 */

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const SO_ACCEPTCONN = 30;
const SO_COOKIE = 57;
const AF_UNIX = 1;
const CLOCK_BOOTTIME = 7;
/** Of the times in /proc, on every architecture that we run on. */
const TICKS_A_SECOND = 100;

const symbols = {
  getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
  getsockname: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  getpeername: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  clock_gettime: { parameters: ["i32", "buffer"], result: "i32" },
} as const;

function open(): Deno.DynamicLibrary<typeof symbols>["symbols"] | undefined {
  try {
    return Deno.dlopen("libc.so.6", symbols).symbols;
  } catch {
    return undefined; // no glibc: the caller fails closed
  }
}

// Opened with the module, once: a library opened later would count as a leak of the test at hand.
const libc = open();

/** False where the C library cannot be bound; then no peer can be vouched for. */
export const available = libc !== undefined;

// One set of buffers: every call here is synchronous and copies what it returns.
const value = new Uint8Array(16);
const view = new DataView(value.buffer);
const length = new Uint32Array(1);
const address = new Uint8Array(128);

function option(fd: number, name: number, size: number): boolean {
  length[0] = size;
  return libc!.getsockopt(fd, SOL_SOCKET, name, value, length) === 0 && length[0] === size;
}

/** A number that the kernel gives each socket once and never again; undefined for other descriptors. */
export function socketCookie(fd: number): bigint | undefined {
  return option(fd, SO_COOKIE, 8) ? view.getBigUint64(0, true) : undefined;
}

export function isListening(fd: number): boolean {
  return option(fd, SO_ACCEPTCONN, 4) && view.getInt32(0, true) !== 0;
}

/** Credentials of the process at the other end at the time it connected (or listened). */
export function peerCredentials(fd: number): { pid: number; uid: number; gid: number } | undefined {
  if (!option(fd, SO_PEERCRED, 12)) return undefined;
  return {
    pid: view.getInt32(0, true),
    uid: view.getUint32(4, true),
    gid: view.getUint32(8, true),
  };
}

/** True when the socket's own (`local`) or other (`remote`) end is the Unix-domain path `path`. */
export function isNamed(fd: number, side: "local" | "remote", path: Uint8Array): boolean {
  length[0] = address.length;
  const call = side === "local" ? libc!.getsockname : libc!.getpeername;
  if (call(fd, address, length) !== 0) return false;
  // Family (2 bytes), path, NUL. The length must match as well: for an unnamed socket the kernel
  // writes the family alone and leaves the bytes of the call before.
  if (length[0] !== path.length + 3) return false;
  if ((address[0]! | address[1]! << 8) !== AF_UNIX || address[path.length + 2] !== 0) return false;
  return path.every((byte, i) => address[i + 2] === byte);
}

/**
 * Ticks since the machine was started, as /proc counts them for the starts of processes. Throws when
 * the kernel does not tell.
 */
export function ticksNow(): number {
  if (libc!.clock_gettime(CLOCK_BOOTTIME, value) !== 0) throw new Error("no boot clock");
  const [seconds, nanoseconds] = [view.getBigInt64(0, true), view.getBigInt64(8, true)];
  return Number(seconds) * TICKS_A_SECOND +
    Math.floor(Number(nanoseconds) / (1e9 / TICKS_A_SECOND));
}

/** Our open descriptors. The one that reads the list is among them and closed already. */
export function descriptors(): number[] {
  const found: number[] = [];
  for (const entry of Deno.readDirSync("/proc/self/fd")) found.push(Number(entry.name));
  return found;
}
