/** SQLite's failures in our vocabulary: what failed, on which file, and the way out. */
import { errorText, TamqError } from "../base/errors.ts";

// Primary result codes of SQLite (the low byte of `errcode`).
const BUSY = 5, LOCKED = 6, READONLY = 8, IOERR = 10, CORRUPT = 11, FULL = 13, CANTOPEN = 14;
const NOTADB = 26;

/** The primary result code, or undefined where the runtime gives none (opening, `exec`). */
export function resultCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}

/** Another connection holds the write lock; nothing was done and the same work may run again. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED ||
    (code === undefined && /locked/.test(errorText(error)));
}

/** `error` as a TamqError that names `path`; errors that are not SQLite's own pass unchanged. */
export function storeError(error: unknown, path: string): unknown {
  if (error instanceof TamqError) return error;
  const code = resultCode(error);
  const text = errorText(error);
  const fail = (
    failure: ConstructorParameters<typeof TamqError>[0],
    reason: string,
    what: string,
    hint: string,
  ) => new TamqError(failure, reason, `${path}: ${what}`, { hint, cause: error });

  if (isBusy(error)) {
    return fail(
      "UNAVAILABLE",
      "store_busy",
      "another process is writing to the database",
      "try again; if it lasts, look for a program that holds the file open",
    );
  }
  if (code === FULL || /disk is full/.test(text)) {
    return fail(
      "RESOURCE_EXHAUSTED",
      "store_full",
      "the disk is full; nothing was changed",
      "free some space (see tamq purge) and send again; the service recovers by itself",
    );
  }
  if (code === READONLY || /readonly database/.test(text)) {
    return fail(
      "UNAVAILABLE",
      "store_read_only",
      "the database cannot be written",
      "make the file and its directory writable for your user, or set TAMQ_STATE_DIR",
    );
  }
  // By the text only where the runtime gives no code: "malformed JSON" is no malformed file, and
  // the way out below would throw a good queue away.
  const damaged = /database disk image is malformed|not a database/;
  if (code === CORRUPT || code === NOTADB || (code === undefined && damaged.test(text))) {
    return fail(
      "FAILED_PRECONDITION",
      "store_corrupt",
      "not a usable SQLite database",
      "move the file away and restore a backup that lies beside it, or start with an empty one",
    );
  }
  if (code === IOERR || code === CANTOPEN || /unable to open|disk I\/O/.test(text)) {
    return fail(
      "UNAVAILABLE",
      "store_unreadable",
      `cannot be read or written (${text.split("\n")[0]})`,
      "check that the path is a file of yours and that its disk works, or set TAMQ_STATE_DIR",
    );
  }
  return error;
}
