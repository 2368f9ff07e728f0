/**
 * The only libc binding for terminals and processes (B-01). Thin and typed: every function is one
 * or two system calls. Linux with glibc 2.34 or later, x86-64 and arm64.
 *
 * Every buffer handed to a call stays referenced until the call returns; those of the nonblocking
 * poll live as long as their {@link PollSet}.
 */
import { TamqError } from "./base/errors.ts";

const libc = Deno.dlopen("libc.so.6", {
  __errno_location: { parameters: [], result: "pointer" },
  strerror: { parameters: ["i32"], result: "pointer" },
  posix_openpt: { parameters: ["i32"], result: "i32" },
  grantpt: { parameters: ["i32"], result: "i32" },
  unlockpt: { parameters: ["i32"], result: "i32" },
  ptsname_r: { parameters: ["i32", "buffer", "usize"], result: "i32" },
  posix_spawnp: {
    parameters: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    result: "i32",
  },
  posix_spawnattr_init: { parameters: ["buffer"], result: "i32" },
  posix_spawnattr_setflags: { parameters: ["buffer", "i16"], result: "i32" },
  posix_spawnattr_setsigdefault: { parameters: ["buffer", "buffer"], result: "i32" },
  posix_spawnattr_setsigmask: { parameters: ["buffer", "buffer"], result: "i32" },
  posix_spawn_file_actions_init: { parameters: ["buffer"], result: "i32" },
  posix_spawn_file_actions_destroy: { parameters: ["buffer"], result: "i32" },
  posix_spawn_file_actions_addopen: {
    parameters: ["buffer", "i32", "buffer", "i32", "u32"],
    result: "i32",
  },
  posix_spawn_file_actions_adddup2: { parameters: ["buffer", "i32", "i32"], result: "i32" },
  posix_spawn_file_actions_addclosefrom_np: { parameters: ["buffer", "i32"], result: "i32" },
  posix_spawn_file_actions_addchdir_np: { parameters: ["buffer", "buffer"], result: "i32" },
  sigemptyset: { parameters: ["buffer"], result: "i32" },
  sigfillset: { parameters: ["buffer"], result: "i32" },
  open: { parameters: ["buffer", "i32", "u32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  // Lengths here are far below 2^31: taken as i32, the result needs no big integer.
  read: { parameters: ["i32", "buffer", "usize"], result: "i32" },
  write: { parameters: ["i32", "buffer", "usize"], result: "i32" },
  fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
  ioctl: { parameters: ["i32", "u64", "buffer"], result: "i32" },
  isatty: { parameters: ["i32"], result: "i32" },
  tcgetattr: { parameters: ["i32", "buffer"], result: "i32" },
  tcsetattr: { parameters: ["i32", "i32", "buffer"], result: "i32" },
  tcflush: { parameters: ["i32", "i32"], result: "i32" },
  cfmakeraw: { parameters: ["buffer"], result: "void" },
  eventfd: { parameters: ["u32", "i32"], result: "i32" },
  pidfd_open: { name: "syscall", parameters: ["i64", "i32", "u32"], result: "i64" },
  waitpid: { parameters: ["i32", "buffer", "i32"], result: "i32" },
  kill: { parameters: ["i32", "i32"], result: "i32" },
  prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  poll_now: { name: "poll", parameters: ["buffer", "usize", "i32"], result: "i32" },
  poll_wait: {
    name: "poll",
    parameters: ["buffer", "usize", "i32"],
    result: "i32",
    nonblocking: true,
  },
}).symbols;

// This thread's errno, read as memory: asking for it by another call could overwrite it.
const errnoCell = new Int32Array(
  Deno.UnsafePointerView.getArrayBuffer(libc.__errno_location()!, 4),
);
const EINTR = 4, EIO = 5, EAGAIN = 11, EPIPE = 32;
export const ENOENT = 2, ENOEXEC = 8, EACCES = 13;
const O_WRONLY = 1, O_RDWR = 2, O_NOCTTY = 0x100, O_NONBLOCK = 0x800, O_CLOEXEC = 0x80000;
const F_GETFL = 3, F_SETFL = 4;

const encoder = new TextEncoder();
const cString = (text: string) => encoder.encode(text + "\0");

/** libc's words for an error number. */
export function errnoText(errno: number): string {
  const text = libc.strerror(errno);
  return text === null ? `error ${errno}` : Deno.UnsafePointerView.getCString(text);
}

function check(result: number, what: string): number {
  if (result >= 0) return result;
  const errno = errnoCell[0]!;
  throw new TamqError("UNAVAILABLE", "terminal_error", `${what}: ${errnoText(errno)}`);
}

// --- terminals -------------------------------------------------------------------------------

export interface TerminalSize {
  readonly rows: number;
  readonly columns: number;
}

/** A new pseudo-terminal; the master is nonblocking and close-on-exec. */
export function openPty(size: TerminalSize): { master: number; slavePath: string } {
  const master = check(libc.posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "cannot open a terminal");
  try {
    check(libc.grantpt(master), "grantpt");
    check(libc.unlockpt(master), "unlockpt");
    const name = new Uint8Array(128);
    const errno = libc.ptsname_r(master, name, BigInt(name.length));
    if (errno !== 0) {
      throw new TamqError("UNAVAILABLE", "terminal_error", `ptsname: ${errnoText(errno)}`);
    }
    setSize(master, size);
    setNonblocking(master);
    return { master, slavePath: new TextDecoder().decode(name.subarray(0, name.indexOf(0))) };
  } catch (error) {
    libc.close(master);
    throw error;
  }
}

/** The worker's side of a terminal, without making it anybody's controlling terminal. */
export function openSlave(path: string): number {
  return check(
    libc.open(cString(path), O_RDWR | O_NOCTTY | O_CLOEXEC, 0),
    "cannot open a terminal",
  );
}

export function setNonblocking(fd: number): void {
  check(libc.fcntl(fd, F_SETFL, libc.fcntl(fd, F_GETFL, 0) | O_NONBLOCK), "fcntl");
}

export function isTerminal(fd: number): boolean {
  return libc.isatty(fd) === 1;
}

const sizeBuffer = new Uint16Array(4);

/** Undefined when `fd` is no terminal or its size was never set. */
export function getSize(fd: number): TerminalSize | undefined {
  if (libc.ioctl(fd, 0x5413n, sizeBuffer) < 0) return undefined;
  const [rows = 0, columns = 0] = sizeBuffer;
  return rows > 0 && columns > 0 ? { rows, columns } : undefined;
}

/** Sets the size; the kernel sends SIGWINCH to the foreground group when it changed. */
export function setSize(fd: number, size: TerminalSize): void {
  sizeBuffer.set([size.rows, size.columns, 0, 0]);
  libc.ioctl(fd, 0x5414n, sizeBuffer);
}

const groupBuffer = new Int32Array(1);

/** Foreground process group of the terminal behind this master; undefined when there is none. */
export function foregroundGroup(master: number): number | undefined {
  if (libc.ioctl(master, 0x540fn, groupBuffer) < 0) return undefined;
  const group = groupBuffer[0]!;
  return group > 0 ? group : undefined;
}

const countBuffer = new Int32Array(1);

/** Bytes that a program could read from this terminal now; of gathered lines complete ones only. */
export function unreadInput(slave: number): number {
  return libc.ioctl(slave, 0x541bn, countBuffer) < 0 ? 0 : countBuffer[0]!;
}

/** Throws away what was typed and not read (TCIFLUSH). */
export function flushInput(slave: number): void {
  libc.tcflush(slave, 0);
}

/** Line settings of a terminal; opaque but for what the getters below read. */
export class Termios {
  constructor(readonly raw: Uint8Array<ArrayBuffer>) {}
  #flag(offset: number, bit: number): boolean {
    return (new DataView(this.raw.buffer).getUint32(offset, true) & bit) !== 0;
  }
  /** The kernel gathers lines (ICANON). */
  get canonical(): boolean {
    return this.#flag(12, 0o2);
  }
  get echo(): boolean {
    return this.#flag(12, 0o10);
  }
  /** A gathered line that is not shown: a password prompt. */
  get hidden(): boolean {
    return this.canonical && !this.echo;
  }
  /** A carriage return typed reads as a line feed (ICRNL). */
  get mapsReturn(): boolean {
    return this.#flag(0, 0o400);
  }
  /** The control characters in force (VINTR, VERASE, …); 0 means disabled. */
  get controls(): Uint8Array {
    return this.raw.subarray(17, 17 + 17);
  }
  /** The same with UTF-8 erase (IUTF8) on: backspace removes a character, not a byte. */
  withUtf8(): Termios {
    const copy = this.raw.slice();
    const view = new DataView(copy.buffer);
    view.setUint32(0, view.getUint32(0, true) | 0o40000, true);
    return new Termios(copy);
  }
  /** Raw mode: no echo, no line gathering, no signals, no output mapping, 8 bits. */
  toRaw(): Termios {
    const copy = this.raw.slice();
    libc.cfmakeraw(copy);
    return new Termios(copy);
  }
}

/** Settings of the terminal; on a master those of its slave. Undefined when `fd` is no terminal. */
export function getTermios(fd: number): Termios | undefined {
  const raw = new Uint8Array(128); // struct termios has 60 bytes
  return libc.tcgetattr(fd, raw) < 0 ? undefined : new Termios(raw);
}

/** At once (TCSANOW): waiting for the output to drain would hang behind a stopped terminal. */
export function setTermios(fd: number, termios: Termios): boolean {
  return libc.tcsetattr(fd, 0, termios.raw) === 0;
}

// --- processes -------------------------------------------------------------------------------

export interface SpawnOptions {
  readonly command: readonly string[];
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly slavePath: string;
}

function pointers(items: readonly Uint8Array<ArrayBuffer>[]): BigUint64Array<ArrayBuffer> {
  const array = new BigUint64Array(items.length + 1);
  items.forEach((item, i) =>
    array[i] = Deno.UnsafePointer.value(Deno.UnsafePointer.of(item)) as bigint
  );
  return array;
}

/**
 * Starts `command` as leader of a new session with the slave as its controlling terminal, default
 * signal actions, an empty signal mask and no other descriptor open. Returns its pid, or the error
 * number negated. The first word must not be empty, and no word may hold a NUL.
 */
export function spawnOnTerminal(options: SpawnOptions): number {
  // Measured sizes: attributes 336, file actions 80, signal set 128 bytes.
  const attr = new Uint8Array(512), actions = new Uint8Array(128), signals = new Uint8Array(128);
  const argv = options.command.map(cString);
  const envp = Object.entries(options.env).map(([key, value]) => cString(`${key}=${value}`));
  const slave = cString(options.slavePath), directory = cString(options.directory);
  const pid = new Int32Array(1);

  libc.posix_spawnattr_init(attr);
  libc.posix_spawnattr_setflags(attr, 0x80 | 4 | 8); // SETSID | SETSIGDEF | SETSIGMASK
  libc.sigfillset(signals); // the runtime ignores SIGPIPE, and an ignored signal survives exec
  libc.posix_spawnattr_setsigdefault(attr, signals);
  libc.sigemptyset(signals);
  libc.posix_spawnattr_setsigmask(attr, signals);
  libc.posix_spawn_file_actions_init(actions);
  // The first terminal that a session leader opens becomes its controlling terminal.
  libc.posix_spawn_file_actions_addopen(actions, 0, slave, O_RDWR, 0);
  libc.posix_spawn_file_actions_adddup2(actions, 0, 1);
  libc.posix_spawn_file_actions_adddup2(actions, 0, 2);
  libc.posix_spawn_file_actions_addclosefrom_np(actions, 3);
  libc.posix_spawn_file_actions_addchdir_np(actions, directory);
  const argvPointers = pointers(argv), envPointers = pointers(envp);
  const errno = libc.posix_spawnp(pid, argv[0]!, actions, attr, argvPointers, envPointers);
  libc.posix_spawn_file_actions_destroy(actions);
  return errno === 0 ? pid[0]! : -errno;
}

/** A descriptor that polls readable once the process has ended. */
export function openPidfd(pid: number): number {
  return check(Number(libc.pidfd_open(434n, pid, 0)), "pidfd_open");
}

export interface ExitStatus {
  readonly code: number;
  /** Number of the signal that ended it, else undefined. */
  readonly signal?: number;
}

/** The status of an ended child, which is thereby reaped; undefined while it runs. */
export function reap(pid: number): ExitStatus | undefined {
  const status = new Int32Array(1);
  if (libc.waitpid(pid, status, 1) !== pid) return undefined;
  const signal = status[0]! & 0x7f;
  return signal === 0 ? { code: (status[0]! >> 8) & 0xff } : { code: 128 + signal, signal };
}

const PR_SET_CHILD_SUBREAPER = 36;

/** Descendants whose parent ends become children of this process instead of pid 1's (B-04). */
export function becomeSubreaper(on: boolean): boolean {
  return libc.prctl(PR_SET_CHILD_SUBREAPER, on ? 1n : 0n, 0n, 0n, 0n) === 0;
}

export const SIGHUP = 1, SIGINT = 2, SIGKILL = 9, SIGTERM = 15, SIGCONT = 18, SIGWINCH = 28;

/** Sends a signal to a process, or to a group by its negative number; false when there is none. */
export function sendSignal(pid: number, signal: number): boolean {
  if (pid === 0 || pid === -1 || pid === 1) return false; // own group, everybody, init: never meant
  return libc.kill(pid, signal) === 0;
}

// --- descriptors -----------------------------------------------------------------------------

/** Would block: try again after the descriptor polls ready. */
export const AGAIN = -1;
/** The other end is gone. */
export const GONE = -2;

/** Bytes read into `buffer`; 0 at the end of file or of the terminal; {@link AGAIN}. */
export function readFd(fd: number, buffer: Uint8Array<ArrayBuffer>): number {
  for (;;) {
    const n = libc.read(fd, buffer, BigInt(buffer.length));
    if (n >= 0) return n;
    const errno = errnoCell[0]!;
    if (errno === EINTR) continue;
    if (errno === EAGAIN) return AGAIN;
    if (errno === EIO) return 0; // a terminal whose other end is closed
    throw new TamqError("UNAVAILABLE", "terminal_error", `read: ${errnoText(errno)}`);
  }
}

/** Bytes written, perhaps fewer than given; {@link AGAIN}; {@link GONE}. */
export function writeFd(fd: number, bytes: Uint8Array<ArrayBuffer>): number {
  for (;;) {
    const n = libc.write(fd, bytes, BigInt(bytes.length));
    if (n >= 0) return n;
    const errno = errnoCell[0]!;
    if (errno === EINTR) continue;
    if (errno === EAGAIN) return AGAIN;
    if (errno === EIO || errno === EPIPE) return GONE;
    throw new TamqError("UNAVAILABLE", "terminal_error", `write: ${errnoText(errno)}`);
  }
}

/**
 * A nonblocking descriptor of our own for the terminal or pipe behind `fd`. The flag belongs to
 * the open file, which a parent shell shares: setting it on `fd` itself would reach that shell.
 * Undefined for files and sockets, where opening anew would mean something else.
 */
export function reopenNonblocking(fd: number, access: "read" | "write"): number | undefined {
  try {
    const path = `/proc/self/fd/${fd}`;
    if (!isTerminal(fd) && !Deno.statSync(path).isFifo) return undefined;
    const flags = (access === "read" ? 0 : O_WRONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const copy = libc.open(cString(path), flags, 0);
    return copy < 0 ? undefined : copy;
  } catch {
    return undefined;
  }
}

export function closeFd(fd: number): void {
  libc.close(fd);
}

/** A counter that wakes a poll: {@link ringBell} makes it readable, {@link hushBell} empties it. */
export function openBell(): number {
  return check(libc.eventfd(0, O_CLOEXEC | O_NONBLOCK), "eventfd");
}
const one = new Uint8Array(new BigUint64Array([1n]).buffer);
const eight = new Uint8Array(8);
export function ringBell(fd: number): void {
  libc.write(fd, one, 8n);
}
export function hushBell(fd: number): void {
  libc.read(fd, eight, 8n);
}

export const POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32;

/** A fixed list of descriptors to wait on; -1 in a place skips it. */
export class PollSet {
  readonly #buffer: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;
  readonly #count: bigint;
  constructor(count: number) {
    this.#buffer = new Uint8Array(8 * count);
    this.#view = new DataView(this.#buffer.buffer);
    this.#count = BigInt(count);
  }
  set(index: number, fd: number, events: number): void {
    this.#view.setInt32(8 * index, fd, true);
    this.#view.setInt16(8 * index + 4, events, true);
    this.#view.setInt16(8 * index + 6, 0, true);
  }
  ready(index: number): number {
    return this.#view.getInt16(8 * index + 6, true);
  }
  /** How many are ready now, or within `ms` milliseconds, for which this thread then stands still. */
  now(ms = 0): number {
    return libc.poll_now(this.#buffer, this.#count, ms);
  }
  /** Waits on a helper thread; the set must not be touched meanwhile. Negative when interrupted. */
  wait(): Promise<number> {
    return libc.poll_wait(this.#buffer, this.#count, -1);
  }
}
