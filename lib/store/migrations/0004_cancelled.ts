/** Schema 4: withdrawn messages can be counted apart from those whose delivery failed. */
import type { Migration } from "../../sqlite/migrator.ts";

export const cancelled: Migration = {
  version: 4,
  name: "cancelled",
  touchesMessages: true,
  statements: [
    // Only withdrawn messages are in it: to count them reads it alone.
    `CREATE INDEX messages_cancelled ON messages (seq)
WHERE state = 'failed' AND last_failure_reason = 'cancelled'`,
  ],
};
