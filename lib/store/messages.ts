/** Messages: admission, claims, transitions, deadlines. Statements are prepared once. */
import { TamqError } from "../base/errors.ts";
import { type MessageState, STATES } from "../model/message.ts";
import type {
  HistoryPage,
  HistoryQuery,
  MessageChange,
  MessageCounts,
  MessageRecord,
  MessageStore,
  NewMessage,
  Target,
} from "../model/records.ts";
import type { Database } from "../sqlite/open.ts";
import { asMessage, asMessages, MESSAGE_COLUMNS } from "./columns.ts";
import { selectHistory } from "./history.ts";

const SELECT = `SELECT ${MESSAGE_COLUMNS} FROM messages m`;

// Waiting messages of one repository that are bound to one endpoint, or to none.
const WAITING = `m.target_repo = ?1 AND m.state = 'pending' AND m.held = 0
  AND m.lease_token IS NULL`;
const BOUND = `${WAITING} AND m.endpoint = ?2`;
// Unbound ones belong to the endpoint of their last attempt if it lives, else to the sender's own;
// with a single live endpoint they are its own (T-18). ?3 is the JSON array of live endpoints.
const UNBOUND = `${WAITING} AND m.endpoint IS NULL AND (json_array_length(?3) = 1
  OR m.last_endpoint = ?2
  OR (m.source_endpoint = ?2 AND (m.last_endpoint IS NULL
    OR m.last_endpoint NOT IN (SELECT value FROM json_each(?3)))))`;

/** Messages that one page looks at; about 10 ms. Others go on in between. */
const LOOKED_AT = 10_000;

export class Messages implements MessageStore {
  readonly #db: Database;
  readonly #insert;
  readonly #update;
  readonly #byId;
  readonly #byKey;
  readonly #byLease;
  readonly #nextBound;
  readonly #nextUnbound;
  readonly #waiting;
  readonly #oldestEligible;
  readonly #leases;
  readonly #leasesAt;
  readonly #expired;
  readonly #overdue;
  readonly #deadline;
  readonly #counts;
  readonly #cancelled;
  readonly #leaseCount;

