/** `send`: admission of a message, or the answer to its repetition (T-10, T-18). */
import { newId } from "../base/ids.ts";
import { TamqError } from "../base/errors.ts";
import type { Attached } from "../attachments.ts";
import type { PurgedMessage } from "../model/purge.ts";
import type { MessageRecord } from "../model/records.ts";
import {
  checkContent,
  checkRegistered,
  provenSender,
  requestDigest,
  type SendRequest,
} from "./admission.ts";
import { type Context, type Origin, REATTACH_GRACE_MS } from "./context.ts";
import { isGuarded } from "../model/controls.ts";
import type { StormGuard } from "./guard.ts";
import type { Moves } from "./moves.ts";
import { mustHold } from "./routing.ts";

export interface Admitted {
  readonly messageId: string;
  readonly state: MessageRecord["state"];
  readonly deduplicated: boolean;
  /** It waits until the operator allows the pair (B-18). */
  readonly held: boolean;
}

/** What a replay adds to the send of one line. */
export interface ReplaySource {
  readonly batch: string;
  readonly originalMessageId: string | null;
  /** Checks everything and admits nothing. */
  readonly dryRun: boolean;
}

/** What an earlier send with the same key left: the message itself, or its remains after a purge. */
type Earlier = MessageRecord | PurgedMessage;

export class Sender {
  readonly #ctx: Context;
  readonly #moves: Moves;
  readonly #guard: StormGuard | undefined;
  /** Steady time at which an endpoint lost its last window, by reference. */
  readonly #goneAt = new Map<number, number>();
  readonly #startedAt: number;

  constructor(ctx: Context, moves: Moves, guard?: StormGuard) {
    this.#ctx = ctx;
    this.#guard = guard;
    this.#moves = moves;
    this.#startedAt = ctx.steady.now();
  }

  /**
   * Checks what needs no database; returns the work to run inside a commit. A refusal that leaves a
   * trace in the database (B-14) is returned, not thrown: throwing would undo the trace.
   */
  prepare(
    request: SendRequest,
    origin: Origin,
    replay?: ReplaySource,
  ): () => Admitted | TamqError {
    const { body, metadata } = checkContent(request);
    const sender = provenSender(request, origin);
    const digest = requestDigest(sender, request.target_repo, body);
    return () => {
      const { messages, purge } = this.#ctx.store;
      const { client_id: client, idempotency_key: key } = request;
      const known = messages.byKey(client, key) ?? purge.byKey(client, key);
      // A repetition admits nothing, so it is answered even when the registry has changed since:
      // the client must learn what became of its message (T-10 over T-07).
      if (known !== undefined) {
        this.#repeat(known, request, digest, replay?.dryRun === true);
        const held = "held" in known && known.held === 1 && known.state === "pending";
        return { messageId: known.messageId, state: known.state, deduplicated: true, held };
      }
      checkRegistered(this.#ctx.registry, sender, request.target_repo);
      const sourceRef = origin.owner?.attached.window.endpointRef ??
        origin.adopted?.endpointRef ?? null;
      const bound = this.#endpointFor(request, sourceRef);
      const window = (bound ?? this.#ctx.attachments.byRepo(request.target_repo)[0])?.window;
      const pair = { sender, target: request.target_repo };
      if (isGuarded(request.provenance)) {
        const refusal = this.#guard?.refusal(pair);
        if (refusal !== undefined) return refusal;
      }
      const held = mustHold(this.#ctx, request.provenance, pair, {
        source: sourceRef,
        bound: bound?.window.endpointRef ?? null,
        adopted: origin.adopted,
      });
      const policy = this.#ctx.policyFor(window ?? { repo: request.target_repo });
      const messageId = newId(this.#ctx.clock, this.#ctx.random);
      if (replay?.dryRun) return { messageId, state: "pending", deduplicated: false, held };
      messages.insert({
        messageId,
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
        replayBatch: replay?.batch ?? null,
        replayOf: replay?.originalMessageId ?? null,
        held: held ? 1 : 0,
      });
      return { messageId, state: "pending", deduplicated: false, held };
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

  /** Throws when it is no repetition; binds the message to the endpoint that replaced its own (T-18). */
  #repeat(known: Earlier, request: SendRequest, digest: Uint8Array, look: boolean): void {
    // Of a purged message half the digest is kept.
    if (!equal(known.requestDigest, digest.subarray(0, known.requestDigest.length))) {
      throw conflict(known, "another sender, target or body");
    }
    const wanted = request.endpoint_id;
    if (wanted === undefined) return;
    if (known.endpointRef === null) throw conflict(known, "no endpoint");
    const live = this.#ctx.attachments.byRepo(request.target_repo);
    const found = live.find((attached) => attached.window.endpointId === wanted);
    if (found?.window.endpointRef === known.endpointRef) return;
    // No window to rebind to: the same name is the same request, whether its endpoint lives or not.
    if (found === undefined && known.endpointId === wanted) return;
    if (this.#endpointLives(known.endpointRef)) {
      throw conflict(known, `the live endpoint ${known.endpointId}`);
    }
    if (found === undefined) throw unavailable(wanted, request.target_repo, live);
    // A purged message is over: there is nothing to bind.
    if ("seq" in known && !look) this.#moves.rebind(known, found.window.endpointRef);
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

function conflict(known: Earlier, what: string): TamqError {
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
