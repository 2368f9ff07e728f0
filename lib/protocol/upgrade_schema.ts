/** Shapes of the operation that has brokers become a newer program (B-17). */
import * as z from "zod/mini";
import { pid, short } from "./schema.ts";

export const upgradeFields = {
  /** What runs the program that brokers are to become; a full path first. */
  program: z.array(z.string().check(z.minLength(1), z.maxLength(4096))).check(
    z.minLength(1),
    z.maxLength(32),
  ),
  /** How long each broker may wait for a moment at which nothing is under way. */
  wait_ms: z.int().check(z.minimum(0), z.maximum(600_000)),
  /** Only windows of these repositories. */
  repos: z.optional(z.array(short).check(z.maxLength(256))),
  /** Tells which windows there are, and changes nothing. */
  dry_run: z.optional(z.boolean()),
};

/** What became of a window's broker. */
export const UPGRADES = ["upgraded", "unchanged", "gone", "planned"] as const;
export const upgradeResult = z.strictObject({
  windows: z.array(z.strictObject({
    repo: z.string(),
    endpoint_id: z.string(),
    window_id: z.string(),
    broker_pid: pid,
    /** Version of its program before; null: older than upgrades. */
    from: z.nullable(z.string()),
    /** Its version now. */
    to: z.nullable(z.string()),
    outcome: z.enum(UPGRADES),
    /** Why it is unchanged. */
    reason: z.nullable(z.string()),
  })),
});
