/** Shapes that cross the socket, as zod schemas; the types of client and service derive from them. */
import * as z from "zod/mini";
import { ACK_MODES, PROVENANCES, STATES } from "../model/message.ts";
import { FAILURE_CODES } from "../base/errors.ts";
import { MODES } from "../model/endpoint.ts";
import { PURGEABLE } from "../model/purge.ts";

// Without a locale, zod/mini says "Invalid input" and no more.
z.config(z.locales.en());

/** Ids, keys and names: one line. Keys that differ in a lone surrogate would be one as UTF-8. */
const LINE = /^[^\p{Cc}\p{Cs}]*$/u;
const oneLine = z.regex(LINE, "must not hold control characters or unpaired surrogates");
const short = z.string().check(z.minLength(1), z.maxLength(256), oneLine);
const path = z.string().check(z.minLength(1), z.maxLength(4096));
const time = z.string(); // RFC 3339, UTC
const count = z.int().check(z.nonnegative());
const pid = z.int().check(z.positive());

export const metadata = z.record(z.string(), z.unknown());

export const attempt = z.strictObject({
  attempt: count,
  endpoint_id: z.nullable(z.string()),
  started_at: time,
  ended_at: z.nullable(time),
  outcome: z.nullable(z.string()),
  reason: z.nullable(z.string()),
});

export const message = z.strictObject({
  message_id: z.string(),
  client_id: z.string(),
  idempotency_key: z.string(),
  correlation_id: z.nullable(z.string()),
  sender_repo: z.string(),
  target_repo: z.string(),
  /** The endpoint it is bound to; null while it is queued for its repository (T-18). */
  endpoint_id: z.nullable(z.string()),
  provenance: z.enum(PROVENANCES),
  metadata,
  body: z.string(),
  state: z.enum(STATES),
  attempt_count: count,
  max_attempts: count,
  created_at: time,
  updated_at: time,
  next_attempt_at: z.nullable(time),
  lease_expires_at: z.nullable(time),
  ack_deadline_at: z.nullable(time),
  injected_at: z.nullable(time),
  acknowledged_at: z.nullable(time),
  last_failure_reason: z.nullable(z.string()),
  waiting_reason: z.nullable(z.string()),
  /** Of a replayed message: which replay, and its id before. */
  replay: z.nullable(z.strictObject({
    batch: z.string(),
    original_message_id: z.nullable(z.string()),
  })),
});

/** One repository's window at an endpoint. */
export const attachment = z.strictObject({
  repo: z.string(),
  path: z.string(),
  command: z.array(z.string()),
  mode: z.enum(MODES),
  gate: z.strictObject({ open: z.boolean(), reason: z.nullable(z.string()) }),
  /** What it shows is being written to a file (B-15); absent: it is not. */
  recording: z.optional(z.boolean()),
  broker_pid: pid,
  window_id: z.string(),
  attached_at: time,
});

export const endpoint = z.strictObject({
  endpoint_id: z.string(),
  tmux_session: z.string(),
  protocol: z.string(),
  capabilities: z.array(z.string()),
  repos: z.array(z.string()),
  attachments: z.array(attachment),
});

/** Messages from the one to the other, not back. */
const pair = { sender_repo: z.string(), target_repo: z.string() };

const health = z.strictObject({ ok: z.boolean(), detail: z.string() });

export const status = z.strictObject({
  service: z.strictObject({
    ok: z.boolean(),
    detail: z.string(),
    version: z.string(),
    protocol: z.string(),
    service_id: z.string(),
    pid,
    started_at: time,
    socket: z.string(),
    /** Which check tells one user's processes from another's (T-02). */
    peer_check: z.string(),
    connections: count,
  }),
  sqlite: z.strictObject({ ok: z.boolean(), detail: z.string(), path: z.string(), schema: count }),
  gita: z.strictObject({
    ok: z.boolean(),
    detail: z.string(),
    path: z.string(),
    repositories: count,
  }),
  state_hub: health,
  queue: z.strictObject({
    ok: z.boolean(),
    detail: z.string(),
    states: z.record(z.string(), count),
    /** Of the failed ones those that were withdrawn. */
    cancelled: count,
  }),
  leases: z.strictObject({ ok: z.boolean(), detail: z.string(), active: count }),
  /** What is held back, and who may write to whom (B-14, B-18). */
  controls: z.strictObject({
    ok: z.boolean(),
    detail: z.string(),
    paused_at: z.nullable(time),
    /** Everybody may write to everybody. */
    open: z.boolean(),
    /** Windows of one tmux session may write to each other. */
    together: z.boolean(),
    /** By `tamq allow` and by configuration. */
    allowed: z.array(z.strictObject(pair)),
    held: z.array(z.strictObject({ ...pair, messages: count })),
    blocked: z.array(z.strictObject({ ...pair, since: time, refused: count })),
  }),
  endpoints: z.array(endpoint),
});

