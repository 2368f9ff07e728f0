/** What `tamq doctor` wants to know of a database; reads alone. */
import { schemaVersion } from "../sqlite/migrator.ts";
import type { Database } from "../sqlite/open.ts";

export interface CheckUp {
  /** What is broken, as SQLite says it; undefined when nothing is. */
  readonly damage: string | undefined;
  readonly schema: number;
  /** Wall time of the latest receipt; 0 when there is none. */
  readonly lastAt: number;
}

export function checkUp(db: Database): CheckUp {
  // Its full check reads every index as well: minutes for a long history, for little more.
  const rows = db.prepare("PRAGMA quick_check(5)").all().map((row) => String(row.quick_check));
  if (rows.join() !== "ok") return { damage: rows[0], schema: 0, lastAt: 0 };
  const schema = schemaVersion(db);
  const row = schema === 0 ? undefined : db.prepare("SELECT max(at) AS at FROM receipts").get();
  return { damage: undefined, schema, lastAt: Number(row?.at ?? 0) };
}
