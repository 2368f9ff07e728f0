/** The health of each part of the service, separately (L-06). */
import { rfc3339 } from "./base/clock.ts";
import { errorText } from "./base/errors.ts";
import type { ServiceIdentity } from "./handlers.ts";
import type { Registry } from "./model/ports.ts";
import { PROTOCOL } from "./protocol/handshake.ts";
import type { WireEndpoint, WireStatus } from "./protocol/schema.ts";
import type { Queue } from "./queue.ts";
import { PEER_CHECK } from "./socket.ts";

export interface StatusSources {
  readonly identity: ServiceIdentity;
  readonly socket: string;
  readonly connections: () => number;
  readonly database: string;
  /** The schema version, read from the database now; throws when it cannot be read. */
  readonly schemaVersion: () => number;
  readonly registry: Registry;
  readonly queue: Pick<Queue, "summary" | "controls">;
  readonly endpoints: () => WireEndpoint[];
}

/** Each part is asked by itself: one that fails says so and hides no other. */
export function serviceStatus(sources: StatusSources): WireStatus {
  const { identity } = sources;
  const endpoints = sources.endpoints();
  const windows = endpoints.reduce((count, endpoint) => count + endpoint.attachments.length, 0);
  return {
    service: {
      ok: true,
      detail: `listening; ${windows} ${windows === 1 ? "window" : "windows"} attached`,
      version: identity.version,
      protocol: PROTOCOL,
      service_id: identity.serviceId,
      pid: identity.pid,
      started_at: rfc3339(identity.startedAt),
      socket: sources.socket,
      peer_check: PEER_CHECK,
      connections: sources.connections(),
    },
    sqlite: sqlite(sources),
    gita: gita(sources.registry),
    state_hub: {
      ok: true,
      detail: "not observed by this service; the coordination engine does that",
    },
    ...queueAndLeases(sources.queue),
    controls: controls(sources.queue),
    endpoints,
  };
}

function sqlite(sources: StatusSources): WireStatus["sqlite"] {
  try {
    const schema = sources.schemaVersion();
    return { ok: true, detail: "readable", path: sources.database, schema };
  } catch (error) {
    return { ok: false, detail: errorText(error), path: sources.database, schema: 0 };
  }
}

function gita(registry: Registry): WireStatus["gita"] {
  try {
    const repositories = registry.names().length;
    return { ok: true, detail: "readable", path: registry.source, repositories };
  } catch (error) {
    return { ok: false, detail: errorText(error), path: registry.source, repositories: 0 };
  }
}

function controls(queue: Pick<Queue, "controls">): WireStatus["controls"] {
  try {
    return queue.controls.summary();
  } catch (error) {
    return {
      ok: false,
      detail: errorText(error),
      paused_at: null,
      open: false,
      together: false,
      allowed: [],
      held: [],
      blocked: [],
    };
  }
}

function queueAndLeases(queue: Pick<Queue, "summary">): Pick<WireStatus, "queue" | "leases"> {
  try {
    const { states, cancelled, activeLeases } = queue.summary();
    // Somebody withdrew those: nothing is wrong with them.
    const waiting = states.pending ?? 0;
    const failed = (states.failed ?? 0) - cancelled;
    return {
      queue: { ok: true, detail: `${waiting} waiting, ${failed} failed`, states, cancelled },
      leases: {
        ok: true,
        detail: activeLeases === 1
          ? "1 delivery under way"
          : `${activeLeases} deliveries under way`,
        active: activeLeases,
      },
    };
  } catch (error) {
    const detail = errorText(error);
    return {
      queue: { ok: false, detail, states: {}, cancelled: 0 },
      leases: { ok: false, detail, active: 0 },
    };
  }
}
