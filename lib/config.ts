/**
 * Settings: defaults < file < environment < flags (C-02). Frozen once loaded. The parser and the
 * schema of the file are imported only when there is a file: ordinary verbs start without them.
 */
import { TamqError } from "./base/errors.ts";
import { importLate } from "./base/late.ts";
import { DEFAULT_POLICY, type DeliveryPolicy } from "./model/retry_schedule.ts";

export interface Settings {
  readonly configFile: string;
  /** Whether that file exists. */
  readonly configured: boolean;
  readonly stateDir: string;
  readonly database: string;
  readonly logFile: string;
  readonly spoolDir: string;
  readonly socket: string;
  /** True when file or environment name the socket; then no other one is ever looked for. */
  readonly socketExplicit: boolean;
  readonly policyProfile: string;
  readonly stateHubBase: string;
  /** How long SQLite waits for another writer, milliseconds (Q-01). */
  readonly busyTimeoutMs: number;
  /** How long a stopping service may take, milliseconds (L-03). */
  readonly graceMs: number;
  readonly delivery: DeliveryPolicy;
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
  statehub?: { api_base?: string };
  delivery?: {
    ack_mode?: "injected" | "acknowledged";
    max_attempts?: number;
    backoff_seconds?: number[];
    lease_seconds?: number;
    ack_seconds?: number;
    ready_seconds?: number;
  };
}

/** What is used of `config_schema.ts`. */
interface ConfigSchema {
  parseConfig(text: string, file: string): FileSettings;
}

const DEFAULT_STATEHUB = "http://127.0.0.1:8000";

/** Reads environment and file; throws `config_invalid` with file, key and what is allowed. */
export async function loadSettings(env: Env = Deno.env.get): Promise<Settings> {
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
  const file = await readConfig(configFile, get("TAMQ_CONFIG") !== undefined);
  const stateDir = absolute(
    "state directory",
    get("TAMQ_STATE_DIR") ?? file?.state_dir ??
      `${get("XDG_STATE_HOME") ?? `${home()}/.local/state`}/tamq`,
  );
  const explicit = get("TAMQ_SOCKET") ?? file?.socket;
  const delivery = file?.delivery ?? {};
  return Object.freeze({
    configFile,
    configured: file !== undefined,
    stateDir,
    database: `${stateDir}/tamq.sqlite3`,
    logFile: `${stateDir}/tamq.log`,
    spoolDir: `${stateDir}/spool`,
    socket: absolute("socket", explicit ?? `${get("XDG_RUNTIME_DIR") ?? "/tmp"}/tamq.sock`),
    socketExplicit: explicit !== undefined,
    policyProfile: get("TAMQ_POLICY_PROFILE") ?? file?.policy_profile ?? "default",
    stateHubBase: get("STATEHUB_API_BASE") ?? file?.statehub?.api_base ?? DEFAULT_STATEHUB,
    busyTimeoutMs: file?.busy_timeout_ms ?? 5000,
    graceMs: (file?.grace_seconds ?? 10) * 1000,
    delivery: Object.freeze({
      ackMode: delivery.ack_mode ?? DEFAULT_POLICY.ackMode,
      maxAttempts: delivery.max_attempts ?? DEFAULT_POLICY.maxAttempts,
      backoffSeconds: delivery.backoff_seconds ?? DEFAULT_POLICY.backoffSeconds,
      leaseSeconds: delivery.lease_seconds ?? DEFAULT_POLICY.leaseSeconds,
      ackSeconds: delivery.ack_seconds ?? DEFAULT_POLICY.ackSeconds,
      readySeconds: delivery.ready_seconds ?? DEFAULT_POLICY.readySeconds,
    }),
  });
}

function absolute(what: string, path: string): string {
  if (path.startsWith("/")) return path;
  throw new TamqError("INVALID_ARGUMENT", "path_relative", `${what} "${path}" is not absolute`, {
    hint: "give the full path, beginning with /",
  });
}

async function readConfig(file: string, required: boolean): Promise<FileSettings | undefined> {
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