/** Fields of `send`, exactly as the contract names them (T-06). */
export const sendFields = {
  client_id: short,
  idempotency_key: short,
  correlation_id: z.optional(short),
  sender_repo: short,
  target_repo: short,
  endpoint_id: z.optional(short),
  provenance: z.enum(PROVENANCES),
  metadata: z.optional(metadata),
  body: z.string(),
};

export const sendResult = z.strictObject({
  message_id: z.string(),
  deduplicated: z.boolean(),
  state: z.enum(STATES),
  /** True while nobody has allowed this pair (B-18): it is delivered after `allow`. */
  held: z.optional(z.boolean()),
});

const wordPair = { sender_repo: short, target_repo: short };

export const allowFields = {
  ...wordPair,
  /** The way back as well. */
  both: z.optional(z.boolean()),
  /** Takes the permission back; what was admitted meanwhile stays. */
  remove: z.optional(z.boolean()),
};
export const allowResult = z.strictObject({
  pairs: z.array(z.strictObject(pair)),
  /** Held messages that may go now. */
  released: count,
});

export const unblockFields = wordPair;
export const unblockResult = z.strictObject({
  ...pair,
  /** Messages that were refused while it was blocked. */
  refused: count,
});

export const pauseResult = z.strictObject({ paused_at: time });
export const resumeResult = z.strictObject({
  /** False when nothing was paused. */
  resumed: z.boolean(),
});
export const releaseResult = z.strictObject({
  /** Messages that may go now. */
  released: count,
});

export const historyFields = {
  /** Messages from or to this repository. */
  repo: z.optional(short),
  state: z.optional(z.enum(STATES)),
  endpoint_id: z.optional(short),
  correlation_id: z.optional(short),
  /** RFC 3339; from this moment on. */
  since: z.optional(z.string()),
  /** RFC 3339; before this moment. */
  until: z.optional(z.string()),
  limit: z.optional(z.int().check(z.minimum(1), z.maximum(10000))),
  /** From `next_cursor` of the page before. */
  cursor: z.optional(z.string()),
};

/** One line of an exported file. */
const replayEntry = z.strictObject({
  /** The id on the line; without one the content stands for it (T-20). */
  original_message_id: z.optional(short),
  correlation_id: z.optional(short),
  sender_repo: short,
  target_repo: short,
  metadata: z.optional(metadata),
  body: z.string(),
});

/** As many entries as a request line takes; their order is the order of admission. */
export const replayFields = {
  /** Chosen by the client, new for each replay. */
  batch: short,
  endpoint_id: short,
  entries: z.array(replayEntry).check(z.minLength(1), z.maxLength(256)),
  /** The first refusal ends it: what follows is not admitted. */
  strict: z.optional(z.boolean()),
  /** Checks everything, admits nothing. */
  dry_run: z.optional(z.boolean()),
};

export const wireError = z.strictObject({
  code: z.enum(FAILURE_CODES),
  reason: z.string(),
  message: z.string(),
  hint: z.optional(z.string()),
  retry: z.string(),
});

/** One result an entry, in order; with `strict` none after the first refusal. */
export const replayResult = z.strictObject({
  results: z.array(z.union([
    z.strictObject({
      ok: z.literal(true),
      /** Null in a dry run, for what would be new. */
      message_id: z.nullable(z.string()),
      deduplicated: z.boolean(),
      state: z.enum(STATES),
    }),
    z.strictObject({ ok: z.literal(false), error: wireError }),
  ])),
});

/** Each filter chooses, and what any of them chooses is purged. */
export const purgeFields = {
  /** False or absent: counts only. */
  execute: z.optional(z.boolean()),
  /** RFC 3339; admitted before this moment. */
  before: z.optional(z.string()),
  /** The oldest go until the history has at most so many bytes. */
  max_bytes: z.optional(count),
  repo: z.optional(short),
  state: z.optional(z.enum(PURGEABLE)),
  /** From the count before: how far `max_bytes` reaches. */
  through: z.optional(z.string()),
  /** RFC 3339; whatever changed since is left alone. */
  settled_before: z.optional(z.string()),
  /** Goes on with the purge that an earlier answer named; its filters hold. */
  receipt_id: z.optional(count),
};

export const purgeResult = z.strictObject({
  /** Counted, or purged so far. */
  messages: count,
  /** Estimated. */
  bytes: count,
  oldest_at: z.nullable(time),
  newest_at: z.nullable(time),
  /** Of the whole history. */
  history_bytes: count,
  through: z.nullable(z.string()),
  receipt_id: z.nullable(count),
  /** False: call again with `receipt_id`. Of a count, true. */
  done: z.boolean(),
});

