/** Records in the form that crosses the socket and that `--json` prints. */
import { rfc3339 } from "../base/clock.ts";
import type { AttemptRecord, MessageRecord } from "./records.ts";

function time(ms: number | null): string | null {
  return ms === null ? null : rfc3339(ms);
}

/** The `message` object of the protocol. */
export function messageView(record: MessageRecord, waitingReason: string | null = null) {
  return {
    message_id: record.messageId,
    client_id: record.clientId,
    idempotency_key: record.idempotencyKey,
    correlation_id: record.correlationId,
    sender_repo: record.senderRepo,
    target_repo: record.targetRepo,
    endpoint_id: record.endpointId,
    provenance: record.provenance,
    metadata: JSON.parse(record.metadata) as Record<string, unknown>,
    body: record.body,
    state: record.state,
    attempt_count: record.attemptCount,
    max_attempts: record.maxAttempts,
    created_at: rfc3339(record.createdAt),
    updated_at: rfc3339(record.updatedAt),
    next_attempt_at: time(record.nextAttemptAt),
    lease_expires_at: time(record.leaseExpiresAt),
    ack_deadline_at: time(record.ackDeadlineAt),
    injected_at: time(record.injectedAt),
    acknowledged_at: time(record.acknowledgedAt),
    last_failure_reason: record.lastFailureReason,
    waiting_reason: record.held === 1 && record.state === "pending"
      ? "held: not allowed"
      : waitingReason,
    replay: record.replayBatch === null
      ? null
      : { batch: record.replayBatch, original_message_id: record.replayOf },
  };
}
export type MessageView = ReturnType<typeof messageView>;

/** The `attempt` object of the protocol. */
export function attemptView(record: AttemptRecord) {
  return {
    attempt: record.attempt,
    endpoint_id: record.endpointId,
    started_at: rfc3339(record.startedAt),
    ended_at: time(record.endedAt),
    outcome: record.outcome as string | null,
    reason: record.reason,
  };
}
export type AttemptView = ReturnType<typeof attemptView>;
