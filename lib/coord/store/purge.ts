/**
 * What the engine may forget (K-22): text and receipts that are old and published. Triggers and
 * leases stay as names and states: by them nobody is woken twice when the hub tells of old things.
 */
import { purgeFile, type PurgeOptions } from "../../sqlite/purge_file.ts";
import { MIGRATIONS } from "./migrations.ts";

const OLD: Readonly<Record<string, { readonly where: string; readonly remove: string }>> = {
  prompts: {
    where: "leases WHERE held = 0 AND prompt <> '' AND acquired_at < ?",
    remove: "UPDATE leases SET prompt = '' WHERE held = 0 AND prompt <> '' AND acquired_at < ?",
  },
  // The last one of a source is what its next worker goes on from (K-11).
  checkpoints: {
    where: `checkpoints WHERE published_at IS NOT NULL AND created_at < ? AND seq NOT IN
      (SELECT max(seq) FROM checkpoints GROUP BY source, source_id, repo)`,
    remove: `DELETE FROM checkpoints WHERE published_at IS NOT NULL AND created_at < ?
      AND seq NOT IN (SELECT max(seq) FROM checkpoints GROUP BY source, source_id, repo)`,
  },
  receipts: {
    where: "receipts WHERE published_at < ?",
    remove: "DELETE FROM receipts WHERE published_at < ?",
  },
};

/**
 * Counts, and with `execute` removes, what is older than `before` (epoch ms). The caller keeps every
 * engine away. Throws store errors.
 */
export function purgeEngine(path: string, options: PurgeOptions): Record<string, number> {
  const { before, execute } = options;
  return purgeFile(path, MIGRATIONS.length, options, (db) => {
    const counts: Record<string, number> = {};
    for (const [what, { where, remove }] of Object.entries(OLD)) {
      counts[what] = Number(db.prepare(`SELECT count(*) AS n FROM ${where}`).get(before)!.n);
      if (execute) db.prepare(remove).run(before);
    }
    return counts;
  });
}
