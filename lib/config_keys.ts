/**
 * Every key of the configuration file, for people: `tamq config`, `tamq help config`, the errors of
 * the schema and docs/configuration.md are made from this table. What a value must be is said once
 * more by the schema (`config_schema.ts`), which decides; a test compares the two.
 */
import type { Settings } from "./config.ts";
import { contentVersion } from "./model/policy.ts";

export interface ConfigKey {
  /** With its table: `delivery.max_attempts`. */
  readonly key: string;
  readonly type: string;
  /** What is allowed, in words. */
  readonly allowed: string;
  readonly brief: string;
  /** A TOML value; where there is a default, that one is shown beside it. */
  readonly example: string;
  /** For keys without a fixed default: what holds then. */
  readonly without?: string;
  /** The variable that comes before the file. */
  readonly env?: string;
  /** The value in force; undefined when there is none. */
  readonly value: (settings: Settings) => unknown;
}

const PATH = { type: "string", allowed: "a full path, beginning with /" } as const;
const SWITCH = { type: "boolean", allowed: "true or false" } as const;
const MODE = { type: "string", allowed: '"injected" or "acknowledged"' } as const;

function seconds(max: number): { readonly type: string; readonly allowed: string } {
  return { type: "number", allowed: `0.001 to ${max} seconds` };
}

function whole(
  min: number,
  max: number,
  unit = "",
): { readonly type: string; readonly allowed: string } {
  return { type: "integer", allowed: `${min} to ${max}${unit}` };
}

const WINDOW_RULE =
  'mode ("trigger", "draft" or "hold"), profile (a name), quiet_seconds (0 to 60), delivery (a table with the keys of [delivery])';

function unlessEmpty(rules: Readonly<Record<string, unknown>>): unknown {
  return Object.keys(rules).length === 0 ? undefined : rules;
}

const BACKOFF = {
  type: "list of numbers",
  allowed: "1 to 16 numbers, each 0.001 to 86400 seconds",
} as const;

