/**
 * What a process waits for, read from /proc. The kernel tells it to whoever may trace the process,
 * which a parent may unless tracing is closed to all (`kernel.yama.ptrace_scope` 2 or 3).
 */

/** Numbers of the system calls in which a program waits for input. */
interface Calls {
  readonly read: readonly number[];
  readonly poll: readonly number[];
  readonly select: readonly number[];
  readonly epoll: readonly number[];
}

const CALLS: Readonly<Record<string, Calls>> = {
  // read readv; poll ppoll; select pselect6; epoll_wait epoll_pwait epoll_pwait2
  x86_64: { read: [0, 19], poll: [7, 271], select: [23, 270], epoll: [232, 281, 441] },
  aarch64: { read: [63, 65], poll: [73], select: [72], epoll: [22, 441] },
};

/** Threads of one process, and descriptors of one wait, that are looked at. */
const MAX_THREADS = 512, MAX_FDS = 4096;
const POLLIN = 1;

/**
 * `reading`: at least one thread waits for input from the terminal; `wait` names those threads and
 * this very wait of theirs, so that another answer means that one of them has been woken since.
 * `call`: `read` if one of them reads, `poll` if all watch several descriptors.
 */
export type InputWait =
  | { readonly kind: "reading"; readonly wait: string; readonly call: "read" | "poll" }
  | { readonly kind: "busy" }
  | { readonly kind: "unseen" };

/** Where descriptor `fd` of a process leads; undefined when it has none or may not be looked at. */
export function descriptorLink(pid: number, fd: number): string | undefined {
  try {
    return Deno.readLinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return undefined;
  }
}

/** Numbers of a process's open descriptors; none when it may not be looked at. */
export function descriptors(pid: number): number[] {
  try {
    return Array.from(Deno.readDirSync(`/proc/${pid}/fd`), (entry) => Number(entry.name));
  } catch {
    return [];
  }
}

/** Path of the program that a process runs; undefined when it may not be looked at. */
export function executable(pid: number): string | undefined {
  try {
    return Deno.readLinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, "");
  } catch {
    return undefined;
  }
}

/** Size of the program's file, also when it has another name by now. */
export function executableSize(pid: number): number | undefined {
  try {
    return Deno.statSync(`/proc/${pid}/exe`).size;
  } catch {
    return undefined;
  }
}

/** Whether a library whose path matches is loaded in a process. */
export function hasLoaded(pid: number, library: RegExp): boolean {
  try {
    return library.test(Deno.readTextFileSync(`/proc/${pid}/maps`));
  } catch {
    return false;
  }
}

/** Whether a process waits for input from a terminal, known by where its descriptors lead. */
export function waitsForInput(pid: number, isTerminal: (link: string) => boolean): InputWait {
  const calls = CALLS[Deno.build.arch];
  if (calls === undefined) return { kind: "unseen" };
  const leads = (fd: number) => {
    const link = descriptorLink(pid, fd);
    return link !== undefined && isTerminal(link);
  };
  const waits: string[] = [];
  let reads = false;
  let seen = false;
  let denied = false;
  try {
    let count = 0;
    for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
      if (++count > MAX_THREADS) break;
      const task = `/proc/${pid}/task/${name}`;
      try {
        const [call = "", ...words] = Deno.readTextFileSync(`${task}/syscall`).trim().split(" ");
        seen = true;
        if (!/^\d+$/.test(call)) continue; // running, or blocked outside any call
        const args = words.map(Number);
        if (!isInputWait(pid, calls, Number(call), args, leads)) continue;
        const status = Deno.readTextFileSync(`${task}/status`);
        if (/^State:\s*[tT]/m.test(status)) continue; // stopped in its call
        reads ||= calls.read.includes(Number(call));
        waits.push(`${name}:${/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]}`);
      } catch (error) {
        denied ||= isDenied(error); // else the thread has just ended
      }
    }
  } catch {
    return { kind: "busy" }; // gone
  }
  if (waits.length > 0) {
    return { kind: "reading", wait: waits.join(" "), call: reads ? "read" : "poll" };
  }
  return { kind: denied && !seen ? "unseen" : "busy" };
}

function isDenied(error: unknown): boolean {
  return error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.NotCapable ||
    (error instanceof Error && /os error (?:1|13)\b/.test(error.message));
}

function isInputWait(
  pid: number,
  calls: Calls,
  call: number,
  [first = 0, second = 0]: readonly number[],
  leads: (fd: number) => boolean,
): boolean {
  if (calls.read.includes(call)) return leads(first);
  if (calls.poll.includes(call)) return polled(pid, first, second).some(leads);
  if (calls.select.includes(call)) return selected(pid, first, second).some(leads);
  return calls.epoll.includes(call) && epolled(pid, first).some(leads);
}

/** Descriptors of an array of `struct pollfd` that are waited on for input. */
function polled(pid: number, address: number, count: number): number[] {
  const view = memory(pid, address, Math.min(count, MAX_FDS) * 8);
  const fds: number[] = [];
  for (let at = 0; at < view.byteLength; at += 8) {
    if ((view.getInt16(at + 4, true) & POLLIN) !== 0) fds.push(view.getInt32(at, true));
  }
  return fds.filter((fd) => fd >= 0);
}

/** Descriptors in an `fd_set`. */
function selected(pid: number, count: number, address: number): number[] {
  if (address === 0) return [];
  const bits = Math.min(count, MAX_FDS);
  const view = memory(pid, address, Math.ceil(bits / 64) * 8);
  const fds: number[] = [];
  for (let fd = 0; fd < bits; fd++) {
    if ((view.getUint8(fd >> 3) & (1 << (fd & 7))) !== 0) fds.push(fd);
  }
  return fds;
}

function epolled(pid: number, epoll: number): number[] {
  const info = Deno.readTextFileSync(`/proc/${pid}/fdinfo/${epoll}`);
  return Array.from(info.matchAll(/^tfd:\s*(\d+)\s+events:\s*([0-9a-f]+)/gm))
    .filter(([, , events]) => (parseInt(events!.slice(-2), 16) & POLLIN) !== 0)
    .map(([, fd]) => Number(fd));
}

/** Bytes of a process's memory. User addresses stay below 2^53. */
function memory(pid: number, address: number, length: number): DataView {
  const bytes = new Uint8Array(length);
  if (length === 0) return new DataView(bytes.buffer);
  using file = Deno.openSync(`/proc/${pid}/mem`);
  file.seekSync(address, Deno.SeekMode.Start);
  for (let done = 0; done < length;) {
    const n = file.readSync(bytes.subarray(done));
    if (n === null || n === 0) break;
    done += n;
  }
  return new DataView(bytes.buffer);
}
