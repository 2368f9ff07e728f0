/** The word at start-up about a history that has grown large. */
import { rfc3339 } from "./base/clock.ts";
import type { Database } from "./sqlite/open.ts";
import { oldestMessageAt } from "./store/oldest.ts";
import { PurgeReader } from "./store/purge_reader.ts";

/** Decimal megabytes, as the text says MB. */
const MB = 1_000_000;
const THRESHOLD_MB = 100;

/**
 * Undefined up to 100 MB, by the measure of `tamq purge --max-size`: what a purge has freed counts no
 * more, even where the file keeps its length. Nothing is ever deleted by itself.
 */
export function historyAdvisory(
  db: Database,
  bytes = new PurgeReader(db).historyBytes(),
): string | undefined {
  if (bytes <= THRESHOLD_MB * MB) return undefined;
  const since = oldestMessageAt(db);
  const day = since === undefined
    ? ""
    : ` since ${rfc3339(since).slice(2, 10).replaceAll("-", "")}`;
  return `Size of history is ${Math.round(bytes / MB)} MB${day}, exceeding ${THRESHOLD_MB}MB. ` +
    "Consider using 'tamq purge'.";
}
