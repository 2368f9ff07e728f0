/** Whether a database is sound, how much it holds, and the word about one that has grown large (Q-07, K-22). */
import type { Database } from "./open.ts";

/** Decimal megabytes, as the text says MB. */
const MB = 1_000_000;
const THRESHOLD_MB = 100;

/** Pages in use: what a purge has freed counts no more, even where the file keeps its length. */
export function usedBytes(db: Database): number {
  const row = db.prepare(
    `SELECT (page_count - freelist_count) * page_size AS bytes
      FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`,
  ).get();
  return Number(row?.bytes ?? 0);
}

/** What SQLite finds wrong with the file; undefined when nothing is. */
export function damageOf(db: Database): string | undefined {
  const found = String(db.prepare("PRAGMA quick_check(1)").get()!.quick_check);
  return found === "ok" ? undefined : found;
}

/** Undefined up to 100 MB. Nothing is ever deleted by itself. */
export function sizeAdvisory(
  what: string,
  command: string,
  bytes: number,
): string | undefined {
  if (bytes <= THRESHOLD_MB * MB) return undefined;
  return `Size of ${what} is ${Math.round(bytes / MB)} MB, exceeding ${THRESHOLD_MB}MB. ` +
    `Consider using '${command}'.`;
}
