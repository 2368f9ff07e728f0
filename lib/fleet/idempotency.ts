/** One request, one effect: durable deduplication of mutations (G-03). */
import { createHash } from "node:crypto";
import { Buffer } from "node:buffer";
import {
  clone,
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { TamqError } from "../base/errors.ts";
import type { RequestMeta } from "./gen/common_pb.ts";
import type { FleetTx } from "./ports.ts";

export interface Scope {
  readonly agentId: string;
  readonly operationId: string;
  readonly key: string;
}

export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/**
 * Digest of what a request asks for: all of it but its meta, which differs between deliveries.
 * Requests hold no maps, so that their binary form is a canonical one.
 */
export function contentDigest<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  const copy = clone(schema, message) as MessageShape<D> & { meta?: RequestMeta };
  delete copy.meta;
  return sha256(toBinary(schema, copy as MessageShape<D>));
}

/** The scope of a request's key. Throws `key_missing`: without one a repeat could not be told. */
export function scopeOf(agentId: string, meta: RequestMeta | undefined): Scope {
  const { operationId = "", idempotencyKey: key = "" } = meta ?? {};
  if (operationId === "" || key === "") {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "key_missing",
      "a mutation needs operation_id and idempotency_key",
      { hint: "choose both once for an operation and keep them over its retries" },
    );
  }
  return { agentId, operationId, key };
}

export function conflict(what: string): TamqError {
  return new TamqError(
    "ABORTED",
    "idempotency_conflict",
    `${what}: the same identity came before with other content; the first request stands`,
    { hint: "read what is recorded; use another identity only for another operation" },
  );
}

/**
 * The recorded response of an identical earlier request, or `work`'s, recorded with it in this
 * transaction. Other content under the same key throws `idempotency_conflict` and changes nothing.
 */
export async function once<O extends DescMessage>(
  tx: FleetTx,
  scope: Scope,
  request: { readonly method: string; readonly digest: string; readonly now: number },
  output: O,
  work: () => Promise<MessageInitShape<O>>,
): Promise<MessageShape<O>> {
  const key = JSON.stringify([scope.agentId, scope.operationId, scope.key]);
  const known = await tx.get("operation", key);
  if (known !== undefined) {
    const { method, digest, response } = known.value;
    if (method !== request.method || digest !== request.digest) {
      throw conflict(`operation ${scope.operationId}`);
    }
    return fromBinary(output, Buffer.from(response, "base64"));
  }
  const response = create(output, await work());
  await tx.insert("operation", key, {
    method: request.method,
    digest: request.digest,
    response: Buffer.from(toBinary(output, response)).toString("base64"),
    at: request.now,
  });
  return response;
}
