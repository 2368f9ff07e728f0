/**
 * Lets a process become another program while it keeps its pid, its children and its open terminals
 * (B-17). Three system calls; the rest of the exchange is in `handover.ts`.
 */
import { TamqError } from "./base/errors.ts";

const libc = Deno.dlopen("libc.so.6", {
  __errno_location: { parameters: [], result: "pointer" },
  strerror: { parameters: ["i32"], result: "pointer" },
  execve: { parameters: ["buffer", "buffer", "buffer"], result: "i32" },
  fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
  memfd_create: { parameters: ["buffer", "u32"], result: "i32" },
}).symbols;

// This thread's errno, read as memory: asking for it by another call could overwrite it.
const errnoCell = new Int32Array(
  Deno.UnsafePointerView.getArrayBuffer(libc.__errno_location()!, 4),
);
const F_SETFD = 2, FD_CLOEXEC = 1;

const encoder = new TextEncoder();
const cString = (text: string) => encoder.encode(text + "\0");

function failure(what: string): TamqError {
  const errno = errnoCell[0]!;
  const words = libc.strerror(errno);
  const text = words === null ? `error ${errno}` : Deno.UnsafePointerView.getCString(words);
  return new TamqError("UNAVAILABLE", "exec_failed", `${what}: ${text}`);
}

/** Whether a descriptor stays open in the program that this process becomes. */
export function keepOpen(fd: number, keep: boolean): void {
  if (libc.fcntl(fd, F_SETFD, keep ? 0 : FD_CLOEXEC) < 0) throw failure(`descriptor ${fd}`);
}

/** Memory behind a descriptor, which no other process can name; open in the program to come. */
export function openMemory(): number {
  const fd = libc.memfd_create(cString("tamq"), 0);
  if (fd < 0) throw failure("memfd_create");
  return fd;
}

/**
 * This process becomes `argv`, a program by its full path; returns only by throwing. Everything not
 * marked by {@link keepOpen} is closed, locks on files are released, threads end.
 */
export function becomeProgram(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): never {
  const words = argv.map(cString);
  const variables = Object.entries(env).map(([name, value]) => cString(`${name}=${value}`));
  const argvPointers = pointers(words), envPointers = pointers(variables);
  libc.execve(words[0]!, argvPointers, envPointers);
  throw failure(`cannot run ${argv[0]}`);
}

function pointers(items: readonly Uint8Array<ArrayBuffer>[]): BigUint64Array<ArrayBuffer> {
  const array = new BigUint64Array(items.length + 1);
  for (const [i, item] of items.entries()) {
    array[i] = Deno.UnsafePointer.value(Deno.UnsafePointer.of(item)) as bigint;
  }
  return array;
}