export const CONFIG_KEYS: readonly ConfigKey[] = [
  {
    key: "state_dir",
    ...PATH,
    brief: "Directory of database, log and spool; only you may open it (mode 0700)",
    example: '"/home/me/.local/state/tamq"',
    without: "`$XDG_STATE_HOME/tamq`, else `~/.local/state/tamq`",
    env: "TAMQ_STATE_DIR",
    value: (s) => s.stateDir,
  },
  {
    key: "socket",
    type: "string",
    allowed: "a full path of at most 107 bytes, beginning with /",
    brief: "Unix socket of the message service",
    example: '"/run/user/1000/tamq.sock"',
    without: "`$XDG_RUNTIME_DIR/tamq.sock`, else `/tmp/tamq.sock`",
    env: "TAMQ_SOCKET",
    value: (s) => s.socket,
  },
  {
    key: "allow_network_state_dir",
    ...SWITCH,
    brief: "Accept a state directory on a network filesystem, where locks may not hold",
    example: "true",
    value: (s) => s.allowNetworkState,
  },
  {
    key: "busy_timeout_ms",
    ...whole(0, 600_000, " milliseconds"),
    brief: "How long SQLite waits for another writer",
    example: "10000",
    value: (s) => s.busyTimeoutMs,
  },
  {
    key: "grace_seconds",
    ...seconds(600),
    brief: "How long a stopping service may take to finish what it began",
    example: "30",
    value: (s) => s.graceMs / 1000,
  },
  {
    key: "policy_profile",
    type: "string",
    allowed: "the name of a policy profile",
    brief: "Policy profile of the coordination engine; the same as policy.profile",
    example: '"careful"',
    env: "TAMQ_POLICY_PROFILE",
    value: (s) => s.policyProfile,
  },
  {
    key: "delivery.ack_mode",
    ...MODE,
    brief:
      "What completes a message: that it was written, or that the receiver ran tamq ack as the text asks",
    example: '"acknowledged"',
    value: (s) => s.delivery.ackMode,
  },
  {
    key: "delivery.max_attempts",
    ...whole(1, 9),
    brief: "Attempts to deliver a message before it is failed",
    example: "6",
    value: (s) => s.delivery.maxAttempts,
  },
  {
    key: "delivery.backoff_seconds",
    ...BACKOFF,
    brief: "Pauses after the first, second, … failed attempt; the last one repeats",
    example: "[1, 5, 30]",
    value: (s) => s.delivery.backoffSeconds,
  },
  {
    key: "delivery.lease_seconds",
    ...seconds(3600),
    brief: "How long a window may take to write a message before the attempt counts as failed",
    example: "60",
    value: (s) => s.delivery.leaseSeconds,
  },
  {
    key: "delivery.ack_seconds",
    ...seconds(86_400),
    brief:
      'With ack_mode "acknowledged": how long an acknowledgement may take before the message is shown again',
    example: "600",
    value: (s) => s.delivery.ackSeconds,
  },
  {
    key: "delivery.ready_seconds",
    ...seconds(604_800),
    brief: "How long a busy window may keep a message waiting before that is one failed attempt",
    example: "7200",
    value: (s) => s.delivery.readySeconds,
  },
  {
    key: "guard.burst",
    ...whole(1, 1_000_000),
    brief: "Messages that a worker may write to one repository at once",
    example: "10",
    value: (s) => s.guard.burst,
  },
  {
    key: "guard.per_hour",
    type: "number",
    allowed: "0 to 1000000",
    brief: "How many more of them it may write in an hour",
    example: "120",
    value: (s) => s.guard.perHour,
  },
  {
    key: "routing.open",
    ...SWITCH,
    brief: "Every worker may write to every repository",
    example: "true",
    value: (s) => s.routing.open,
  },
  {
    key: "routing.together",
    ...SWITCH,
    brief: "Workers of windows opened in one tmux session may write to each other",
    example: "false",
    value: (s) => s.routing.together,
  },
  {
    key: "routing.allow",
    type: "list of pairs",
    allowed: "pairs of names: [sender, target]",
    brief: "Who else may write to whom; beside what tamq allow says",
    example: '[["alpha", "beta"], ["beta", "alpha"]]',
    value: (s) => s.routing.allow.map(({ sender, target }) => [sender, target]),
  },
  {
    key: "repositories",
    type: "table of tables",
    allowed: `for each registered name: observe ("on" or "off"), ${WINDOW_RULE}`,
    brief:
      "What holds in the windows of one repository; observe = off: nothing printed there is sent",
    example: '{ alpha = { observe = "off", mode = "draft" } }',
    without: "what commands and delivery say",
    value: (s) => unlessEmpty(s.windows.repositories),
  },
  {
    key: "commands",
    type: "table of tables",
    allowed: `for each command's name: ${WINDOW_RULE}`,
    brief:
      "What holds in the windows that run one command, unless repositories says otherwise; claude also means npx claude",
    example: '{ claude = { quiet_seconds = 1, delivery = { ack_mode = "acknowledged" } } }',
    without: "what delivery says",
    value: (s) => unlessEmpty(s.windows.commands),
  },
  {
    key: "statehub.api_base",
    type: "string",
    allowed: "a URL",
    brief: "State Hub that hub commands and the coordination engine use",
    example: '"http://127.0.0.1:9000"',
    env: "STATEHUB_API_BASE",
    value: (s) => s.stateHubBase,
  },
  {
    key: "statehub.credential_command",
    type: "list of strings",
    allowed: "a program and its arguments, 1 to 64 words",
    brief: "Prints the credential of the State Hub on its first line; run without a shell",
    example: '["pass", "show", "statehub"]',
    without: "no credential",
    value: (s) => s.stateHubCredential,
  },
  {
    key: "hub.socket",
    ...PATH,
    brief: "Unix socket of the embedded State Hub",
    example: '"/run/user/1000/tamq-hub.sock"',
    without: "`$XDG_RUNTIME_DIR/tamq-hub.sock`, else `/tmp/tamq-hub.sock`",
    env: "TAMQ_HUB_SOCKET",
    value: (s) => s.hubSocket,
  },
  {
    key: "policy.profile",
    type: "string",
    allowed: "the name of a policy profile",
    brief: "Policy profile of the coordination engine",
    example: '"careful"',
    env: "TAMQ_POLICY_PROFILE",
    value: (s) => s.policyProfile,
  },
  {
    key: "policy.profiles",
    type: "table of tables",
    allowed:
      "for each name: allow and require_human (lists of action classes), safety_gated_max_attempts (0 to 9), allow_orwell (true or false)",
    brief: "Policy profiles of your own",
    example: '{ careful = { allow = ["progress"], require_human = ["merge"] } }',
    without: "only the built-in profile",
    value: (s) => Object.keys(s.profiles).length === 0 ? undefined : s.profiles,
  },
  {
    key: "coordination.socket",
    ...PATH,
    brief: "Unix socket of the coordination engine",
    example: '"/run/user/1000/tamq-coord.sock"',
    without: "`$XDG_RUNTIME_DIR/tamq-coord.sock`, else `/tmp/tamq-coord.sock`",
    env: "TAMQ_COORD_SOCKET",
    value: (s) => s.coordSocket,
  },
  {
    key: "coordination.statehub_poll_interval_seconds",
    ...seconds(86_400),
    brief: "How often the State Hub is asked for news",
    example: "60",
    value: (s) => s.coordination.pollSeconds,
  },
  {
    key: "coordination.wake_ack_timeout_seconds",
    ...seconds(86_400),
    brief: "How long a worker may take to take up a wake that it was shown",
    example: "120",
    value: (s) => s.coordination.wakeAckSeconds,
  },
  {
    key: "coordination.lease_renew_interval_seconds",
    type: "number",
    allowed: "0.001 to 3600 seconds, and under coordination.lease_seconds",
    brief: "How often a lease is renewed",
    example: "20",
    value: (s) => s.coordination.renewSeconds,
  },
  {
    key: "coordination.lease_seconds",
    ...seconds(86_400),
    brief: "How long a lease lasts without a renewal",
    example: "300",
    value: (s) => s.coordination.leaseSeconds,
  },
  {
    key: "coordination.retry_backoff_seconds",
    ...BACKOFF,
    brief: "Pauses after leases that ended without a result; the last one repeats",
    example: "[10, 60]",
    value: (s) => s.coordination.backoffSeconds,
  },
  {
    key: "coordination.max_attempts",
    ...whole(0, 9),
    brief: "How often work is offered again; 0: nobody is ever woken",
    example: "2",
    value: (s) => s.coordination.maxAttempts,
  },
  {
    key: "coordination.safety_gated_max_attempts",
    ...whole(0, 9),
    brief: "How often a gated trigger is looked at again by itself",
    example: "1",
    value: (s) => s.coordination.safetyGatedMaxAttempts,
  },
  {
    key: "coordination.approval_seconds",
    ...seconds(604_800),
    brief: "How long an approval holds",
    example: "86400",
    value: (s) => s.coordination.approvalSeconds,
  },
  {
    key: "coordination.delivery_ack_mode",
    ...MODE,
    brief: "The same as delivery.ack_mode, which may be left out then",
    example: '"acknowledged"',
    value: (s) => s.delivery.ackMode,
  },
  {
    key: "coordination.hall_of_helix",
    type: "string",
    allowed: "1 to 1024 characters",
    brief: "Where the last template sends a perspective entry",
    example: '"hall"',
    without: "that template is left out",
    value: (s) => s.coordination.hallOfHelix,
  },
];

/** Tells one effective configuration from another; every receipt carries it (C-03). */
export function configVersion(settings: Settings): string {
  return contentVersion(CONFIG_KEYS.map(({ key, value }) => [key, value(settings) ?? null]));
}

/** A value of ours in TOML; undefined has none. */
export function toToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toToml).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, one]) => `${bareKey(key)} = ${toToml(one)}`);
    return entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
  }
  return JSON.stringify(value);
}

function bareKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}
