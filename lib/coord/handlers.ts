/** One handler per operation of the engine's socket: who calls, what they may do, the answer. */
import { rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import type { Peer } from "../model/ports.ts";
import { negotiate, PROTOCOL } from "../protocol/handshake.ts";
import type { Handle, Json } from "../socket.ts";
import * as z from "zod/mini";
import type { Approvals } from "./approvals.ts";
import type { Endpoints } from "./endpoints.ts";
import { explain, triggerView } from "./explain.ts";
import { type Applied, type Leases, readHandle, writeHandle } from "./leases.ts";
import {
  ENGINE_CAPABILITIES,
  type EngineOperation,
  engineOperations,
  type EngineRequest,
} from "./operations.ts";
import { type LeaseRow, leaseView } from "./records.ts";
import type { CoordStore } from "./store/store.ts";
import type { Callers, CallerWindow } from "./windows.ts";

export interface EngineHandlerOptions {
  readonly identity: { readonly engineId: string; readonly version: string; readonly pid: number };
  readonly store: CoordStore;
  readonly leases: Leases;
  readonly callers: Callers;
  readonly endpoints: Endpoints;
  readonly approvals: Approvals;
  readonly status: () => Record<string, unknown>;
  /** The process of the message service, by its lock. */
  readonly servicePid: () => number | undefined;
  /** Something changed that decisions depend on. */
  readonly onChange: () => void;
}

type Handlers = {
  [K in EngineOperation]: (
    fields: EngineRequest<K>,
    call: { peer: Peer; protocol: string },
  ) => unknown;
};

/** The function that the socket calls for every request. */
export function createEngineHandlers(options: EngineHandlerOptions): Handle {
  const { store, leases, callers, endpoints, approvals, identity, onChange } = options;
  const leaseOut = (row: LeaseRow) => ({
    ...leaseView(row, rfc3339),
    lease: writeHandle({ leaseId: row.leaseId, token: row.fencingToken }),
    held: row.held,
    local_message_id: row.messageId,
    message_state: row.messageState,
    policy_profile: row.policyProfile,
    policy_version: row.policyVersion,
    config_version: row.configVersion,
  });

  /** A worker's word counts for the leases of its own window alone. */
  const forWindow = async (
    peer: Peer,
    text: string,
    work: (handle: { leaseId: string; token: number }) => Applied,
  ) => {
    const window = await callers.windowOf(peer);
    const handle = readHandle(text);
    const done = await store.commit(() => {
      requireOwn(leases.require(handle), window);
      return work(handle);
    });
    if (!done.ok) {
      onChange(); // what was found expired is decided again
      throw done.error;
    }
    onChange();
    return { lease: leaseOut(done.lease), changed: !done.noop };
  };

  const handlers: Handlers = {
    ping: () => ({
      protocol: PROTOCOL,
      version: identity.version,
      capabilities: [...ENGINE_CAPABILITIES],
      engine_id: identity.engineId,
      pid: identity.pid,
    }),
    attach: async (fields, { peer, protocol }) => {
      // The service may have been started by a window's broker; nobody else in a window attaches.
      if (peer.pid !== options.servicePid()) await callers.requireOutside(peer);
      const answer = await endpoints.attach(fields, protocol);
      onChange();
      return answer;
    },
    status: () => options.status(),
    triggers: ({ state, repo, limit }) => ({
      triggers: store.triggers.list({ state, repo, limit: limit ?? 100 }).map(triggerView),
    }),
    leases: ({ all, limit }) => ({
      leases: store.leases.list(all !== true, limit ?? 100).map(leaseOut),
    }),
    explain: ({ id }) => {
      const explanations = explain(store, id);
      if (explanations.length > 0) return { explanations };
      throw new TamqError("NOT_FOUND", "unknown_source", `nothing is known of "${id}"`, {
        hint: "drafts and what the hub has not told yet are not known here",
      });
    },
    challenge: async ({ trigger_id, action }, { peer }) => {
      await callers.requireOutside(peer);
      const { challenge, trigger } = approvals.challenge(trigger_id, action);
      return { challenge, trigger: triggerView(trigger) };
    },
    approve: async ({ trigger_id, action, why, challenge }, { peer }) => {
      await callers.requireOutside(peer);
      const approval = await approvals.approve(trigger_id, action, why, challenge);
      onChange();
      return {
        approval_id: approval.approvalId,
        trigger_id,
        action,
        expires_at: rfc3339(approval.expiresAt),
      };
    },
    lease: async (_, { peer }) => {
      const window = await callers.windowOf(peer);
      const held = store.leases.held().filter((row) => isOwn(row, window));
      return { repo: window.repo, leases: held.map(leaseOut) };
    },
    ack: ({ lease }, { peer }) =>
      forWindow(peer, lease, (handle) => leases.worker(handle, { type: "acknowledge" })),
    renew: ({ lease }, { peer }) =>
      forWindow(peer, lease, (handle) => leases.worker(handle, { type: "renew" })),
    checkpoint: ({ lease, ...rest }, { peer }) =>
      forWindow(peer, lease, (handle) => leases.checkpoint(handle, rest)),
    release: ({ lease, stop }, { peer }) =>
      forWindow(
        peer,
        lease,
        (handle) =>
          leases.worker(handle, { type: "release", result: stop ? "stopped" : "checkpoint" }),
      ),
    complete: ({ lease }, { peer }) =>
      forWindow(
        peer,
        lease,
        (handle) => leases.worker(handle, { type: "release", result: "completed" }),
      ),
  };

  return async (json: Json, peer: Peer) => {
    const { op, protocol, ...fields } = json as Record<string, unknown>;
    const { newerMinor } = negotiate(protocol);
    if (typeof op !== "string" || !Object.hasOwn(engineOperations, op)) {
      throw new TamqError("INVALID_ARGUMENT", "unknown_operation", "there is no such operation");
    }
    const name = op as EngineOperation;
    const parsed = parse(name, fields, newerMinor);
    // Operations and handlers have the same keys; TypeScript cannot see that the look-ups meet.
    const handler = handlers[name] as (fields: unknown, call: object) => unknown;
    const call = { peer, protocol: newerMinor ? PROTOCOL : protocol as string };
    return { result: await handler(parsed, call) };
  };
}

function parse(name: EngineOperation, fields: object, newerMinor: boolean): unknown {
  const schema = engineOperations[name] as z.ZodMiniObject;
  const known = newerMinor
    ? Object.fromEntries(Object.entries(fields).filter(([key]) => Object.hasOwn(schema.shape, key)))
    : fields;
  const result = z.safeParse(schema, known);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const at = issue.code === "unrecognized_keys" ? issue.keys[0] : issue.path.join(".");
  throw new TamqError(
    "INVALID_ARGUMENT",
    "request_invalid",
    `${name}: ${at ? `"${at}" ` : ""}${issue.message}`,
  );
}

function isOwn(row: LeaseRow, window: CallerWindow): boolean {
  return row.targetRepo === window.repo &&
    (row.endpointId === null || row.endpointId === window.endpointId);
}

function requireOwn(row: LeaseRow, window: CallerWindow): void {
  if (isOwn(row, window)) return;
  throw new TamqError(
    "PERMISSION_DENIED",
    "lease_not_yours",
    `that lease belongs to a window of ${row.targetRepo}, not to this one of ${window.repo}`,
    { hint: "your own: tamq coord lease" },
  );
}
