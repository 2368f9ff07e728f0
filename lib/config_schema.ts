/** The configuration file's shape (C-03): every complaint names file, key and what is allowed. */
import { parse, TomlError } from "smol-toml";
import * as z from "zod/mini";
import { errorText, TamqError } from "./base/errors.ts";
import type { FileSettings } from "./config.ts";
import { CONFIG_KEYS, type ConfigKey, toToml } from "./config_keys.ts";
import { MODES } from "./model/endpoint.ts";
import { ACK_MODES } from "./model/message.ts";
import { nearest } from "./model/nearest.ts";

// Without a locale, zod/mini says "Invalid input" and no more.
z.config(z.locales.en());

const seconds = (max: number) => z.number().check(z.minimum(0.001), z.maximum(max));

const zeroToNine = z.int().check(z.minimum(0), z.maximum(9));

const delivery = z.strictObject({
  ack_mode: z.optional(z.enum(ACK_MODES)),
  max_attempts: z.optional(z.int().check(z.minimum(1), z.maximum(9))),
  backoff_seconds: z.optional(z.array(seconds(86_400)).check(z.minLength(1), z.maxLength(16))),
  lease_seconds: z.optional(seconds(3600)),
  ack_seconds: z.optional(seconds(86_400)),
  ready_seconds: z.optional(seconds(604_800)),
});

/** What holds in a window, by its command or its repository. */
const windowRule = {
  mode: z.optional(z.enum(MODES)),
  profile: z.optional(z.string().check(z.minLength(1), z.maxLength(64))),
  quiet_seconds: z.optional(z.number().check(z.minimum(0), z.maximum(60))),
  delivery: z.optional(delivery),
};

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
    z.strictObject({ observe: z.optional(z.enum(["on", "off"])), ...windowRule }),
  )),
  commands: z.optional(z.record(z.string(), z.strictObject(windowRule))),
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
  delivery: z.optional(delivery),
});

/** The schema as JSON Schema, for the test that compares it with the table of keys. */
export const configJsonSchema = () => z.toJSONSchema(schema);

/** Throws `config_invalid`; the message names the file, the line, the key and the allowed values. */
export function parseConfig(text: string, file: string): FileSettings {
  const fail = (message: string, hint = "see: tamq help config", line?: number): never => {
    const where = line === undefined ? file : `${file}, line ${line}`;
    throw new TamqError("INVALID_ARGUMENT", "config_invalid", `${where}: ${message}`, { hint });
  };
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    const line = error instanceof TomlError ? error.line : undefined;
    const why = errorText(error).split("\n")[0]!.replace(/^Invalid TOML document: /, "");
    return fail(`not valid TOML: ${why}`, 'strings stand in quotes: key = "value"', line);
  }
  const result = z.safeParse(schema, value);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    // Places in a list are not keys.
    const path = issue.path.filter((part) => typeof part === "string");
    if (issue.code === "unrecognized_keys") {
      const key = [...path, issue.keys[0]!].join(".");
      return fail(`unknown key "${key}"`, keyHint(key, path), lineOf(text, key));
    }
    const key = path.join(".");
    return fail(refusal(key, valueAt(value, path), issue.message), undefined, lineOf(text, key));
  }
  const said = result.data as FileSettings;
  for (const key of PATH_KEYS) {
    const path = valueAt(said, key.split("."));
    if (typeof path === "string" && !path.startsWith("/")) {
      return fail(refusal(key, path, ""), undefined, lineOf(text, key));
    }
  }
  contradiction(said, fail);
  return said;
}

const PATH_KEYS = ["state_dir", "socket", "hub.socket", "coordination.socket"];

/** `delivery.max_attempts is 12; allowed: 1 to 9`. */
function refusal(key: string, value: unknown, otherwise: string): string {
  const known = tableOf(key);
  let shown = value === undefined ? "missing" : toToml(value);
  if (shown.length > 60) shown = `${shown.slice(0, 60)}...`;
  return `${key} is ${shown}; ${known === undefined ? otherwise : `allowed: ${known.allowed}`}`;
}

/** The row of the table that is about `key`, or about the tables that it stands in. */
function tableOf(key: string): ConfigKey | undefined {
  return CONFIG_KEYS.find((one) => key === one.key || key.startsWith(`${one.key}.`));
}

function keyHint(key: string, table: readonly string[]): string {
  const keys = CONFIG_KEYS.map((one) => one.key);
  const prefix = table.map((part) => `${part}.`).join("");
  const here = keys.filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length));
  const like = nearest(key, keys, 1)[0];
  const inside = tableOf(key);
  if (inside !== undefined) return `allowed: ${inside.allowed}`;
  const allowed = here.length === 0 ? "see: tamq help config" : `allowed: ${here.join(", ")}`;
  return like === undefined ? allowed : `did you mean "${like}"? ${allowed}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, part) => (inner as Record<PropertyKey, unknown>)?.[part],
    value,
  );
}

/** The line that gives `key` its value, as files are written mostly; undefined when not found. */
function lineOf(text: string, key: string): number | undefined {
  let table = "";
  for (const [index, line] of text.split("\n").entries()) {
    const header = /^\s*\[+\s*([^\]]*?)\s*\]+/.exec(line)?.[1];
    if (header !== undefined) table = `${header.replaceAll(/["'\s]/g, "")}.`;
    const name = header === undefined
      ? /^\s*([A-Za-z0-9_."'-]+)\s*=/.exec(line)?.[1]?.replaceAll(/["']/g, "")
      : undefined;
    const here = header === undefined ? name && table + name : table.slice(0, -1);
    if (here === key || (name !== undefined && key.startsWith(`${here}.`))) return index + 1;
  }
  return undefined;
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
