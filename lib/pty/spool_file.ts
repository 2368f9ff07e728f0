/**
 * The file behind a spool (B-13): JSON lines, appended only, held under an exclusive lock by its
 * live owner. A lock that is free means that the owner is dead.
 */
import { TamqError } from "../base/errors.ts";
import { probe } from "../base/probe.ts";
import type { Place } from "../model/ports.ts";
import type { Provenance } from "../model/message.ts";
import { closeFd } from "../pty_ffi.ts";

export interface SpoolHeader {
  readonly repo: string;
  readonly path: string;
  /** Random for each broker process; the service knows its messages by `broker-<instance>`. */
  readonly instance: string;
  /** Where its window was: who adopts the spool decides by it who may be written to (B-18). */
  readonly place?: Place;
}

/** One message as it was captured; `sequence` is its idempotency key. */
export interface SpoolRecord {
  readonly sequence: number;
  readonly target: string;
  readonly body: string;
  readonly provenance: Provenance;
}

/** What a spool holds: its owner and the messages not yet handed over, in order. */
export interface SpoolContent {
  readonly header: SpoolHeader;
  readonly pending: SpoolRecord[];
}

const encoder = new TextEncoder();
const VERSION = 1;
/** A spool that grew beyond this was not written by us. */
const MAX_FILE = 256 << 20;

export class SpoolFile {
  #good: number;
  #empty = 0;
  private constructor(
    readonly path: string,
    readonly file: Deno.FsFile,
    good: number,
    /** Descriptor that holds the lock, where it came from the program before (B-17). */
    readonly guard?: number,
  ) {
    this.#good = good;
  }

  /** Goes on with our own file, whose lock `guard` has never let go; its header ends at `empty`. */
  static resume(path: string, guard: number, empty: number): SpoolFile {
    const file = Deno.openSync(path, { read: true, write: true, append: true });
    const spool = new SpoolFile(path, file, file.statSync().size, guard);
    spool.#empty = empty;
    return spool;
  }

  /** Where the header ends. */
  get empty(): number {
    return this.#empty;
  }

  /** The descriptor that holds the lock; undefined when it cannot be found. */
  get lock(): number | undefined {
    if (this.guard !== undefined) return this.guard;
    const path = Deno.realPathSync(this.path);
    for (const { name } of Deno.readDirSync("/proc/self/fd")) {
      try {
        if (Deno.readLinkSync(`/proc/self/fd/${name}`) === path) return Number(name);
      } catch {
        // the descriptor that reads the directory
      }
    }
    return undefined;
  }

  /** Our own file, locked, its header written; directory 0700, file 0600. */
  static create(dir: string, header: SpoolHeader): SpoolFile {
    Deno.mkdirSync(dir, { recursive: true, mode: 0o700 });
    const path = `${dir}/${header.instance}.spool`;
    // Not createNew: an earlier try may have failed between the file and its header (disk full).
    const file = Deno.openSync(path, {
      read: true,
      write: true,
      append: true,
      create: true,
      mode: 0o600,
    });
    try {
      file.lockSync(true); // the service may hold it for an instant, to see that it is empty
      file.truncateSync(0);
      const spool = new SpoolFile(path, file, 0);
      spool.append({ type: "header", version: VERSION, ...header });
      spool.#empty = spool.#good;
      syncDirectory(dir);
      return spool;
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** An existing file whose lock is free, taken over; undefined while its owner lives. */
  static adopt(path: string): { spool: SpoolFile; content: SpoolContent } | undefined {
    let file: Deno.FsFile;
    try {
      file = Deno.openSync(path, { read: true, write: true, append: true });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined; // its owner just removed it
      throw error;
    }
    try {
      if (!file.tryLockSync(true)) {
        file.close();
        return undefined;
      }
      const { size } = file.statSync();
      if (size > MAX_FILE) throw damaged(path, "it is too large");
      if (size === 0) {
        file.close(); // just created, or its owner died before the first word: nothing is in it
        return undefined;
      }
      const { content, good } = parseSpool(readAll(file), path);
      file.truncateSync(good); // a torn last record would otherwise run into the next one
      return { spool: new SpoolFile(path, file, good), content };
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Appends one line. After a failure (disk full) the file ends where it did before. */
  append(record: Record<string, unknown>): void {
    const bytes = encoder.encode(JSON.stringify(record) + "\n");
    try {
      probe("spool.append", record);
      for (let done = 0; done < bytes.length;) done += this.file.writeSync(bytes.subarray(done));
      this.#good += bytes.length;
    } catch (error) {
      try {
        this.file.truncateSync(this.#good);
      } catch {
        // The half line stays; a reader stops there, and the next append begins behind it.
      }
      throw error;
    }
  }

  /** Forgets all messages, when none waits: their bodies need not lie here any longer (C-05). */
  clear(): void {
    this.file.truncateSync(this.#empty);
    this.#good = this.#empty;
    probe("spool.cleared");
  }

  async sync(): Promise<void> {
    await this.file.syncData();
    probe("spool.synced");
  }
  remove(): void {
    Deno.removeSync(this.path);
  }
  close(): void {
    this.file.close(); // releases the lock
    if (this.guard !== undefined) closeFd(this.guard);
  }
}

/** The name of a new file survives a power cut only once its directory is synced. */
function syncDirectory(dir: string): void {
  const handle = Deno.openSync(dir, { read: true });
  try {
    handle.syncSync();
  } finally {
    handle.close();
  }
}

function readAll(file: Deno.FsFile): Uint8Array {
  file.seekSync(0, Deno.SeekMode.Start);
  const bytes = new Uint8Array(file.statSync().size);
  let length = 0;
  for (;;) {
    const n = file.readSync(bytes.subarray(length));
    if (n === null || n === 0) return bytes.subarray(0, length);
    length += n;
  }
}

/** Reads as far as the records are whole; `good` is the offset behind the last whole one. */
export function parseSpool(
  bytes: Uint8Array,
  path: string,
): { content: SpoolContent; good: number } {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let header: SpoolHeader | undefined;
  const pending = new Map<number, SpoolRecord>();
  let good = 0;
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(0x0a, start);
    if (end < 0) break; // torn by a crash in the middle of a write
    let line: Record<string, unknown> | undefined;
    try {
      line = JSON.parse(decoder.decode(bytes.subarray(start, end)));
    } catch {
      if (end === bytes.length - 1) break; // likewise, where the tail holds old bytes
      line = undefined; // a write that failed in the middle and was followed by others
    }
    start = end + 1;
    good = start;
    if (line === undefined) continue;
    if (line.type === "header") {
      if (line.version !== VERSION) throw damaged(path, `it has version ${line.version}`);
      header = line as unknown as SpoolHeader;
      const { repo, path: folder, instance, place } = header;
      header = { repo, path: folder, instance, ...(place === undefined ? {} : { place }) };
    } else if (line.type === "message") {
      const { sequence, target, body, provenance } = line as unknown as SpoolRecord;
      pending.set(sequence, { sequence, target, body, provenance });
    } else if (line.type === "advance") pending.delete(line.sequence as number);
  }
  if (header === undefined) throw damaged(path, "it has no header");
  return { content: { header, pending: [...pending.values()] }, good };
}

function damaged(path: string, why: string): TamqError {
  return new TamqError("FAILED_PRECONDITION", "spool_damaged", `cannot use ${path}: ${why}`, {
    hint: "look at the file; move it away to silence this",
  });
}
