/** A client of the State Hub that the settings mean (K-19). */
import type { Env, Settings } from "../config.ts";
import { StateHubClient } from "../coord/statehub_client.ts";
import { findHub, hubSettings } from "./settings.ts";

/** The caller closes it. `bearer`: a credential of the configured route, for a hub of others (K-16). */
export function connectHub(
  settings: Settings,
  env: Env = Deno.env.get,
  bearer?: () => Promise<string> | string,
): StateHubClient {
  const address = findHub(settings, hubSettings(settings, env));
  return new StateHubClient({ address, bearer });
}
