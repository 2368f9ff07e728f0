/** A client of the State Hub that the settings mean (K-19, K-16). */
import type { Env, Settings } from "../config.ts";
import { findHub, hubSettings } from "../hub/settings.ts";
import { hubCredential } from "./credentials.ts";
import { type HubClientOptions, StateHubClient } from "./statehub_client.ts";

/** The caller closes it. */
export function connectHub(
  settings: Settings,
  env: Env = Deno.env.get,
  options: Omit<HubClientOptions, "address" | "bearer"> = {},
): StateHubClient {
  const address = findHub(settings, hubSettings(settings, env));
  // The embedded hub knows its user by the kernel, or by its own token.
  const ours = "unix" in address || address.tokenFile !== undefined;
  return new StateHubClient({
    ...options,
    address,
    bearer: ours ? undefined : hubCredential(settings, env),
  });
}
