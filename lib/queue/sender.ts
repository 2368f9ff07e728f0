/** `send`: admission of a message, or the answer to its repetition (T-10, T-18). */
import { newId } from "../base/ids.ts";
import { TamqError } from "../base/errors.ts";
import type { Attached } from "../attachments.ts";
import type { MessageRecord } from "../model/records.ts";
import {
  checkContent,
  checkRegistered,
  provenSender,
  requestDigest,
  type SendRequest,
} from "./admission.ts";
import { type Context, type Origin, REATTACH_GRACE_MS } from "./context.ts";
import type { Moves } from "./moves.ts";

export interface Admitted {
  readonly message: MessageRecord;
  readonly deduplicated: boolean;
}

export class Sender {
  readonly #ctx: Context;
  readonly #moves: Moves;
  /** Steady time at which an endpoint lost its last window, by reference. */
  readonly #goneAt = new Map<number, number>();
  readonly #startedAt: number;

  constructor(ctx: Context, moves: Moves) {
    this.#ctx = ctx;
    this.#moves = moves;
    this.#startedAt = ctx.steady.now();
  }

  /** Checks what needs no database; returns the work to run inside a commit. */
  prepare(request: SendRequest, origin: Origin): () => Admitted {
    const { body, metadata } = checkContent(request);
    const sender = provenSender(request, origin);
    const digest = requestDigest(sender, request.target_repo, body);
    return () => {
      const { messages } = this.#ctx.store;
      const known = messages.byKey(request.client_id, request.idempotency_key);
      // A repetition admits nothing, so it is answered even when the registry has changed since:
      // the client must learn what became of its message (T-10 over T-07).
      if (known !== undefined) {
        return { message: this.#repeat(known, request, digest), deduplicated: true };
      }
      checkRegistered(this.#ctx.registry, sender, request.target_repo);
      const sourceRef = origin.owner?.attached.window.endpointRef ??
        origin.adopted?.endpointRef ?? null;
      const bound = this.#endpointFor(request, sourceRef);
      const window = (bound ?? this.#ctx.attachments.byRepo(request.target_repo)[0])?.window;
      const policy = this.#ctx.policyFor(window);
      const message = messages.insert({
        messageId: newId(this.#ctx.clock, this.#ctx.random),
        clientId: request.client_id,
        idempotencyKey: request.idempotency_key,
        requestDigest: digest,
        correlationId: request.correlation_id ?? null,
        senderRepo: sender,
        targetRepo: request.target_repo,
        provenance: request.provenance,
        endpointRef: bound?.window.endpointRef ?? null,
        sourceRef,
        maxAttempts: policy.maxAttempts,
        ackMode: policy.ackMode,
        createdAt: this.#ctx.clock.now(),
        eligibleAt: this.#ctx.steady.now(),
        metadata,
        body,
      });
      return { message, deduplicated: false };
    };
  }

  /** An endpoint has lost its last window. */
  endpointLeft(ref: number): void {
    this.#goneAt.set(ref, this.#ctx.steady.now());
  }

  /** The window that the request names, or undefined to queue for the repository (T-18). */
  #endpointFor(request: SendRequest, sourceRef: number | null): Attached | undefined {
    const { endpoint_id: wanted, target_repo: target } = request;
    const live = this.#ctx.attachments.byRepo(target);
    if (wanted !== undefined) {
      const found = live.find((attached) => attached.window.endpointId === wanted);
      if (found === undefined) throw unavailable(wanted, target, live);
      return found;
    }
    if (live.length > 1 && !live.some((attached) => attached.window.endpointRef === sourceRef)) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "ambiguous_endpoint",
        `${target} is open in several tmux servers: ${names(live)}`,
        { hint: "name one with endpoint_id (tamq send --endpoint)" },
      );
    }
    return undefined;
  }

  #repeat(known: MessageRecord, request: SendRequest, digest: Uint8Array): MessageRecord {
    if (!equal(known.requestDigest, digest)) {
      throw conflict(known, "another sender, target or body");
    }
    const wanted = request.endpoint_id;
    if (wanted === undefined) return known;
    if (known.endpointRef === null) throw conflict(known, "no endpoint");
    const live = this.#ctx.attachments.byRepo(known.targetRepo);
    const found = live.find((attached) => attached.window.endpointId === wanted);
    if (found?.window.endpointRef === known.endpointRef) return known;
    // No window to rebind to: the same name is the same request, whether its endpoint lives or not.
    if (found === undefined && known.endpointId === wanted) return known;
    if (this.#endpointLives(known.endpointRef)) {
      throw conflict(known, `the live endpoint ${known.endpointId}`);
    }
    if (found === undefined) throw unavailable(wanted, known.targetRepo, live);
    return this.#moves.rebind(known, found.window.endpointRef);
  }

  /**
   * An endpoint lives while a window of it is attached, and for a moment after, while its tmux
   * server runs: after a restart of this service its brokers need that moment to come back, and a
   * message must not be moved between two live sessions (T-18).
   */
  #endpointLives(ref: number): boolean {
    const { attachments, processes, steady, store } = this.#ctx;
    if (attachments.all().some((attached) => attached.window.endpointRef === ref)) return true;
    const since = this.#goneAt.get(ref) ?? this.#startedAt;
    if (steady.now() - since >= REATTACH_GRACE_MS) return false;
    const endpoint = store.endpoints.get(ref);
    if (endpoint === undefined) return false;
    const pid = Number(endpoint.endpointId.slice(endpoint.endpointId.lastIndexOf("-") + 1));
    return processes.identify(pid)?.start === endpoint.generation;
  }
}

function names(live: readonly Attached[]): string {
  return live.map((attached) => attached.window.endpointId).join(", ");
}

function unavailable(wanted: string, target: string, live: readonly Attached[]): TamqError {
  return new TamqError(
    "UNAVAILABLE",
    "endpoint_unavailable",
    `${target} is not open at endpoint ${wanted}`,
    { hint: live.length > 0 ? `it is open at ${names(live)}` : `open it with: tamq start` },
  );
}

function conflict(known: MessageRecord, what: string): TamqError {
  return new TamqError(
    "ABORTED",
    "idempotency_conflict",
    `this idempotency key was used for ${known.messageId} with ${what}`,
    { hint: "send a different request under a new idempotency key" },
  );
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
