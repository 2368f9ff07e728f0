/**
 * What happens in the service, as `watch` tells it. Identifiers, states and reasons only: never a
 * body, metadata, a token or terminal output. Each kind has all of its fields always, so that a
 * program can rely on them; new kinds, changes and fields may be added within a major version.
 */
import * as z from "zod/mini";
import { PROVENANCES, STATES } from "../model/message.ts";

const count = z.int().check(z.nonnegative());
const repoOrNull = z.nullable(z.string());

/** What every event has. */
const every = {
  /** Where the stream goes on after this event; opaque. */
  cursor: z.string(),
  /** RFC 3339, UTC. */
  time: z.string(),
};

export const MESSAGE_CHANGES = [
  "admitted",
  "delivering",
  "delivered",
  "waiting",
  "acknowledged",
  "failed",
  "cancelled",
  "retried",
  "rebound",
] as const;

export const watchEvent = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("message"),
    change: z.enum(MESSAGE_CHANGES),
    ...every,
    message_id: z.string(),
    sender_repo: z.string(),
    target_repo: z.string(),
    provenance: z.enum(PROVENANCES),
    state: z.enum(STATES),
    attempt: count,
    endpoint_id: z.nullable(z.string()),
    reason: z.nullable(z.string()),
    next_attempt_at: z.nullable(z.string()),
  }),
  z.strictObject({
    type: z.literal("window"),
    change: z.enum(["attached", "detached"]),
    ...every,
    repo: z.string(),
    endpoint_id: z.string(),
  }),
  z.strictObject({
    type: z.literal("gate"),
    change: z.enum(["opened", "closed"]),
    ...every,
    repo: z.string(),
    endpoint_id: z.string(),
    reason: z.nullable(z.string()),
  }),
  z.strictObject({
    type: z.literal("control"),
    change: z.enum(["pause", "resume", "allow", "disallow", "unblock", "release"]),
    ...every,
    sender_repo: repoOrNull,
    target_repo: repoOrNull,
  }),
  z.strictObject({
    type: z.literal("storm"),
    change: z.literal("blocked"),
    ...every,
    sender_repo: z.string(),
    target_repo: z.string(),
  }),
  z.strictObject({ type: z.literal("purge"), change: z.literal("begun"), ...every }),
  z.strictObject({
    type: z.literal("service"),
    change: z.enum(["started", "stopping"]),
    ...every,
    service_id: z.string(),
  }),
  z.strictObject({
    type: z.literal("gap"),
    change: z.enum(["overflow", "restarted"]),
    ...every,
    missed: z.nullable(count),
  }),
]);

/** Lines that the service writes after its answer to `watch`. */
export const watchFrame = z.discriminatedUnion("type", [
  ...watchEvent.def.options,
  /** The last one before the service ends. */
  z.strictObject({ type: z.literal("closing"), reason: z.string() }),
]);

export type WatchEvent = z.infer<typeof watchEvent>;
export type WatchFrame = z.infer<typeof watchFrame>;
