/**
 * Settings: defaults < file < environment < flags (C-02). Frozen once loaded. The parser and the
 * schema of the file are imported only when there is a file: ordinary verbs start without them.
 */
import { TamqError } from "./base/errors.ts";
import { importLate } from "./base/late.ts";
import { type CoordinationSettings, DEFAULT_COORDINATION } from "./model/coordination.ts";
import type { ProfileSettings } from "./model/policy.ts";
import {
  DEFAULT_GUARD,
  DEFAULT_ROUTING,
  type GuardPolicy,
  type RoutingPolicy,
} from "./model/controls.ts";
import { DEFAULT_POLICY, type DeliveryPolicy } from "./model/retry_schedule.ts";
import type { DeliveryRule, WindowRules } from "./model/window_policy.ts";

export interface Settings {
  readonly configFile: string;
  /** Whether that file exists. */
  readonly configured: boolean;
  readonly stateDir: string;
  readonly database: string;
  readonly logFile: string;
  readonly spoolDir: string;
  readonly recordingsDir: string;
  readonly capturesDir: string;
  readonly socket: string;
  /** True when file or environment name the socket; then no other one is ever looked for. */
  readonly socketExplicit: boolean;
  readonly policyProfile: string;
  readonly stateHubBase: string;
  /** True when file or environment name the base; then no embedded hub is looked for (K-19). */
  readonly stateHubExplicit: boolean;
  /** Prints the credential of the State Hub on its first line (K-16). */
  readonly stateHubCredential?: readonly string[];
  /** Of the embedded State Hub; undefined: beside the message service's. */
  readonly hubSocket?: string;
  /** Of the coordination engine. */
  readonly coordSocket: string;
  readonly coordSocketExplicit: boolean;
  readonly coordination: CoordinationSettings;
  /** Policy profiles beside the built-in one; checked by whoever selects one (K-13). */
  readonly profiles: Readonly<Record<string, ProfileSettings>>;
  /** How long SQLite waits for another writer, milliseconds (Q-01). */
  readonly busyTimeoutMs: number;
  /** How long a stopping service may take, milliseconds (L-03). */
  readonly graceMs: number;
  readonly delivery: DeliveryPolicy;
  /** How much a worker may write to one repository (B-14). */
  readonly guard: GuardPolicy;
  /** Who may write to whom (B-18). */
  readonly routing: RoutingPolicy;
  /** What holds in the windows of a repository, or of a command. */
  readonly windows: WindowRules;
  /** Repositories whose workers' output is not searched for messages. */
  readonly unobserved: readonly string[];
  /** The state directory may lie on a network filesystem, at the operator's own risk. */
  readonly allowNetworkState: boolean;
}

/** The part of the process environment that settings come from. */
export type Env = (name: string) => string | undefined;

/** What the configuration file may say, after validation by `config_schema.ts`. */
export interface FileSettings {
  state_dir?: string;
  socket?: string;
  policy_profile?: string;
  busy_timeout_ms?: number;
  grace_seconds?: number;
  allow_network_state_dir?: boolean;
  guard?: { burst?: number; per_hour?: number };
  repositories?: WindowRules["repositories"];
  commands?: WindowRules["commands"];
  routing?: { open?: boolean; together?: boolean; allow?: [string, string][] };
  statehub?: { api_base?: string; credential_command?: string[] };
  hub?: { socket?: string };
  policy?: { profile?: string; profiles?: Record<string, ProfileSettings> };
  coordination?: {
    socket?: string;
    statehub_poll_interval_seconds?: number;
    wake_ack_timeout_seconds?: number;
    lease_renew_interval_seconds?: number;
    lease_seconds?: number;
    retry_backoff_seconds?: number[];
    max_attempts?: number;
    safety_gated_max_attempts?: number;
    approval_seconds?: number;
    delivery_ack_mode?: "injected" | "acknowledged";
    hall_of_helix?: string;
  };
  delivery?: DeliveryRule;
}

/** What is used of `config_schema.ts`. */
interface ConfigSchema {
  parseConfig(text: string, file: string): FileSettings;
}

const DEFAULT_STATEHUB = "http://127.0.0.1:8000";

/**
 * Reads environment and file; throws `config_invalid` with file, key and what is allowed. With
 * `ignoreFile` the file is left out, for what must work while it is broken.
 */
