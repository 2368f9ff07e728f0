/**
 * What the hub may forget (K-22): receipts, checkpoints that are not their task's last, messages that
 * are dealt with, and keys of old requests. Tasks and workplans stay: they are the record of the
 * work, others depend on them, and a name given twice would be taken for the same work.
 */
import { rfc3339 } from "../../base/clock.ts";
import { purgeFile, type PurgeOptions } from "../../sqlite/purge_file.ts";
import { MIGRATIONS } from "./migrations.ts";

const OLD: Readonly<Record<string, { readonly from: string; readonly kind?: string; id: string }>> =
  {
    receipts: {
      from: "receipts WHERE json_extract(record, '$.recorded_at') < :iso",
      kind: "receipt",
      id: "receipt_id",
    },
    checkpoints: {
      from: `checkpoints WHERE json_extract(record, '$.recorded_at') < :iso AND seq NOT IN
      (SELECT max(seq) FROM checkpoints GROUP BY repo, coalesce(task_id, lease_id))`,
      kind: "checkpoint",
      id: "checkpoint_id",
    },
    messages: {
      from: "messages WHERE state = 'acknowledged' AND acknowledged_at < :at",
      kind: "message",
      id: "message_id",
    },
    keys: { from: "idempotency WHERE created_at < :at", id: "idempotency_key" },
  };

/**
 * Counts, and with `execute` removes, what is older than `before` (epoch ms). The caller keeps every
 * hub away. Throws store errors.
 */
export function purgeHub(path: string, options: PurgeOptions): Record<string, number> {
  const { before, execute } = options;
  return purgeFile(path, MIGRATIONS.length, options, (db) => {
    const counts: Record<string, number> = {};
    for (const [what, { from, kind, id }] of Object.entries(OLD)) {
      const value = from.includes(":iso") ? rfc3339(before) : before;
      const old = from.replace(/:iso|:at/, "?");
      counts[what] = Number(db.prepare(`SELECT count(*) AS n FROM ${old}`).get(value)!.n);
      if (!execute) continue;
      if (kind !== undefined) {
        db.prepare(
          `DELETE FROM changes WHERE kind = '${kind}' AND source_id IN (SELECT ${id} FROM ${old})`,
        ).run(value);
      }
      db.prepare(`DELETE FROM ${old}`).run(value);
    }
    return counts;
  });
}
