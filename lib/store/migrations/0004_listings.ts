/** Schema 4: listing or counting few messages of many reads those few alone. */
import type { Migration } from "../../sqlite/migrator.ts";

export const listings: Migration = {
  version: 4,
  name: "listings",
  touchesMessages: true,
  statements: [
    // As of those that failed or were acknowledged; without them whoever looked at what waits, with a
    // long history behind it, held up the service for as long as reading all of that took.
    `CREATE INDEX messages_pending ON messages (seq) WHERE state = 'pending'`,
    `CREATE INDEX messages_awaiting ON messages (seq) WHERE state = 'awaiting_ack'`,
    // Withdrawn ones are counted apart from those whose delivery failed.
    `CREATE INDEX messages_cancelled ON messages (seq)
WHERE state = 'failed' AND last_failure_reason = 'cancelled'`,
  ],
};