  constructor(db: Database) {
    this.#db = db;
    this.#insert = db.prepare(`INSERT INTO messages (message_id, client_id, idempotency_key,
      request_digest, correlation_id, sender_repo, target_repo, provenance, endpoint,
      source_endpoint, state, attempt_count, max_attempts, ack_mode, created_at, updated_at,
      eligible_at, metadata, body, replay_batch, replay_of, held)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#update = db.prepare(`UPDATE messages SET endpoint = ?, last_endpoint = ?, state = ?,
      attempt_count = ?, max_attempts = ?, ack_mode = ?, updated_at = ?, injected_at = ?,
      acknowledged_at = ?, next_attempt_at = ?, eligible_at = ?, lease_token = ?,
      lease_expires_at = ?, lease_endpoint = ?, lease_holder = ?, ack_deadline_at = ?,
      last_failure_reason = ?
      WHERE seq = ? AND state = ? AND lease_token IS ?`);
    this.#byId = db.prepare(`${SELECT} WHERE m.message_id = ?`);
    this.#byKey = db.prepare(`${SELECT} WHERE m.client_id = ? AND m.idempotency_key = ?`);
    this.#byLease = db.prepare(`${SELECT} WHERE m.lease_token = ?`);
    const claim = (which: string, now: string) =>
      db.prepare(`${SELECT} INDEXED BY messages_claim
        WHERE ${which} AND (m.next_attempt_at IS NULL OR m.next_attempt_at <= ${now})
        ORDER BY m.seq LIMIT 1`);
    this.#nextBound = claim(BOUND, "?3");
    this.#nextUnbound = claim(UNBOUND, "?4");
    this.#waiting = db.prepare(
      `${SELECT} WHERE ((${BOUND}) OR (${UNBOUND})) AND m.eligible_at <= ?4
      ORDER BY m.seq LIMIT ?5`,
    );
    this.#oldestEligible = db.prepare(
      `SELECT min(m.eligible_at) AS at FROM messages m WHERE (${BOUND}) OR (${UNBOUND})`,
    );
    const leased = "m.lease_token IS NOT NULL";
    this.#leases = db.prepare(`${SELECT} WHERE ${leased}`);
    this.#leasesAt = db.prepare(
      `${SELECT} WHERE ${leased} AND m.lease_endpoint = ? AND m.target_repo = ?`,
    );
    this.#expired = db.prepare(
      `${SELECT} WHERE m.lease_expires_at <= ? ORDER BY m.lease_expires_at LIMIT ?`,
    );
    this.#overdue = db.prepare(
      `${SELECT} WHERE m.ack_deadline_at <= ? ORDER BY m.ack_deadline_at LIMIT ?`,
    );
    // Due retries that nobody can take stay due: only later ones need a timer.
    this.#deadline = db.prepare(`SELECT min(at) AS at FROM (
      SELECT min(lease_expires_at) AS at FROM messages WHERE lease_expires_at IS NOT NULL
      UNION ALL
      SELECT min(ack_deadline_at) FROM messages WHERE ack_deadline_at IS NOT NULL
      UNION ALL
      SELECT min(next_attempt_at) FROM messages WHERE next_attempt_at > ?)`);
    this.#counts = db.prepare("SELECT state, count FROM message_counts");
    this.#cancelled = db.prepare(`SELECT count(*) AS count FROM messages
      WHERE state = 'failed' AND last_failure_reason = 'cancelled'`);
    this.#leaseCount = db.prepare(
      "SELECT count(*) AS count FROM messages WHERE lease_token IS NOT NULL",
    );
  }

  insert(message: NewMessage): MessageRecord {
    this.#insert.run(
      message.messageId,
      message.clientId,
      message.idempotencyKey,
      message.requestDigest,
      message.correlationId,
      message.senderRepo,
      message.targetRepo,
      message.provenance,
      message.endpointRef,
      message.sourceRef,
      message.maxAttempts,
      message.ackMode,
      message.createdAt,
      message.createdAt,
      message.eligibleAt,
      message.metadata,
      message.body,
      message.replayBatch ?? null,
      message.replayOf ?? null,
      message.held ?? 0,
    );
    return this.byId(message.messageId)!;
  }

  byId(messageId: string): MessageRecord | undefined {
    return asMessage(this.#byId.get(messageId));
  }

  byKey(clientId: string, idempotencyKey: string): MessageRecord | undefined {
    return asMessage(this.#byKey.get(clientId, idempotencyKey));
  }

  byLease(token: string): MessageRecord | undefined {
    return asMessage(this.#byLease.get(token));
  }

  update(before: MessageRecord, change: MessageChange): MessageRecord {
    const now = { ...before, ...change };
    const { changes } = this.#update.run(
      now.endpointRef,
      now.lastRef,
      now.state,
      now.attemptCount,
      now.maxAttempts,
      now.ackMode,
      now.updatedAt,
      now.injectedAt,
      now.acknowledgedAt,
      now.nextAttemptAt,
      now.eligibleAt,
      now.leaseToken,
      now.leaseExpiresAt,
      now.leaseRef,
      now.leaseHolder,
      now.ackDeadlineAt,
      now.lastFailureReason,
      before.seq,
      before.state,
      before.leaseToken,
    );
    if (changes !== 1) {
      throw new TamqError("ABORTED", "lease_lost", `${before.messageId} has changed meanwhile`);
    }
    return change.endpointRef === undefined ? now : this.byId(before.messageId)!;
  }

  next(target: Target, now: number): MessageRecord | undefined {
    const bound = asMessage(this.#nextBound.get(target.repo, target.ref, now));
    const unbound = asMessage(
      this.#nextUnbound.get(target.repo, target.ref, JSON.stringify(target.liveRefs), now),
    );
    if (bound === undefined || unbound === undefined) return bound ?? unbound;
    return bound.seq < unbound.seq ? bound : unbound;
  }

  waiting(target: Target, eligibleBefore: number, limit: number): MessageRecord[] {
    const live = JSON.stringify(target.liveRefs);
    return asMessages(this.#waiting.all(target.repo, target.ref, live, eligibleBefore, limit));
  }

  oldestEligible(target: Target): number | undefined {
    const live = JSON.stringify(target.liveRefs);
    return optional(this.#oldestEligible.get(target.repo, target.ref, live)?.at);
  }

  leases(ref?: number, repo?: string): MessageRecord[] {
    if (ref === undefined || repo === undefined) return asMessages(this.#leases.all());
    return asMessages(this.#leasesAt.all(ref, repo));
  }

  expiredLeases(now: number, limit: number): MessageRecord[] {
    return asMessages(this.#expired.all(now, limit));
  }

  overdueAcks(now: number, limit: number): MessageRecord[] {
    return asMessages(this.#overdue.all(now, limit));
  }

  nextDeadline(now: number): number | undefined {
    return optional(this.#deadline.get(now)?.at);
  }

  clampDeadlines(bounds: Parameters<MessageStore["clampDeadlines"]>[0]): void {
    // Run once a start: not worth keeping prepared.
    this.#db.prepare(`UPDATE messages SET lease_expires_at = max(?, min(lease_expires_at, ?))
      WHERE lease_expires_at IS NOT NULL`).run(bounds.leaseFrom, bounds.leaseTo);
    this.#db.prepare(`UPDATE messages SET next_attempt_at = ?1, eligible_at = ?1
      WHERE next_attempt_at > ?1`).run(bounds.retryTo);
    this.#db.prepare(`UPDATE messages SET eligible_at = ?1
      WHERE state = 'pending' AND next_attempt_at IS NULL AND eligible_at > ?1`).run(bounds.now);
    this.#db.prepare("UPDATE messages SET ack_deadline_at = ?1 WHERE ack_deadline_at > ?1")
      .run(bounds.ackTo);
  }

  counts(): MessageCounts {
    const states = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<
      MessageState,
      number
    >;
    for (const row of this.#counts.all()) states[row.state as MessageState] = Number(row.count);
    return {
      states,
      cancelled: Number(this.#cancelled.get()?.count ?? 0),
      leases: Number(this.#leaseCount.get()?.count ?? 0),
    };
  }

  history(query: HistoryQuery): HistoryPage {
    return selectHistory(this.#db, query, LOOKED_AT);
  }
}

function optional(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
