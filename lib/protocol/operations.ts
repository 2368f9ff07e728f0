/**
 * THE operation table: requests, responses, errors and summaries of the socket protocol, once.
 * Client types, request checks, help and the protocol reference derive from it.
 */
import * as z from "zod/mini";
import { composeFields, composeResult } from "./compose.ts";
import * as schema from "./schema.ts";
import { upgradeFields, upgradeResult } from "./upgrade_schema.ts";

interface OperationSpec {
  readonly summary: string;
  /** Fields beside `op` and `protocol`, which every request has. */
  readonly request: z.ZodMiniType;
  readonly response: z.ZodMiniType;
  /** The `error.reason` values of its own; the ones of the frame itself are common to all. */
  readonly reasons: readonly string[];
}

const byId = z.strictObject({ message_id: schema.short });
/** Of operations that an agent must not use to lift its own limits (T-27). */
const operatorOnly = ["worker_refused", "not_attached", "peer_unknown", "shutting_down"] as const;
const envelope = z.strictObject({ message: schema.message });

export const operations = {
  ping: {
    summary: "Tells that the service lives, its version, capabilities and identity.",
    request: z.strictObject({}),
    response: z.strictObject({
      protocol: z.string(),
      version: z.string(),
      capabilities: z.array(z.string()),
      service_id: z.string(),
      pid: z.int(),
      started_at: z.string(),
    }),
    reasons: [],
  },
  attach: {
    summary: "Registers a repository's window and turns the connection into its delivery stream.",
    request: z.strictObject(schema.attachFields),
    response: schema.attachResult,
    reasons: [
      "unknown_repository",
      "ambiguous_repository",
      "reserved_name",
      "path_mismatch",
      "endpoint_dead",
      "already_attached",
      "peer_mismatch",
      "shutting_down",
    ],
  },
  endpoints: {
    summary: "Lists live endpoints and the repositories attached to each.",
    request: z.strictObject({}),
    response: z.strictObject({ endpoints: z.array(schema.endpoint) }),
    reasons: [],
  },
  send: {
    summary: "Admits a durable message; repeating it with the same key returns the same id.",
    request: z.strictObject(schema.sendFields),
    response: schema.sendResult,
    reasons: [
      "body_empty",
      "body_too_large",
      "body_binary",
      "body_not_utf8",
      "metadata_too_large",
      "metadata_too_deep",
      "unknown_target",
      "unknown_sender",
      "ambiguous_repository",
      "registry_unavailable",
      "sender_mismatch",
      "not_attached",
      "peer_unknown",
      "reserved_name",
      "endpoint_unavailable",
      "ambiguous_endpoint",
      "idempotency_conflict",
      "endpoint_alive",
      "storm_guard",
      "shutting_down",
    ],
  },
  compose: {
    summary: "Admits what the operator of a window wrote in a popup of its tmux server.",
    request: z.strictObject(composeFields),
    response: composeResult,
    reasons: [
      "body_empty",
      "body_too_large",
      "body_binary",
      "body_not_utf8",
      "unknown_target",
      "ambiguous_repository",
      "registry_unavailable",
      "ambiguous_endpoint",
      "idempotency_conflict",
      "window_unknown",
      "sender_mismatch",
      "shutting_down",
      ...operatorOnly,
    ],
  },
  message: {
    summary: "Returns one message with its state, deadlines and every delivery attempt.",
    request: byId,
    response: z.strictObject({ message: schema.message, attempts: z.array(schema.attempt) }),
    reasons: ["unknown_message"],
  },
  history: {
    summary: "Returns a page of messages, newest first. It may be short, even empty, although " +
      "`next_cursor` leads on: a search through a long history goes page by page.",
    request: z.strictObject(schema.historyFields),
    response: z.strictObject({
      messages: z.array(schema.message),
      next_cursor: z.nullable(z.string()),
    }),
    reasons: ["invalid_time", "invalid_cursor"],
  },
  ack: {
    summary: "Records an explicit acknowledgement; a late one wins.",
    request: byId,
    response: envelope,
    reasons: ["unknown_message", "worker_refused", "not_attached", "peer_unknown"],
  },
  retry: {
    summary: "Returns a failed message to the queue with its attempts reset.",
    request: byId,
    response: envelope,
    reasons: ["unknown_message", "invalid_state", "worker_refused", "not_attached", "peer_unknown"],
  },
  cancel: {
    summary: "Withdraws a pending message.",
    request: byId,
    response: envelope,
    reasons: [
      "unknown_message",
      "invalid_state",
      "already_leased",
      "worker_refused",
      "not_attached",
      "peer_unknown",
    ],
  },
  allow: {
    summary: "Lets a repository write to another, or takes that back; held messages go.",
    request: z.strictObject(schema.allowFields),
    response: schema.allowResult,
    reasons: ["unknown_repository", "registry_unavailable", ...operatorOnly],
  },
  unblock: {
    summary: "Lifts the block of a pair that the storm guard stopped.",
    request: z.strictObject(schema.unblockFields),
    response: schema.unblockResult,
    reasons: ["not_blocked", ...operatorOnly],
  },
  pause: {
    summary: "Holds every delivery, durably; messages are still admitted.",
    request: z.strictObject({}),
    response: schema.pauseResult,
    reasons: [...operatorOnly],
  },
  resume: {
    summary: "Lets deliveries go on.",
    request: z.strictObject({}),
    response: schema.resumeResult,
    reasons: [...operatorOnly],
  },
  release: {
    summary: "Lets go what waits for a window that was opened in mode hold.",
    request: z.strictObject({ repo: schema.short }),
    response: schema.releaseResult,
    reasons: ["unknown_repository", "registry_unavailable", ...operatorOnly],
  },
  replay: {
    summary: "Admits lines of an exported file, in order, each as a send of its own.",
    request: z.strictObject(schema.replayFields),
    response: schema.replayResult,
    reasons: ["not_attached", "shutting_down"],
  },
  purge: {
    summary:
      "Counts messages that a purge would take, or purges them a piece at a time (`execute`). Each " +
      "filter chooses, and what any of them chooses goes.",
    request: z.strictObject(schema.purgeFields),
    response: schema.purgeResult,
    reasons: [
      "invalid_time",
      "invalid_cursor",
      "no_filter",
      "unknown_receipt",
      "worker_refused",
      "not_attached",
      "peer_unknown",
      "shutting_down",
    ],
  },
  watch: {
    summary: "Turns the connection into a stream of what happens from now, or from a cursor, on.",
    request: z.strictObject(schema.watchFields),
    response: schema.watchResult,
    reasons: ["invalid_cursor"],
  },
  upgrade: {
    summary: "Has the brokers of windows become a newer program; their workers do not notice.",
    request: z.strictObject(upgradeFields),
    response: upgradeResult,
    reasons: [...operatorOnly],
  },
  status: {
    summary: "Reports the health of each part separately.",
    request: z.strictObject({}),
    response: schema.status,
    reasons: [],
  },
} as const satisfies Record<string, OperationSpec>;

export type OperationName = keyof typeof operations;
/** Fields of a request beside `op` and `protocol`. */
export type RequestOf<K extends OperationName> = z.infer<(typeof operations)[K]["request"]>;
export type ResponseOf<K extends OperationName> = z.infer<(typeof operations)[K]["response"]>;

export function isOperation(name: unknown): name is OperationName {
  return typeof name === "string" && Object.hasOwn(operations, name);
}
