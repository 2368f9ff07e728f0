/** How far back the history goes. */
import type { Database } from "../sqlite/open.ts";

/** When the oldest message was admitted, milliseconds since the epoch; undefined without messages. */
export function oldestMessageAt(db: Database): number | undefined {
  // By sequence, which is the primary key: no scan of a table that is large by assumption.
  const row = db.prepare("SELECT created_at AS at FROM messages ORDER BY seq LIMIT 1").get();
  return row === undefined ? undefined : Number(row.at);
}
