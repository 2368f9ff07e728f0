/** Where the hub keeps its things; beside the message service's, in a folder of its own (C-02, K-21). */
import { TamqError } from "../base/errors.ts";
import type { Env, Settings } from "../config.ts";
import { liveHolder } from "../ipc/lock.ts";

export interface HubSettings {
  /** Lock, database, token and log. */
  readonly stateDir: string;
  readonly database: string;
  readonly tokenFile: string;
  readonly logFile: string;
  readonly socket: string;
  readonly busyTimeoutMs: number;
  readonly graceMs: number;
}

/** The port of the documented default address, `http://127.0.0.1:8000`. */
export const DEFAULT_TCP_PORT = 8000;

export function hubSettings(settings: Settings, env: Env = Deno.env.get): HubSettings {
  const stateDir = `${settings.stateDir}/hub`;
  const socket = env("TAMQ_HUB_SOCKET") || settings.hubSocket ||
    `${env("XDG_RUNTIME_DIR") || "/tmp"}/tamq-hub.sock`;
  if (!socket.startsWith("/")) {
    throw new TamqError("INVALID_ARGUMENT", "path_relative", `socket "${socket}" is not absolute`, {
      hint: "give TAMQ_HUB_SOCKET the full path, beginning with /",
    });
  }
  return Object.freeze({
    stateDir,
    database: `${stateDir}/hub.sqlite3`,
    tokenFile: `${stateDir}/token`,
    logFile: `${stateDir}/hub.log`,
    socket,
    busyTimeoutMs: settings.busyTimeoutMs,
    graceMs: settings.graceMs,
  });
}

/** How a State Hub is reached. */
export type HubAddress =
  | { readonly unix: string }
  | { readonly base: string; readonly tokenFile?: string };

/**
 * The State Hub to use (K-19): the base that was set; without one the embedded hub that runs on this
 * state directory, else the documented default. `explicit`: environment or file name a base.
 *
 * Where a token of ours lies, whatever listens on loopback must prove that it knows it: the embedded
 * hub may be down and somebody else's program in its place.
 */
export function findHub(
  settings: Settings,
  hub: HubSettings,
  explicit: boolean = settings.stateHubExplicit,
): HubAddress {
  if (!explicit) {
    const live = liveHolder(hub.stateDir);
    if (live !== undefined) return { unix: live.socket };
  }
  let url: URL;
  try {
    url = new URL(settings.stateHubBase);
  } catch (cause) {
    throw invalidBase(cause);
  }
  if (url.protocol === "unix:") return { unix: decodeURIComponent(url.pathname) };
  if (url.protocol !== "http:" && url.protocol !== "https:") throw invalidBase(undefined);
  const loopback = ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (loopback && exists(hub.tokenFile)) {
    return { base: settings.stateHubBase, tokenFile: hub.tokenFile };
  }
  return { base: settings.stateHubBase };
}

function invalidBase(cause: unknown): TamqError {
  return new TamqError(
    "INVALID_ARGUMENT",
    "hub_address_invalid",
    "the State Hub's address is none of http, https and unix",
    { hint: "set STATEHUB_API_BASE to an address like http://127.0.0.1:8000", cause },
  );
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
