/** Who may send what to whom: everything that `send` checks before a row exists (T-06 to T-10, B-04). */
import { createHash } from "node:crypto";
import { TamqError } from "../base/errors.ts";
import { checkBody, MAX_METADATA_BYTES } from "../model/body.ts";
import { ENGINE_SENDER, LOCAL_SENDER, RESERVED_SENDERS } from "../model/envelope.ts";
import { nearest } from "../model/nearest.ts";
import type { Registry } from "../model/ports.ts";
import type { RequestOf } from "../protocol/operations.ts";
import type { Origin } from "./context.ts";

export type SendRequest = RequestOf<"send">;

/** Client ids whose idempotency keys mean something to one kind of sender alone. */
const ENGINE_CLIENT = "coordination-engine";
export const REPLAY_CLIENT = "tamq-replay";

/** SQLite's JSON functions end at 1000 levels, and readers of an export may end sooner. */
const MAX_METADATA_DEPTH = 32;

/** Throws `body_…`, `metadata_too_deep` or `metadata_too_large`; returns the metadata as it is stored. */
export function checkContent(request: SendRequest): { body: string; metadata: string } {
  const body = checkBody(request.body);
  if (!body.ok) {
    const { reason, message, hint } = body.error;
    throw new TamqError("INVALID_ARGUMENT", reason, message, { hint });
  }
  if (depth(request.metadata ?? {}) > MAX_METADATA_DEPTH) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "metadata_too_deep",
      `the metadata is nested deeper than ${MAX_METADATA_DEPTH} levels`,
      { hint: "keep metadata flat: identifiers and short values" },
    );
  }
  const metadata = JSON.stringify(request.metadata ?? {});
  const bytes = new TextEncoder().encode(metadata).length;
  if (bytes > MAX_METADATA_BYTES) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "metadata_too_large",
      `the metadata has ${bytes} bytes; at most ${MAX_METADATA_BYTES} are allowed`,
      { hint: "keep correlation data in metadata and put the rest in the body or a file" },
    );
  }
  return { body: body.value, metadata };
}

/** Levels of objects and arrays; stops counting beyond the limit, so that no input costs a stack. */
function depth(value: unknown, level = 0): number {
  if (typeof value !== "object" || value === null || level > MAX_METADATA_DEPTH) return level;
  let deepest = level + 1;
  for (const inner of Object.values(value)) deepest = Math.max(deepest, depth(inner, level + 1));
  return deepest;
}

/** The sender as the origin proves it, whatever the request says (B-04). Throws `sender_mismatch`. */
export function provenSender(request: SendRequest, origin: Origin): string {
  const { provenance, client_id: client, sender_repo: claimed } = request;
  const window = origin.owner?.attached.window;
  if ((client === ENGINE_CLIENT) !== (provenance === "coordination_engine")) {
    throw mismatch(`client "${client}" cannot send with provenance ${provenance}`);
  }
  if ((client === REPLAY_CLIENT) !== (provenance === "replay")) {
    throw mismatch(`client "${client}" cannot send with provenance ${provenance}`);
  }
  switch (provenance) {
    case "worker":
    case "operator": {
      const repo = origin.owner?.isBroker ? window!.repo : origin.adopted?.repo;
      if (repo === undefined) {
        throw mismatch(`provenance ${provenance} belongs to the broker of an attached window`);
      }
      if (claimed !== repo) throw mismatch(`this window is ${repo}, not ${claimed}`);
      return repo;
    }
    case "cli":
      if (window === undefined) {
        if (claimed === LOCAL_SENDER) return LOCAL_SENDER;
        throw mismatch(`a sender outside every window is "${LOCAL_SENDER}", not ${claimed}`);
      }
      if (claimed !== LOCAL_SENDER && claimed !== window.repo) {
        throw mismatch(`this window is ${window.repo}, not ${claimed}`);
      }
      return window.repo;
    case "coordination_engine":
      if (window !== undefined) throw mismatch(`a window cannot speak for ${ENGINE_SENDER}`);
      if (claimed !== ENGINE_SENDER) throw mismatch(`its sender must be ${ENGINE_SENDER}`);
      return ENGINE_SENDER;
    case "replay":
      // A worker that could replay could speak for anybody.
      if (window !== undefined && claimed !== window.repo) {
        throw mismatch(`a window replays only messages of its own repository, ${window.repo}`);
      }
      return claimed;
  }
}

function mismatch(message: string): TamqError {
  return new TamqError("PERMISSION_DENIED", "sender_mismatch", message, {
    hint: "send with: tamq send, which names the sender by itself",
  });
}

/**
 * Checks target and sender against the registry as it is now (T-07, E-04). Throws
 * `unknown_target`, `unknown_sender`, `ambiguous_repository`, `reserved_name` or
 * `registry_unavailable`.
 */
export function checkRegistered(registry: Registry, sender: string, target: string): void {
  const names = registry.names();
  // Only what is addressed to such a repository is refused. As a sender the name is never its own:
  // a window of that name cannot attach.
  if (RESERVED_SENDERS.includes(target) && names.includes(target)) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "reserved_name",
      `${registry.source} has a repository named "${target}", which is a reserved sender name`,
      { hint: `rename it: gita rename ${target} NEW-NAME` },
    );
  }
  checkName(registry, names, target, "unknown_target");
  if (!RESERVED_SENDERS.includes(sender)) checkName(registry, names, sender, "unknown_sender");
}

function checkName(
  registry: Registry,
  names: readonly string[],
  name: string,
  reason: "unknown_target" | "unknown_sender",
): void {
  const found = registry.find(name);
  if (found === "ambiguous") {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "ambiguous_repository",
      `${registry.source} has more than one repository named "${name}"`,
      { hint: "rename one of them with: gita rename" },
    );
  }
  if (found !== "unknown") return;
  const like = nearest(name, names).map((near) => `"${near}"`);
  throw new TamqError("NOT_FOUND", reason, `"${name}" is not a registered repository`, {
    hint: like.length > 0
      ? `did you mean ${like.join(" or ")}?`
      : `see the registered names with: gita ls; register one with: gita add PATH`,
  });
}

/** SHA-256 over a canonical form of what an idempotency key stands for (T-10). */
export function requestDigest(sender: string, target: string, body: string): Uint8Array {
  const canonical = JSON.stringify(["tamq send 1", sender, target, body]);
  return new Uint8Array(createHash("sha256").update(canonical).digest());
}
