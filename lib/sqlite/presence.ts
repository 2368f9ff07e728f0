/**
 * Whether the database that was opened still stands at its path. After its file was removed or
 * replaced SQLite goes on without a word, in a file that nobody will find again: everything that it
 * confirms from then on is lost with the process.
 */
import { TamqError } from "../base/errors.ts";

export class Presence {
  readonly #path: string;
  readonly #opened: string;

  /** Right after the database at `path` was opened. */
  constructor(path: string) {
    this.#path = path;
    this.#opened = identity(path);
  }

  /** Throws `store_lost`. Costs a look at the directory, a few microseconds. */
  check(): void {
    const now = identity(this.#path);
    if (now === this.#opened || now === UNKNOWN || this.#opened === UNKNOWN) return;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "store_lost",
      `${this.#path}: the file was removed or replaced while the service uses it; nothing was changed`,
      { hint: "stop the service, put the file or a backup in its place, and start it again" },
    );
  }
}

/** Of a file that cannot be looked at just now: it may well be there. */
const UNKNOWN = "unknown";

function identity(path: string): string {
  try {
    const { dev, ino } = Deno.statSync(path);
    return `${dev} ${ino}`;
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? "none" : UNKNOWN;
  }
}
