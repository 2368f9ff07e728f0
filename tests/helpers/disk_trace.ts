/**
 * What a process did to a database file, call by call, as a tracer saw it; and the file as it would
 * be had the process or the machine died at any of these calls. A process that is killed leaves
 * every write that it made. A machine that loses power keeps what was synced, and of the rest any
 * part: each sector written since may be there or not.
 */
import type { Seeded } from "./seeded.ts";

export type DiskEvent =
  | {
    readonly type: "write";
    readonly file: string;
    readonly at: number;
    readonly data: Uint8Array;
  }
  | { readonly type: "truncate"; readonly file: string; readonly size: number }
  | { readonly type: "remove"; readonly file: string }
  | { readonly type: "sync"; readonly file: string }
  /** A line that the process printed: what it has promised. */
  | { readonly type: "said"; readonly line: string };

const CALLS = "pwrite64,ftruncate,unlink,fsync,fdatasync,write";
const SECTOR = 512;

/** Put before a command: writes the trace of all that {@link readTrace} understands to `log`. */
export function traceInto(log: string): string[] {
  const quiet = ["-f", "-qq", "--seccomp-bpf", "-y", "-xx", "-s", "70000", "-o", log];
  return ["strace", ...quiet, "-e", `trace=${CALLS}`];
}

/** The events that concern `path` and the files SQLite keeps beside it, in their order. */
export function readTrace(text: string, path: string): DiskEvent[] {
  const events: DiskEvent[] = [];
  const decoder = new TextDecoder();
  for (const line of text.split("\n")) {
    // The database is used by one thread; calls of others may be cut in two and are not ours.
    const call = /^\d+ +(\w+)\((.*)\) += (\d+)$/.exec(line);
    if (call === null) continue;
    const [, name, args] = call;
    if (name === "unlink") {
      const file = decoder.decode(unhex(args!.slice(1, -1)));
      if (file.startsWith(path)) events.push({ type: "remove", file: file.slice(path.length) });
      continue;
    }
    const target = /^(\d+)<([^>]*)>(?:, )?(.*)$/.exec(args!);
    if (target === null) continue;
    const [, fd, hexName, rest] = target;
    if (name === "write") {
      if (fd !== "1") continue;
      const said = decoder.decode(unhex(/^"(.*)"/.exec(rest!)![1]!));
      for (const text of said.trimEnd().split("\n")) events.push({ type: "said", line: text });
      continue;
    }
    const whole = decoder.decode(unhex(hexName!));
    if (!whole.startsWith(path)) continue;
    const file = whole.slice(path.length);
    if (file === "-shm") continue; // rebuilt by whoever opens the database first
    if (name === "pwrite64") {
      const [, data, at] = /^"(.*)", \d+, (\d+)$/.exec(rest!)!;
      events.push({ type: "write", file, at: Number(at), data: unhex(data!) });
    } else if (name === "ftruncate") {
      events.push({ type: "truncate", file, size: Number(rest) });
    } else events.push({ type: "sync", file });
  }
  return events;
}

function unhex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length / 4); // \xHH each
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(text.slice(4 * i + 2, 4 * i + 4), 16);
  return bytes;
}

type Change = Extract<DiskEvent, { type: "write" | "truncate" }>;

interface File {
  /** As every reader of the living system sees it. */
  now: Bytes;
  /** As it was at its last sync. */
  synced: Bytes;
  /** What was done to it since. */
  since: Change[];
}

/** Goes through a trace; at any point tells what would be on the disk. */
export class Disk {
  readonly #files = new Map<string, File>();
  /** What the process had said up to here. */
  readonly said: string[] = [];

  apply(event: DiskEvent): void {
    if (event.type === "said") {
      this.said.push(event.line);
      return;
    }
    if (event.type === "remove") {
      this.#files.delete(event.file);
      return;
    }
    const file = this.#file(event.file);
    if (event.type === "sync") {
      file.synced = file.now.copy();
      file.since = [];
      return;
    }
    file.now.change(event);
    file.since.push(event);
  }

  /** The files after a kill here, by the ending of their names. */
  killed(): Map<string, Uint8Array> {
    return new Map([...this.#files].map(([name, { now }]) => [name, now.bytes]));
  }

  /** The files after a power cut here; what was not synced is there in part. */
  cut(random: Seeded): Map<string, Uint8Array> {
    const left = new Map<string, Uint8Array>();
    for (const [name, { synced, since }] of this.#files) {
      const file = synced.copy();
      // All lost, all kept, or sector by sector.
      const way = random.below(4);
      for (const change of since) {
        if (way === 0) continue;
        if (way === 1) file.change(change);
        else if (change.type === "truncate") {
          if (random.below(2) === 0) file.change(change);
        } else {
          for (let from = 0; from < change.data.length; from += SECTOR) {
            if (random.below(2) === 0) continue;
            const data = change.data.subarray(from, from + SECTOR);
            file.change({ ...change, at: change.at + from, data });
          }
        }
      }
      left.set(name, file.bytes);
    }
    return left;
  }

  #file(name: string): File {
    let file = this.#files.get(name);
    if (file === undefined) {
      file = { now: new Bytes(), synced: new Bytes(), since: [] };
      this.#files.set(name, file);
    }
    return file;
  }
}

/** A file's content that grows. */
class Bytes {
  #buffer = new Uint8Array(1 << 16);
  #size = 0;

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#size);
  }

  copy(): Bytes {
    const copy = new Bytes();
    copy.#buffer = this.#buffer.slice();
    copy.#size = this.#size;
    return copy;
  }

  change(change: Change): void {
    if (change.type === "truncate") {
      this.#reserve(change.size);
      this.#buffer.fill(0, Math.min(change.size, this.#size));
      this.#size = change.size;
      return;
    }
    const end = change.at + change.data.length;
    this.#reserve(end);
    this.#buffer.set(change.data, change.at);
    this.#size = Math.max(this.#size, end);
  }

  #reserve(size: number): void {
    if (size <= this.#buffer.length) return;
    const larger = new Uint8Array(2 * size);
    larger.set(this.#buffer);
    this.#buffer = larger;
  }
}