/** What a broker reports of an attempt it made (T-25). */
export const OUTCOMES = ["written", "displayed", "failed", "stalled"] as const;
export const settlement = z.strictObject({
  lease_token: short,
  outcome: z.enum(OUTCOMES),
  reason: z.optional(z.string().check(z.maxLength(256))),
  /** `target`: the window cannot take anything now; `message`: this message alone cannot go (T-26). */
  scope: z.optional(z.enum(["target", "message"])),
});

/** The handshake of a broker (E-03): identity is proved by path, registry and the peer's process. */
export const attachFields = {
  capabilities: z.array(short),
  repos: z.array(short).check(z.length(1)),
  path,
  command: z.array(z.string()).check(z.minLength(1)),
  mode: z.enum(MODES),
  tmux: z.strictObject({
    server_pid: pid,
    session: z.string(),
    /** tmux's own id of it, which outlives a new name. Windows of one session were opened together. */
    session_id: z.optional(z.string()),
    window_id: z.string(),
    pane_id: z.string(),
  }),
  /** Random for each broker process; part of the idempotency keys of what it observes (B-13). */
  instance: short,
  worker_pid: pid,
  /** The attempt that was under way when an earlier connection ended (T-25). */
  outstanding: z.optional(settlement),
  /**
   * Lease token of the attempt that the broker is making right now, null when it makes none. A lease
   * of this broker with any other token never reached it and is released at once.
   */
  in_progress: z.optional(z.nullable(short)),
  /** What the window shows is recorded (B-15). */
  recording: z.optional(z.boolean()),
  /** Which program the broker is, and how often its process became a newer one (B-17). */
  program: z.optional(z.strictObject({ version: short, upgrades: count })),
};

export const attachResult = z.strictObject({
  endpoint_id: z.string(),
  service_id: z.string(),
  protocol: z.string(),
  capabilities: z.array(z.string()),
  ack_mode: z.enum(ACK_MODES),
});

/** The events themselves: `lib/protocol/events.ts`. */
export const watchFields = {
  /** Of the last event that was seen, by this service or the one before it; none: from now on. */
  cursor: z.optional(short),
  /** Only what concerns one of these, and what concerns no repository. */
  repos: z.optional(z.array(short).check(z.minLength(1), z.maxLength(256))),
};
export const watchResult = z.strictObject({
  /** Where the stream begins. */
  cursor: z.string(),
  service_id: z.string(),
});

/** Lines that a broker writes into its delivery stream after `attach`. */
export const brokerFrame = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("gate"),
    open: z.boolean(),
    reason: z.optional(z.string().check(z.maxLength(256))),
  }),
  z.strictObject({ type: z.literal("settle"), ...settlement.shape }),
  /** The recording of the window ended by itself. */
  z.strictObject({ type: z.literal("recording"), on: z.boolean() }),
  /** Answers `upgrade` where the broker stays the program that it is. */
  z.strictObject({ type: z.literal("not_upgraded"), reason: z.string().check(z.maxLength(256)) }),
]);
export type BrokerFrame = z.infer<typeof brokerFrame>;

/** Lines that the service writes into a delivery stream after the answer to `attach`. */
export const serviceFrame = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("deliver"),
    message_id: z.string(),
    attempt: count,
    lease_token: z.string(),
    envelope: z.strictObject({
      message_id: z.string(),
      sender_repo: z.string(),
      provenance: z.enum(PROVENANCES),
      body: z.string(),
      ack_requested: z.boolean(),
    }),
  }),
  /** Answers each `settle`; `lease_lost` means that the report changed nothing. */
  z.strictObject({
    type: z.literal("settled"),
    lease_token: z.string(),
    accepted: z.boolean(),
    reason: z.optional(z.string()),
  }),
  /**
   * The broker's process is to become `program`, which runs `tamq`; it says so by attaching again
   * with one upgrade more, or answers `not_upgraded` (B-17).
   */
  z.strictObject({ type: z.literal("upgrade"), program: z.array(z.string()), wait_ms: count }),
  /** The service is about to close the stream; the broker attaches again when it is back. */
  z.strictObject({ type: z.literal("closing"), reason: z.string() }),
]);
export type ServiceFrame = z.infer<typeof serviceFrame>;

export type WireMessage = z.infer<typeof message>;
export type WireAttempt = z.infer<typeof attempt>;
export type WireAttachment = z.infer<typeof attachment>;
export type WireEndpoint = z.infer<typeof endpoint>;
export type WireStatus = z.infer<typeof status>;
export type Settlement = z.infer<typeof settlement>;
export { pid, short };
