/** The environment of new windows. */
import type { Env } from "../config.ts";

/**
 * A tmux server keeps the environment of whoever started it first; a broker must find the same
 * program, settings, socket and registry as the `tamq start` that opens its window.
 */
const PASSED = ["PATH", "HOME", "DENO_DIR", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME"];

/** Read by us and gita alone; these take an empty value for unset. */
const OURS = [
  "TAMQ_CONFIG",
  "TAMQ_STATE_DIR",
  "TAMQ_SOCKET",
  "TAMQ_POLICY_PROFILE",
  "XDG_CONFIG_HOME",
  "XDG_STATE_HOME",
  "GITA_PROJECT_HOME",
  "STATEHUB_API_BASE",
  "TAMQ_HUB_SOCKET",
  "TAMQ_COORD_SOCKET",
];

/** What to set in a window; `server` holds the names that the tmux server would set by itself. */
export function windowEnvironment(env: Env, server: ReadonlySet<string>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const name of [...PASSED, ...OURS]) {
    const value = env(name);
    if (value !== undefined) result[name] = value;
    // A stale setting of the server's would send the broker to another service. tmux cannot unset
    // a variable for one window.
    else if (OURS.includes(name) && server.has(name)) result[name] = "";
  }
  return result;
}
