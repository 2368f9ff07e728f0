/** The operations of the engine's socket: requests, once, for server and client (K-09). */
import * as z from "zod/mini";
import { BLOCKED_REASONS, CHECKPOINT_LIMITS } from "../model/checkpoint.ts";
import { ACTION_CLASS } from "../model/policy.ts";
import { TRIGGER_STATES } from "./records.ts";

z.config(z.locales.en());

// deno-lint-ignore no-control-regex
const oneLine = z.regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, "must not hold control characters");
const prose = z.regex(
  // deno-lint-ignore no-control-regex
  /^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$/,
  "must not hold control characters other than line feed and tab",
);
const short = z.string().check(z.minLength(1), z.maxLength(256), oneLine);
const path = z.string().check(z.minLength(1), z.maxLength(4096));
const limit = z.optional(z.int().check(z.minimum(1), z.maximum(1000)));
const handle = { lease: short };

export const engineOperations = {
  ping: z.strictObject({}),
  /** The message service makes itself known; `windows` are those of one endpoint. */
  attach: z.strictObject({
    capabilities: z.array(short),
    service_id: short,
    endpoint_id: z.string().check(z.regex(/^tmux-amq-\d{1,10}$/)),
    tmux_session: short,
    windows: z.array(z.strictObject({
      repo: short,
      path,
      command: z.array(z.string().check(z.maxLength(4096))).check(z.minLength(1), z.maxLength(256)),
    })).check(z.minLength(1), z.maxLength(256)),
  }),
  status: z.strictObject({}),
  triggers: z.strictObject({
    state: z.optional(z.enum(TRIGGER_STATES)),
    repo: z.optional(short),
    limit,
  }),
  leases: z.strictObject({ all: z.optional(z.boolean()), limit }),
  /** By the id of a task, a plan or a message, or of a trigger. */
  explain: z.strictObject({ id: short }),
  /** What is to be typed before `approve`; holds for a minute, once. */
  challenge: z.strictObject({
    trigger_id: short,
    action: z.string().check(z.regex(ACTION_CLASS, "is not a class of action")),
  }),
  approve: z.strictObject({
    trigger_id: short,
    action: z.string().check(z.regex(ACTION_CLASS, "is not a class of action")),
    why: z.string().check(z.minLength(1), z.maxLength(500), oneLine),
    challenge: short,
  }),
  /** The held leases of the window that asks. */
  lease: z.strictObject({}),
  ack: z.strictObject(handle),
  renew: z.strictObject(handle),
  checkpoint: z.strictObject({
    ...handle,
    summary: z.string().check(z.minLength(1), z.maxLength(CHECKPOINT_LIMITS.summary), prose),
    files_changed: z.array(z.string().check(z.maxLength(CHECKPOINT_LIMITS.file), oneLine))
      .check(z.maxLength(CHECKPOINT_LIMITS.files)),
    next_action: z.optional(
      z.string().check(z.minLength(1), z.maxLength(CHECKPOINT_LIMITS.nextAction), prose),
    ),
    blocked_reason: z.nullable(z.enum(BLOCKED_REASONS)),
  }),
  release: z.strictObject({ ...handle, stop: z.optional(z.boolean()) }),
  complete: z.strictObject(handle),
} as const;

export type EngineOperation = keyof typeof engineOperations;
export type EngineRequest<K extends EngineOperation> = z.infer<(typeof engineOperations)[K]>;

/** What the engine grants at an attach. */
export const ENGINE_CAPABILITIES = ["coordination_lease_v1", "coordination_receipt_v1"] as const;
