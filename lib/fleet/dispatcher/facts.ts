/** Facts and recordings: kept once, queued reliably, never more than was confirmed (G-12, G-13, G-21). */
import { Buffer } from "node:buffer";
import { fromJsonString, type JsonObject, toJson } from "@bufbuild/protobuf";
import { errorText, TamqError } from "../../base/errors.ts";
import { newId } from "../../base/ids.ts";
import { ResultCode } from "../gen/common_pb.ts";
import type {
  Asset,
  CompleteUploadRequest,
  ReportExecutionEventRequest,
  RequestUploadRequest,
} from "../gen/dispatcher_pb.ts";
import { ExecutionReceiptSchema } from "../gen/execution_pb.ts";
import { conflict, sha256 } from "../idempotency.ts";
import type { FleetTx } from "../ports.ts";
import type { ExecutionState, FactRecord, UploadRecord } from "../records.ts";
import type { CallContext } from "../rpc.ts";
import { answerMeta, checkSession, ownMeta } from "../session.ts";
import {
  approvedAgent,
  assertActive,
  bindingFromJson,
  type DispatcherCore,
  isFinal,
  moveExecution,
  mustHave,
  sessionOf,
} from "./core.ts";

/** Kind of the facts that tell what became of an execution; their content is its receipt as JSON. */
export const EXECUTION_RESULT = "execution.result";
export const RECORDING_UPLOADED = "recording.uploaded";
/** Of one recording. */
const MAX_ASSET_BYTES = 5n << 30n;

const FINAL: Partial<Record<ResultCode, ExecutionState>> = {
  [ResultCode.UNKNOWN]: "unknown",
  [ResultCode.ACCEPTED]: "accepted",
  [ResultCode.APPLIED]: "applied",
  [ResultCode.FAILED]: "failed",
  [ResultCode.REFUSED]: "refused",
};

/** The state that a receipt's result means. */
export function stateOf(result: ResultCode): ExecutionState {
  return FINAL[result] ?? "unknown";
}

/** Publishes what the queue has not confirmed yet, oldest first. Throws what the queue throws. */
export async function queueFacts(core: DispatcherCore, limit: number): Promise<number> {
  if (core.queue === undefined) return 0;
  const { queueFact } = factHandlers(core);
  const waiting = await core.store.commit((tx) => tx.list("fact", { group: "unqueued", limit }));
  for (const { key } of waiting) await queueFact(key);
  return waiting.length;
}

