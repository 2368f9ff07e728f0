/**
 * Whole lines of a log file and its older parts, across rotations. Several processes write: one that
 * has not noticed a rotation yet still writes to the part that it has open, so every part that is
 * there is read on, not the newest alone.
 */

/** As many older parts as {@link ../../base/log_file.ts} keeps. */
const PARTS = 5;
const CHUNK = 64 << 10;

interface Part {
  readonly file: Deno.FsFile;
  readonly decoder: TextDecoder;
  /** Bytes read. */
  offset: number;
  /** A line whose end is not written yet. */
  rest: string;
}

export class LogTail implements Disposable {
  readonly #path: string;
  readonly #since: number;
  /** By inode; as long as a file is open its number belongs to no other. */
  readonly #open = new Map<number, Part>();

  /** Parts that were last written before `since`, milliseconds of the epoch, are left out. */
  constructor(path: string, since = 0) {
    this.#path = path;
    this.#since = since;
  }

  /** One reader a part, oldest first, each giving the lines that came since the last call. */
  read(): Generator<string>[] {
    // From the newest: a rotation meanwhile moves files to where we still look.
    const present: number[] = [];
    for (let number = 0; number <= PARTS; number++) {
      const inode = this.#look(number === 0 ? this.#path : `${this.#path}.${number}`);
      if (inode !== undefined && !present.includes(inode)) present.push(inode);
    }
    const gone = [...this.#open.keys()].filter((inode) => !present.includes(inode));
    return [...gone, ...present.reverse()].map((inode) => {
      const part = this.#open.get(inode)!;
      return gone.includes(inode) ? this.#last(inode, part) : lines(part);
    });
  }

  *#last(inode: number, part: Part): Generator<string> {
    yield* lines(part);
    this.#open.delete(inode);
    part.file.close();
  }

  /** Opens what is new there; undefined when nothing is. */
  #look(path: string): number | undefined {
    let file: Deno.FsFile;
    try {
      file = Deno.openSync(path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    }
    const { ino, size, mtime } = file.statSync();
    if (ino === null || this.#open.has(ino)) {
      file.close();
      return ino ?? undefined;
    }
    const part = { file, decoder: new TextDecoder(), offset: 0, rest: "" };
    if ((mtime?.getTime() ?? Infinity) < this.#since) {
      file.seekSync(size, Deno.SeekMode.Start);
      part.offset = size;
    }
    this.#open.set(ino, part);
    return ino;
  }

  [Symbol.dispose](): void {
    for (const { file } of this.#open.values()) file.close();
    this.#open.clear();
  }
}

function* lines(part: Part): Generator<string> {
  const { file } = part;
  if (file.statSync().size < part.offset) { // somebody emptied it
    file.seekSync(0, Deno.SeekMode.Start);
    part.offset = 0;
    part.rest = "";
  }
  const bytes = new Uint8Array(CHUNK);
  for (;;) {
    const count = file.readSync(bytes);
    if (count === null) return;
    part.offset += count;
    const whole = (part.rest + part.decoder.decode(bytes.subarray(0, count), { stream: true }))
      .split("\n");
    part.rest = whole.pop()!;
    for (const line of whole) if (line !== "") yield line;
  }
}
