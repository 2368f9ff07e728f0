/** Opaque places in lists and in the change feed. */
import { TamqError } from "../../base/errors.ts";

/** A place of one list of one database; another database's place is recognised as such. */
export function writeCursor(list: string, hubId: string, seq: number): string {
  return btoa(`${list} ${hubId} ${seq}`).replaceAll("+", "-").replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Throws `cursor_invalid`, or `cursor_expired` when it is of another database. */
export function readCursor(list: string, hubId: string, cursor: string): number {
  let text = "";
  try {
    text = atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    // falls through: it does not match
  }
  const match = /^(\w+) (\w+) (\d{1,15})$/.exec(text);
  if (match === null || match[1] !== list) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "cursor_invalid",
      "the cursor is not one of this list",
      {
        hint: "use the cursor of an answer to the same request",
      },
    );
  }
  if (match[2] !== hubId) throw expired();
  return Number(match[3]);
}

export function expired(): TamqError {
  return new TamqError(
    "FAILED_PRECONDITION",
    "cursor_expired",
    "the cursor belongs to another database than this hub's",
    { hint: "begin again without a cursor; what was seen before is recognised by its revision" },
  );
}