export async function loadSettings(
  env: Env = Deno.env.get,
  options: { readonly ignoreFile?: boolean } = {},
): Promise<Settings> {
  const get = (name: string) => env(name) || undefined; // an empty variable counts as unset
  const home = () => {
    const dir = get("HOME");
    if (dir !== undefined) return dir;
    throw new TamqError("FAILED_PRECONDITION", "home_unset", "HOME is not set", {
      hint: "set HOME, or set both TAMQ_CONFIG and TAMQ_STATE_DIR",
    });
  };
  const configFile = absolute(
    "TAMQ_CONFIG",
    get("TAMQ_CONFIG") ?? `${get("XDG_CONFIG_HOME") ?? `${home()}/.config`}/tamq/config.toml`,
  );
  const file = options.ignoreFile
    ? undefined
    : await readConfig(configFile, get("TAMQ_CONFIG") !== undefined);
  const stateDir = absolute(
    "state directory",
    get("TAMQ_STATE_DIR") ?? file?.state_dir ??
      `${get("XDG_STATE_HOME") ?? `${home()}/.local/state`}/tamq`,
  );
  const explicit = get("TAMQ_SOCKET") ?? file?.socket;
  const delivery = file?.delivery ?? {};
  const hubBase = get("STATEHUB_API_BASE") ?? file?.statehub?.api_base;
  const hubSocket = get("TAMQ_HUB_SOCKET") ?? file?.hub?.socket;
  const coordSocket = get("TAMQ_COORD_SOCKET") ?? file?.coordination?.socket;
  const runtimeDir = get("XDG_RUNTIME_DIR") ?? "/tmp";
  return Object.freeze({
    configFile,
    configured: file !== undefined,
    stateDir,
    database: `${stateDir}/tamq.sqlite3`,
    logFile: `${stateDir}/tamq.log`,
    spoolDir: `${stateDir}/spool`,
    recordingsDir: `${stateDir}/recordings`,
    capturesDir: `${stateDir}/captures`,
    socket: absolute("socket", explicit ?? `${runtimeDir}/tamq.sock`),
    socketExplicit: explicit !== undefined,
    policyProfile: get("TAMQ_POLICY_PROFILE") ?? file?.policy_profile ?? file?.policy?.profile ??
      "default",
    stateHubBase: hubBase ?? DEFAULT_STATEHUB,
    stateHubExplicit: hubBase !== undefined,
    stateHubCredential: file?.statehub?.credential_command,
    hubSocket: hubSocket === undefined ? undefined : absolute("hub socket", hubSocket),
    coordSocket: absolute("coordination socket", coordSocket ?? `${runtimeDir}/tamq-coord.sock`),
    coordSocketExplicit: coordSocket !== undefined,
    coordination: coordinationSettings(file),
    profiles: Object.freeze({ ...file?.policy?.profiles }),
    busyTimeoutMs: file?.busy_timeout_ms ?? 5000,
    graceMs: (file?.grace_seconds ?? 10) * 1000,
    delivery: Object.freeze({
      ackMode: delivery.ack_mode ?? file?.coordination?.delivery_ack_mode ??
        DEFAULT_POLICY.ackMode,
      maxAttempts: delivery.max_attempts ?? DEFAULT_POLICY.maxAttempts,
      backoffSeconds: delivery.backoff_seconds ?? DEFAULT_POLICY.backoffSeconds,
      leaseSeconds: delivery.lease_seconds ?? DEFAULT_POLICY.leaseSeconds,
      ackSeconds: delivery.ack_seconds ?? DEFAULT_POLICY.ackSeconds,
      readySeconds: delivery.ready_seconds ?? DEFAULT_POLICY.readySeconds,
    }),
    guard: Object.freeze({
      burst: file?.guard?.burst ?? DEFAULT_GUARD.burst,
      perHour: file?.guard?.per_hour ?? DEFAULT_GUARD.perHour,
    }),
    routing: Object.freeze({
      open: file?.routing?.open ?? DEFAULT_ROUTING.open,
      together: file?.routing?.together ?? DEFAULT_ROUTING.together,
      allow: (file?.routing?.allow ?? []).map(([sender, target]) => ({ sender, target })),
    }),
    windows: Object.freeze({
      commands: Object.freeze({ ...file?.commands }),
      repositories: Object.freeze({ ...file?.repositories }),
    }),
    unobserved: Object.entries(file?.repositories ?? {})
      .flatMap(([name, { observe }]) => observe === "off" ? [name] : []),
    allowNetworkState: file?.allow_network_state_dir ?? false,
  });
}

function coordinationSettings(file: FileSettings | undefined): CoordinationSettings {
  const given = file?.coordination ?? {};
  const base = DEFAULT_COORDINATION;
  return Object.freeze({
    pollSeconds: given.statehub_poll_interval_seconds ?? base.pollSeconds,
    wakeAckSeconds: given.wake_ack_timeout_seconds ?? base.wakeAckSeconds,
    renewSeconds: given.lease_renew_interval_seconds ?? base.renewSeconds,
    leaseSeconds: given.lease_seconds ?? base.leaseSeconds,
    backoffSeconds: Object.freeze([...given.retry_backoff_seconds ?? base.backoffSeconds]),
    maxAttempts: given.max_attempts ?? base.maxAttempts,
    safetyGatedMaxAttempts: given.safety_gated_max_attempts ?? base.safetyGatedMaxAttempts,
    approvalSeconds: given.approval_seconds ?? base.approvalSeconds,
    ...(given.hall_of_helix === undefined ? {} : { hallOfHelix: given.hall_of_helix }),
  });
}

function absolute(what: string, path: string): string {
  if (path.startsWith("/")) return path;
  throw new TamqError("INVALID_ARGUMENT", "path_relative", `${what} "${path}" is not absolute`, {
    hint: "give the full path, beginning with /",
  });
}

/** Undefined when there is none; one that was named must be there. Throws as `loadSettings`. */
export async function readConfig(
  file: string,
  required: boolean,
): Promise<FileSettings | undefined> {
  let text: string;
  try {
    text = Deno.readTextFileSync(file);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound && !required) return undefined;
    throw new TamqError("INVALID_ARGUMENT", "config_unreadable", `cannot read ${file}`, {
      hint: "check TAMQ_CONFIG and the file's permissions",
      cause,
    });
  }
  const { parseConfig } = await importLate<ConfigSchema>("config_schema");
  return parseConfig(text, file);
}