export function factHandlers(core: DispatcherCore) {
  const { store, clock, epoch } = core;

  async function own(tx: FleetTx, request: { meta?: never }, { peer }: CallContext) {
    await assertActive(tx, epoch);
    const meta = ownMeta(request.meta, peer);
    checkSession(meta, sessionOf((await approvedAgent(tx, peer.name)).value, epoch));
  }

  /** Publishes what is not confirmed yet; returns how many are. Throws what the queue throws. */
  async function queueFact(factId: string): Promise<FactRecord> {
    const found = await store.commit((tx) => tx.get("fact", factId));
    const fact = found!.value;
    if (fact.queuedAt !== undefined) return fact;
    await core.queue?.publish({
      factId,
      kind: fact.kind,
      content: Buffer.from(fact.content, "base64"),
    });
    return await store.commit(async (tx) => {
      const now = (await tx.get("fact", factId))!;
      const queued = { ...now.value, queuedAt: now.value.queuedAt ?? clock.now() };
      await tx.update("fact", factId, now.revision, queued, "queued");
      return queued;
    });
  }

  return {
    queueFact,

    async reportExecutionEvent(request: ReportExecutionEventRequest, context: CallContext) {
      const { factId, contentSha256, content, kind, executionId } = request;
      const agentId = context.peer.name;
      if (factId === "" || sha256(content) !== contentSha256) {
        throw new TamqError(
          "INVALID_ARGUMENT",
          "content_mismatch",
          "a fact needs an id, and the SHA-256 of its content",
        );
      }
      const fact = await store.commit(async (tx) => {
        await own(tx, request as never, context);
        const execution = (await mustHave(tx, executionId)).value;
        if (bindingFromJson(execution.binding).agentId !== agentId) {
          throw new TamqError(
            "PERMISSION_DENIED",
            "not_yours",
            `${executionId} is another agent's`,
          );
        }
        const { fact, isNew } = await keepFact(tx, core, factId, {
          contentSha256,
          kind,
          agentId,
          executionId,
          content: Buffer.from(content).toString("base64"),
        });
        if (isNew && kind === EXECUTION_RESULT) {
          const receipt = fromJsonString(
            ExecutionReceiptSchema,
            new TextDecoder().decode(content),
            { ignoreUnknownFields: true },
          );
          const to = stateOf(receipt.result);
          if (!isFinal(execution.state) && to !== "unknown") {
            const json = toJson(ExecutionReceiptSchema, receipt) as JsonObject;
            await moveExecution(tx, executionId, clock.now(), to, "reported", { receipt: json });
          }
        }
        return fact;
      });
      return {
        meta: answerMeta(request.meta!, epoch),
        result: ResultCode.ACCEPTED,
        receipt: receiptOf(factId, fact),
      };
    },

    async requestUpload(request: RequestUploadRequest, context: CallContext) {
      const { uploadId, executionId } = request;
      const agentId = context.peer.name;
      const objects = core.objects;
      const asset = checkAsset(request.asset);
      const upload: UploadRecord = { agentId, executionId, ...asset, factId: factOf(uploadId) };
      await store.commit(async (tx) => {
        await own(tx, request as never, context);
        if (objects === undefined || uploadId === "") {
          throw new TamqError("FAILED_PRECONDITION", "uploads_off", "no object store is set up", {
            hint: "recordings stay on their host",
          });
        }
        const execution = (await mustHave(tx, executionId)).value;
        if (bindingFromJson(execution.binding).agentId !== agentId) {
          throw new TamqError(
            "PERMISSION_DENIED",
            "not_yours",
            `${executionId} is another agent's`,
          );
        }
        const known = await tx.get("upload", uploadId);
        if (known === undefined) await tx.insert("upload", uploadId, upload);
        else if (JSON.stringify(known.value) !== JSON.stringify(upload)) {
          throw conflict(`upload ${uploadId}`);
        }
      });
      // A grant is a signature over what is kept; asking again changes nothing.
      const grant = await objects!.grant({ uploadId, agentId, ...asset });
      return {
        meta: answerMeta(request.meta!, epoch),
        result: ResultCode.ACCEPTED,
        grant: {
          uploadId,
          method: grant.method,
          url: grant.url,
          headers: { ...grant.headers },
          expiresAtUnixMs: BigInt(grant.expiresAt),
        },
      };
    },

    async completeUpload(request: CompleteUploadRequest, context: CallContext) {
      const { uploadId } = request;
      const asset = checkAsset(request.asset);
      const factId = factOf(uploadId);
      await store.commit(async (tx) => {
        await own(tx, request as never, context);
        const upload = (await tx.get("upload", uploadId))?.value;
        if (upload === undefined || upload.agentId !== context.peer.name) {
          throw new TamqError("NOT_FOUND", "unknown_upload", `no upload ${uploadId} was granted`, {
            hint: "ask for a grant first",
          });
        }
        const { sha256: digest, sizeBytes, contentType, agentId, executionId } = upload;
        const granted = JSON.stringify({ sha256: digest, sizeBytes, contentType });
        if (granted !== JSON.stringify(asset)) throw conflict(`upload ${uploadId}`);
        const content = JSON.stringify({ upload_id: uploadId, ...upload });
        await keepFact(tx, core, factId, {
          contentSha256: sha256(content),
          kind: RECORDING_UPLOADED,
          agentId,
          executionId,
          content: Buffer.from(content).toString("base64"),
        });
      });
      let fact: FactRecord;
      try {
        fact = await queueFact(factId);
      } catch (cause) {
        throw new TamqError(
          "UNAVAILABLE",
          "fact_not_queued",
          `${RECORDING_UPLOADED} is kept and not queued yet: ${errorText(cause)}`,
          { hint: "complete the same upload again", cause },
        );
      }
      return {
        meta: answerMeta(request.meta!, epoch),
        result: ResultCode.APPLIED,
        receipt: receiptOf(factId, fact),
      };
    },
  };
}

function factOf(uploadId: string): string {
  return `${RECORDING_UPLOADED}/${uploadId}`;
}

function receiptOf(factId: string, fact: FactRecord) {
  const { contentSha256, receiptId, at } = fact;
  return { factId, contentSha256, receiptId, recordedAtUnixMs: BigInt(at) };
}

/** Keeps a fact, or returns the one that is kept; other content throws `fact_conflict` (G-12). */
async function keepFact(
  tx: FleetTx,
  core: DispatcherCore,
  factId: string,
  fact: Omit<FactRecord, "receiptId" | "at">,
): Promise<{ fact: FactRecord; isNew: boolean }> {
  const known = await tx.get("fact", factId);
  if (known !== undefined) {
    if (known.value.contentSha256 === fact.contentSha256) {
      return { fact: known.value, isNew: false };
    }
    throw new TamqError(
      "ABORTED",
      "fact_conflict",
      `fact ${factId} was reported with other content`,
      {
        hint: "the first report stands; a correction is another fact",
      },
    );
  }
  const record = {
    ...fact,
    receiptId: newId(core.clock, core.random),
    at: core.clock.now(),
    // Without another queue the store is the queue, and this transaction its confirmation.
    ...(core.queue === undefined ? { queuedAt: core.clock.now() } : {}),
  };
  await tx.insert("fact", factId, record, core.queue === undefined ? "queued" : "unqueued");
  return { fact: record, isNew: true };
}

function checkAsset(asset: Asset | undefined) {
  const { sha256: digest = "", sizeBytes = 0n, contentType = "" } = asset ?? {};
  if (/^[0-9a-f]{64}$/.test(digest) && sizeBytes > 0n && sizeBytes <= MAX_ASSET_BYTES) {
    return { sha256: digest, sizeBytes: Number(sizeBytes), contentType };
  }
  throw new TamqError(
    "INVALID_ARGUMENT",
    "asset_invalid",
    `an asset needs its SHA-256 in lower-case hexadecimal and a size of up to ${MAX_ASSET_BYTES} bytes`,
  );
}
