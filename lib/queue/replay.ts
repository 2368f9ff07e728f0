/** Lines of an exported file, admitted again (Q-06, T-20): each one is an ordinary `send`. */
import { createHash } from "node:crypto";
import { TamqError } from "../base/errors.ts";
import { hex } from "../base/ids.ts";
import type { RequestOf, ResponseOf } from "../protocol/operations.ts";
import { REPLAY_CLIENT, type SendRequest } from "./admission.ts";
import type { Origin } from "./context.ts";
import type { Admitted, Sender } from "./sender.ts";

type Replay = RequestOf<"replay">;
type Entry = Replay["entries"][number];
type Result = ResponseOf<"replay">["results"][number];

/**
 * The work of one `replay` operation, to run inside a commit: entries in their order, each refused
 * or admitted on its own. With `strict` the first refusal is the last result.
 */
export function replayWork(sender: Sender, request: Replay, origin: Origin): () => Result[] {
  const { batch, strict = false, dry_run: dryRun = false } = request;
  const prepared = request.entries.map((entry): () => Admitted | TamqError => {
    try {
      const source = { batch, originalMessageId: entry.original_message_id ?? null, dryRun };
      return sender.prepare(sendOf(request, entry), origin, source);
    } catch (error) {
      return () => {
        throw error;
      };
    }
  });
  return () => {
    const results: Result[] = [];
    for (const admit of prepared) {
      try {
        const admitted = admit();
        if (admitted instanceof TamqError) throw admitted;
        const { messageId, deduplicated, state } = admitted;
        // Nothing has the id that a dry run made up.
        const message_id = dryRun && !deduplicated ? null : messageId;
        results.push({ ok: true, message_id, deduplicated, state });
      } catch (error) {
        // A database that fails fails the whole: what was written is undone and may come again.
        if (!(error instanceof TamqError)) throw error;
        results.push({ ok: false, error: error.toWire() });
        if (strict) break;
      }
    }
    return results;
  };
}

function sendOf(request: Replay, entry: Entry): SendRequest {
  return {
    client_id: REPLAY_CLIENT,
    idempotency_key: entry.original_message_id ?? contentKey(entry),
    sender_repo: entry.sender_repo,
    target_repo: entry.target_repo,
    endpoint_id: request.endpoint_id,
    provenance: "replay",
    metadata: entry.metadata ?? {},
    body: entry.body,
    ...(entry.correlation_id === undefined ? {} : { correlation_id: entry.correlation_id }),
  };
}

/** Of a line without an id: equal lines are one message (T-20). */
export function contentKey(entry: Entry): string {
  const { sender_repo, target_repo, correlation_id = null, metadata = {}, body } = entry;
  const canonical = JSON.stringify([
    "tamq replay 1",
    sender_repo,
    target_repo,
    correlation_id,
    sorted(metadata),
    body,
  ]);
  return `sha256:${hex(createHash("sha256").update(canonical).digest())}`;
}

/** The same value with the keys of its objects in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  // Pairs, not an object: that would put keys that look like numbers first again, whatever they are.
  return entries.map(([key, inner]) => [key, sorted(inner)]);
}
