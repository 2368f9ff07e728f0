/** The engine's health, each part apart (L-06 for the engine). */
import { errorText } from "../base/errors.ts";
import { rfc3339 } from "../base/clock.ts";
import type { Registry } from "../model/ports.ts";
import type { WireEndpoint } from "../protocol/schema.ts";
import type { HubHealth } from "./observer.ts";
import type { Rules } from "./receipts.ts";
import type { EngineSettings } from "./settings.ts";
import { type CoordStore, SCHEMA_VERSION } from "./store/store.ts";

export function engineStatus(parts: {
  readonly identity: { readonly engineId: string; readonly version: string; readonly pid: number };
  readonly paths: EngineSettings;
  readonly store: CoordStore;
  readonly rules: Rules;
  readonly hub: HubHealth;
  readonly endpoints: readonly WireEndpoint[] | undefined;
  readonly registry: Registry;
}): Record<string, unknown> {
  const { identity, paths, store, rules, hub, endpoints, registry } = parts;
  const held = store.leases.held();
  return {
    engine: {
      ok: true,
      detail: "running",
      engine_id: identity.engineId,
      version: identity.version,
      pid: identity.pid,
      socket: paths.socket,
      policy_profile: rules.profile.name,
      policy_version: rules.profile.version,
      config_version: rules.configVersion,
    },
    sqlite: { ok: true, detail: "readable", path: paths.database, schema: SCHEMA_VERSION },
    gita: gitaHealth(registry),
    state_hub: {
      ok: hub.reachable,
      detail: hub.reachable ? "reachable" : hub.reason ?? "not looked at yet",
      looked_at: hub.lookedAt === null ? null : rfc3339(hub.lookedAt),
    },
    message_service: endpoints === undefined
      ? { ok: false, detail: "does not answer", windows: 0 }
      : {
        ok: true,
        detail: "answers",
        windows: endpoints.reduce((sum, one) => sum + one.attachments.length, 0),
      },
    triggers: store.triggers.counts(),
    leases: { held: held.length },
    projection: { waiting: store.journal.unpublished() },
  };
}

function gitaHealth(registry: Registry): Record<string, unknown> {
  try {
    return { ok: true, detail: "readable", repositories: registry.names().length };
  } catch (error) {
    return { ok: false, detail: errorText(error), repositories: 0 };
  }
}
