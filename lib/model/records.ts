/** Messages as the store keeps them, and the store as the queue sees it. */
import type { AckMode, MessageState, Provenance } from "./message.ts";
import type { ControlStore } from "./controls.ts";
import type { PurgeStore } from "./purge.ts";

/**
 * One message. Times are milliseconds: those called `…At` of things that happened are wall time;
 * the deadlines `nextAttemptAt`, `eligibleAt`, `leaseExpiresAt` and `ackDeadlineAt` are steady time
 * (wall time at the service's start plus monotonic time since), so that a jumping wall clock moves
 * none of them.
 */
export interface MessageRecord {
  /** Order of admission. */
  readonly seq: number;
  readonly messageId: string;
  readonly clientId: string;
  readonly idempotencyKey: string;
  /** SHA-256 over sender, target and body (T-10). */
  readonly requestDigest: Uint8Array;
  readonly correlationId: string | null;
  readonly senderRepo: string;
  readonly targetRepo: string;
  readonly provenance: Provenance;
  /** The endpoint it is bound to; null while queued for its repository (T-18). */
  readonly endpointRef: number | null;
  readonly endpointId: string | null;
  /** Where the sender's window was. */
  readonly sourceRef: number | null;
  /** Where its last attempt was made. */
  readonly lastRef: number | null;
  readonly state: MessageState;
  readonly attemptCount: number;
  readonly maxAttempts: number;
  readonly ackMode: AckMode;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly injectedAt: number | null;
  readonly acknowledgedAt: number | null;
  /** Null when it may go at once. */
  readonly nextAttemptAt: number | null;
  /** Since when it may go; what the wait for a closed gate counts from (T-13). */
  readonly eligibleAt: number;
  readonly leaseToken: string | null;
  readonly leaseExpiresAt: number | null;
  readonly leaseRef: number | null;
  /** The broker's process: `<pid> <start identity>`. */
  readonly leaseHolder: string | null;
  readonly ackDeadlineAt: number | null;
  readonly lastFailureReason: string | null;
  /** JSON text of an object. */
  readonly metadata: string;
  readonly body: string;
  /** The replay that admitted it; null for every other message. */
  readonly replayBatch: string | null;
  /** The id that the message had where it was exported from; null when the line had none. */
  readonly replayOf: string | null;
  /** 1 while nobody has allowed this pair (B-18): it waits and is offered to no window. */
  readonly held: 0 | 1;
}

/** What admission fills in; everything else starts empty. */
export type NewMessage =
  & Pick<
    MessageRecord,
    | "messageId"
    | "clientId"
    | "idempotencyKey"
    | "requestDigest"
    | "correlationId"
    | "senderRepo"
    | "targetRepo"
    | "provenance"
    | "endpointRef"
    | "sourceRef"
    | "maxAttempts"
    | "ackMode"
    | "createdAt"
    | "eligibleAt"
    | "metadata"
    | "body"
  >
  & Partial<Pick<MessageRecord, "replayBatch" | "replayOf" | "held">>;

/** What a transition may change. */
export type MessageChange = Partial<
  Pick<
    MessageRecord,
    | "endpointRef"
    | "lastRef"
    | "state"
    | "attemptCount"
    | "maxAttempts"
    | "ackMode"
    | "updatedAt"
    | "injectedAt"
    | "acknowledgedAt"
    | "nextAttemptAt"
    | "eligibleAt"
    | "leaseToken"
    | "leaseExpiresAt"
    | "leaseRef"
    | "leaseHolder"
    | "ackDeadlineAt"
    | "lastFailureReason"
  >
>;

/** A window's view of the queue: which endpoint, which repository, which others host it too. */
export interface Target {
  readonly repo: string;
  readonly ref: number;
  /** References of every live endpoint that hosts `repo`, `ref` included. */
  readonly liveRefs: readonly number[];
}

/** How an attempt ended. `interrupted`: an acknowledgement came while it was under way. */
export const ATTEMPT_OUTCOMES = [
  "written",
  "displayed",
  "failed",
  "stalled",
  "expired",
  "interrupted",
] as const;
export type AttemptOutcome = typeof ATTEMPT_OUTCOMES[number];

export interface AttemptRecord {
  readonly attempt: number;
  readonly endpointId: string | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly outcome: AttemptOutcome | null;
  readonly reason: string | null;
}

export interface EndpointFacts {
  readonly endpointId: string;
  /** Start identity of the tmux server: a reused pid is another generation (E-01). */
  readonly generation: string;
  readonly session: string;
  readonly protocol: string;
  readonly capabilities: readonly string[];
}

export interface EndpointRecord extends EndpointFacts {
  readonly ref: number;
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  readonly disconnectedAt: number | null;
}

