/** The columns of a message record, and rows as records. */
import type { MessageRecord } from "../model/records.ts";

/** For `SELECT … FROM messages m`; names become those of {@link MessageRecord}. */
export const MESSAGE_COLUMNS = `m.seq, m.message_id AS messageId, m.client_id AS clientId,
  m.idempotency_key AS idempotencyKey, m.request_digest AS requestDigest,
  m.correlation_id AS correlationId, m.sender_repo AS senderRepo, m.target_repo AS targetRepo,
  m.provenance, m.endpoint AS endpointRef,
  (SELECT e.endpoint_id FROM endpoints e WHERE e.ref = m.endpoint) AS endpointId,
  m.source_endpoint AS sourceRef, m.last_endpoint AS lastRef, m.state,
  m.attempt_count AS attemptCount, m.max_attempts AS maxAttempts, m.ack_mode AS ackMode,
  m.created_at AS createdAt, m.updated_at AS updatedAt, m.injected_at AS injectedAt,
  m.acknowledged_at AS acknowledgedAt, m.next_attempt_at AS nextAttemptAt,
  m.eligible_at AS eligibleAt, m.lease_token AS leaseToken, m.lease_expires_at AS leaseExpiresAt,
  m.lease_endpoint AS leaseRef, m.lease_holder AS leaseHolder,
  m.ack_deadline_at AS ackDeadlineAt, m.last_failure_reason AS lastFailureReason, m.metadata,
  m.body, m.replay_batch AS replayBatch, m.replay_of AS replayOf, m.held`;

/** STRICT tables and CHECKs vouch for the types. */
export function asMessage(row: unknown): MessageRecord | undefined {
  return row as MessageRecord | undefined;
}

export function asMessages(rows: readonly unknown[]): MessageRecord[] {
  return rows as MessageRecord[];
}
