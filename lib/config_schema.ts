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

const zeroToNine = z.int().check(z.minimum(0), z.maximum(9));

const schema = z.strictObject({
  state_dir: z.optional(z.string()),
  socket: z.optional(z.string()),
  policy_profile: z.optional(z.string()),
  busy_timeout_ms: z.optional(z.int().check(z.minimum(0), z.maximum(600_000))),
  grace_seconds: z.optional(seconds(600)),
  allow_network_state_dir: z.optional(z.boolean()),
  guard: z.optional(z.strictObject({
    burst: z.optional(z.int().check(z.minimum(1), z.maximum(1_000_000))),
    per_hour: z.optional(z.number().check(z.minimum(0), z.maximum(1_000_000))),
  })),
  repositories: z.optional(z.record(
    z.string(),
    z.strictObject({ observe: z.optional(z.enum(["on", "off"])) }),
  )),
  routing: z.optional(z.strictObject({
    open: z.optional(z.boolean()),
    together: z.optional(z.boolean()),
    allow: z.optional(z.array(z.tuple([z.string(), z.string()]))),
  })),
  statehub: z.optional(z.strictObject({
    api_base: z.optional(z.url()),
    credential_command: z.optional(z.array(z.string()).check(z.minLength(1), z.maxLength(64))),
  })),
  hub: z.optional(z.strictObject({ socket: z.optional(z.string()) })),
  policy: z.optional(z.strictObject({
    profile: z.optional(z.string()),
    profiles: z.optional(z.record(
      z.string(),
      z.strictObject({
        allow: z.array(z.string()),
        require_human: z.array(z.string()),
        safety_gated_max_attempts: z.optional(zeroToNine),
        allow_orwell: z.optional(z.boolean()),
      }),
    )),
  })),
  coordination: z.optional(z.strictObject({
    socket: z.optional(z.string()),
    statehub_poll_interval_seconds: z.optional(seconds(86_400)),
    wake_ack_timeout_seconds: z.optional(seconds(86_400)),
    lease_renew_interval_seconds: z.optional(seconds(3600)),
    lease_seconds: z.optional(seconds(86_400)),
    retry_backoff_seconds: z.optional(
      z.array(seconds(86_400)).check(z.minLength(1), z.maxLength(16)),
    ),
    max_attempts: z.optional(zeroToNine),
    safety_gated_max_attempts: z.optional(zeroToNine),
    approval_seconds: z.optional(seconds(604_800)),
    delivery_ack_mode: z.optional(z.enum(ACK_MODES)),
    hall_of_helix: z.optional(z.string().check(z.minLength(1), z.maxLength(1024))),
  })),
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
  "guard.burst",
  "guard.per_hour",
  "repositories",
  "observe",
  "routing.open",
  "routing.together",
  "routing.allow",
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
  if (result.success) {
    const said = result.data as FileSettings;
    contradiction(said, fail);
    return said;
  }
  const issue = result.error.issues[0]!;
  const at = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const key = [...issue.path, issue.keys[0]].join(".");
    const like = nearest(key, KEYS, 1)[0];
    return fail(`unknown key "${key}"`, like ? `did you mean "${like}"?` : undefined);
  }
  return fail(`${at}: ${issue.message}`);
}

/** Two names for one thing, both given and different. */
function contradiction(said: FileSettings, fail: (message: string, hint: string) => never): void {
  const pairs = [
    ["policy_profile", said.policy_profile, "policy.profile", said.policy?.profile],
    [
      "delivery.ack_mode",
      said.delivery?.ack_mode,
      "coordination.delivery_ack_mode",
      said.coordination?.delivery_ack_mode,
    ],
  ] as const;
  for (const [one, a, other, b] of pairs) {
    if (a !== undefined && b !== undefined && a !== b) {
      fail(`${one} and ${other} say different things`, "keep one of them");
    }
  }
  const { lease_renew_interval_seconds: renew = 10, lease_seconds: lease = 120 } =
    said.coordination ?? {};
  if (renew >= lease) {
    fail(
      "coordination.lease_renew_interval_seconds is not under coordination.lease_seconds",
      "a lease must last longer than the time between its renewals",
    );
  }
}