export type ReceiptKind =
  | "start"
  | "shutdown"
  | "attach"
  | "detach"
  | "purge"
  | "operator"
  | "storm";

/** Never bodies, tokens or terminal output. */
export type ReceiptData = Readonly<
  Record<string, string | number | boolean | null | readonly string[]>
>;

/** Filters of `history`; times in milliseconds of wall time. */
export interface HistoryQuery {
  readonly repo?: string;
  readonly state?: MessageState;
  readonly endpointId?: string;
  readonly correlationId?: string;
  readonly since?: number;
  readonly until?: number;
  readonly limit: number;
  /** Only messages admitted before this one. */
  readonly beforeSeq?: number;
}

export interface HistoryPage {
  /** Newest first. */
  readonly records: readonly MessageRecord[];
  /** Pass as `beforeSeq` for the next page; undefined on the last one. */
  readonly nextBefore: number | undefined;
}

/** The durable side of the queue. Writes happen inside a commit; reads may happen any time. */
export interface MessageStore {
  insert(message: NewMessage): MessageRecord;
  byId(messageId: string): MessageRecord | undefined;
  byKey(clientId: string, idempotencyKey: string): MessageRecord | undefined;
  byLease(token: string): MessageRecord | undefined;
  /**
   * Applies `change` only if state and lease are still those of `before`; throws `lease_lost`
   * otherwise. Returns the record as it is now.
   */
  update(before: MessageRecord, change: MessageChange): MessageRecord;
  /** The oldest message that may go to `target` now (T-18, T-26). */
  next(target: Target, now: number): MessageRecord | undefined;
  /** Messages that could go to `target` and have waited since `eligibleBefore` or longer. */
  waiting(target: Target, eligibleBefore: number, limit: number): MessageRecord[];
  /** The smallest `eligibleAt` of those that could go to `target`. */
  oldestEligible(target: Target): number | undefined;
  /** Every lease at `ref` for `repo`; of every endpoint and repository without arguments. */
  leases(ref?: number, repo?: string): MessageRecord[];
  expiredLeases(now: number, limit: number): MessageRecord[];
  overdueAcks(now: number, limit: number): MessageRecord[];
  /** The next lease expiry, retry or acknowledgement deadline after `now`. */
  nextDeadline(now: number): number | undefined;
  /** Brings deadlines of an earlier service into reach of this one's clock. */
  clampDeadlines(bounds: {
    readonly now: number;
    readonly leaseFrom: number;
    readonly leaseTo: number;
    readonly retryTo: number;
    readonly ackTo: number;
  }): void;
  counts(): MessageCounts;
  /** In bounded time: a page may be short, even empty, although others follow. */
  history(query: HistoryQuery): HistoryPage;
}

export interface MessageCounts {
  readonly states: Readonly<Record<MessageState, number>>;
  /** Of the failed ones those that were withdrawn. */
  readonly cancelled: number;
  /** Leases that are out. */
  readonly leases: number;
}

export interface AttemptStore {
  start(seq: number, attempt: number, token: string | null, ref: number, at: number): void;
  /** Ends the attempt that is under way, if one is. */
  end(seq: number, at: number, outcome: AttemptOutcome, reason: string | null): void;
  of(seq: number): AttemptRecord[];
}

export interface EndpointStore {
  /** Inserts or refreshes; the same generation keeps its reference. */
  register(facts: EndpointFacts, at: number): number;
  get(ref: number): EndpointRecord | undefined;
  seen(ref: number, at: number): void;
  disconnected(ref: number, at: number): void;
  allDisconnected(at: number): void;
  /** Until when nothing goes to `repo` at `ref` after a target-level failure (T-26). */
  backoffUntil(ref: number, repo: string): number | undefined;
  setBackoff(ref: number, repo: string, until: number): void;
  clearBackoff(ref: number, repo: string): void;
  nextBackoffEnd(now: number): number | undefined;
  clampBackoff(to: number): void;
}

export interface ReceiptStore {
  /** Returns its id. */
  add(kind: ReceiptKind, at: number, data: ReceiptData): number;
  /** The receipt of that id and kind. */
  get(kind: ReceiptKind, id: number): ReceiptData | undefined;
  /** The latest one of these kinds. */
  latest(kinds: readonly ReceiptKind[]): { kind: ReceiptKind; data: ReceiptData } | undefined;
  /** Replaces what it says: a purge goes on over many commits and has one receipt. */
  replace(id: number, data: ReceiptData): void;
}

export interface QueueStore {
  readonly messages: MessageStore;
  readonly attempts: AttemptStore;
  readonly endpoints: EndpointStore;
  readonly receipts: ReceiptStore;
  readonly purge: PurgeStore;
  readonly controls: ControlStore;
}
