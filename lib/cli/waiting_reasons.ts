/** Why messages wait: not in the database, since the windows tell it to the service. */
import type { HistoryFilters } from "../model/history.ts";
import type { CliContext } from "./context.ts";
import { ask } from "./verbs/service.ts";

const PAGE = 500;
/** Messages are shown without their reasons rather than late. */
const REASONS_MS = 2000;

/** Reasons by message id; empty when the service does not run, of a very long queue only the latest. */
export async function waitingReasons(
  context: CliContext,
  filters: HistoryFilters,
): Promise<Map<string, string>> {
  const reasons = new Map<string, string>();
  let cursor: string | undefined;
  for (let pages = 0; pages < 4; pages++) {
    const page = await ask(
      context,
      "history",
      { ...filters, state: "pending", limit: PAGE, cursor },
      { timeoutMs: REASONS_MS },
    ).catch(() => undefined);
    for (const { message_id, waiting_reason } of page?.messages ?? []) {
      if (waiting_reason !== null) reasons.set(message_id, waiting_reason);
    }
    if (page === undefined || page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  return reasons;
}
