/** The configuration file's shape (C-03): every complaint names file, key and what is allowed. */
import { parse } from "smol-toml";
import * as z from "zod/mini";
import { errorText, TamqError } from "./base/errors.ts";
import type { FileSettings } from "./config.ts";
import { ACK_MODES } from "./model/message.ts";
import { nearest } from "./model/nearest.ts";

// Without a locale, zod/mini says "Invalid input" and no more.
z.config(z.locales.en());

const seconds = (max: number) => z.number().check(z.minimum(0.001), z.maximum(max));

const schema = z.strictObject({
  state_dir: z.optional(z.string()),
  socket: z.optional(z.string()),
  policy_profile: z.optional(z.string()),
  busy_timeout_ms: z.optional(z.int().check(z.minimum(0), z.maximum(600_000))),
  grace_seconds: z.optional(seconds(600)),
  statehub: z.optional(z.strictObject({ api_base: z.optional(z.url()) })),
  delivery: z.optional(z.strictObject({
    ack_mode: z.optional(z.enum(ACK_MODES)),
    max_attempts: z.optional(z.int().check(z.minimum(1), z.maximum(9))),
    backoff_seconds: z.optional(z.array(seconds(86_400)).check(z.minLength(1), z.maxLength(16))),
    lease_seconds: z.optional(seconds(3600)),
    ack_seconds: z.optional(seconds(86_400)),
    ready_seconds: z.optional(seconds(604_800)),
  })),
});

const KEYS = [
  ...Object.keys(schema.shape),
  "delivery.ack_mode",
  "delivery.max_attempts",
  "delivery.backoff_seconds",
  "delivery.lease_seconds",
  "delivery.ack_seconds",
  "delivery.ready_seconds",
  "statehub.api_base",
];

/** Throws `config_invalid`; the message names the file, the key and the allowed values. */
export function parseConfig(text: string, file: string): FileSettings {
  const fail = (message: string, hint?: string): never => {
    throw new TamqError("INVALID_ARGUMENT", "config_invalid", `${file}: ${message}`, { hint });
  };
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    return fail(`not valid TOML: ${errorText(error).split("\n")[0]}`);
  }
  const result = z.safeParse(schema, value);
  if (result.success) return result.data as FileSettings;
  const issue = result.error.issues[0]!;
  const at = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const key = [...issue.path, issue.keys[0]].join(".");
    const like = nearest(key, KEYS, 1)[0];
    return fail(`unknown key "${key}"`, like ? `did you mean "${like}"?` : undefined);
  }
  return fail(`${at}: ${issue.message}`);
}
