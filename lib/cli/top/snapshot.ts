/** What `tamq top` shows: one reading of the service, asked for only when something has happened. */
import { call } from "../../client.ts";
import type { Clock } from "../../base/clock.ts";
import type { WireMessage, WireStatus } from "../../protocol/schema.ts";

export interface Snapshot {
  readonly status: WireStatus;
  /** Newest first. */
  readonly latest: readonly WireMessage[];
  /** Waiting, being written, or unacknowledged; newest first. */
  readonly open: readonly WireMessage[];
  /** There are more of them than were read. */
  readonly moreOpen: boolean;
  /** Failed and not withdrawn; newest first. */
  readonly failed: readonly WireMessage[];
}

/** As many as one page holds at most. */
const OPEN = 256;
const LATEST = 100;
/** Withdrawn messages are among them, and left out. */
const FAILED = 200;

export async function readSnapshot(
  socket: string,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Snapshot> {
  const history = (filter: { state?: WireMessage["state"]; limit: number }) =>
    call(socket, "history", filter, options);
  const [status, latest, pending, unacknowledged, failed] = await Promise.all([
    call(socket, "status", {}, options),
    history({ limit: LATEST }),
    history({ state: "pending", limit: OPEN }),
    history({ state: "awaiting_ack", limit: OPEN }),
    history({ state: "failed", limit: FAILED }),
  ]);
  return {
    status,
    latest: latest.messages,
    open: [...pending.messages, ...unacknowledged.messages],
    moreOpen: pending.next_cursor !== null || unacknowledged.next_cursor !== null,
    failed: failed.messages.filter((message) => message.last_failure_reason !== "cancelled"),
  };
}
