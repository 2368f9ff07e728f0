/** What every request must show before its content counts: version, identity, session (G-15 to G-17). */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TamqError } from "../base/errors.ts";
import {
  type RequestMeta,
  type ResponseMetaSchema,
  type SessionBinding,
  SessionBindingSchema,
} from "./gen/common_pb.ts";
import type { Peer } from "./identity.ts";

/** Version of the contract; the name of the package is none. */
export const FLEET_PROTOCOL = "0.1";
/** What `ExecuteAuthorized` must name. */
export const AUTHORIZED_CONTRACT = "agent-authorized-origination.v0.1";

export interface Session {
  readonly epoch: string;
  readonly cellId: string;
  readonly bootId: string;
  readonly generation: number;
}

export function bindingOf(session: Session): SessionBinding {
  return create(SessionBindingSchema, {
    dispatcherEpoch: session.epoch,
    cellId: session.cellId,
    bootId: session.bootId,
    sessionGeneration: BigInt(session.generation),
  });
}

/** Throws `protocol_mismatch`, and `identity_mismatch` where a request names another agent. */
export function checkMeta(meta: RequestMeta | undefined, agentId: string): RequestMeta {
  const version = meta?.protocolVersion ?? "";
  if (meta === undefined || version.split(".")[0] !== FLEET_PROTOCOL.split(".")[0]) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "protocol_mismatch",
      `protocol version ${JSON.stringify(version)}; this side speaks ${FLEET_PROTOCOL}`,
      { hint: "use the same tamq on both sides" },
    );
  }
  if (meta.agentId !== agentId) {
    throw new TamqError(
      "PERMISSION_DENIED",
      "identity_mismatch",
      `the request is for agent ${JSON.stringify(meta.agentId)}, not for ${agentId}`,
      { hint: "identity is the certificate's, whatever a request says" },
    );
  }
  return meta;
}

/** Throws `identity_mismatch` unless an agent speaks for itself. */
export function ownMeta(meta: RequestMeta | undefined, peer: Peer): RequestMeta {
  return checkMeta(meta, peer.name);
}

/**
 * Throws unless `shown` is the session `open`: `stale_epoch` (ABORTED) for another dispatcher's,
 * `session_fenced` (UNAUTHENTICATED) for another boot, generation or cell, `session_missing`.
 */
export function checkSession(meta: RequestMeta, open: Session | undefined): Session {
  const shown = meta.session;
  if (open === undefined || shown === undefined) {
    throw new TamqError("UNAUTHENTICATED", "session_missing", "no session is open", {
      hint: "activate the agent first",
    });
  }
  if (shown.dispatcherEpoch !== open.epoch) {
    throw new TamqError(
      "ABORTED",
      "stale_epoch",
      "the request belongs to another epoch than the active one",
      { hint: "activate again, then query what became of the operation" },
    );
  }
  const same = shown.cellId === open.cellId && shown.bootId === open.bootId &&
    shown.sessionGeneration === BigInt(open.generation);
  if (!same) {
    throw new TamqError(
      "UNAUTHENTICATED",
      "session_fenced",
      `session generation ${shown.sessionGeneration} of boot ${shown.bootId} is not the open one`,
      { hint: "a newer boot or session has taken over; this one can do nothing any more" },
    );
  }
  return open;
}

/** Echoes operation and trace, so that a repeated read keeps its identity (G-14). */
export function answerMeta(
  meta: RequestMeta,
  epoch: string,
): MessageInitShape<typeof ResponseMetaSchema> {
  return {
    protocolVersion: FLEET_PROTOCOL,
    operationId: meta.operationId,
    trace: meta.trace,
    dispatcherEpoch: epoch,
  };
}
