/** Hands waiting messages to open windows, one at a time each, oldest first (T-25, T-26). */
import { errorText } from "../base/errors.ts";
import type { Attached } from "../attachments.ts";
import type { MessageRecord } from "../model/records.ts";
import { type Context, targetOf } from "./context.ts";
import type { Moves } from "./moves.ts";
import { heldBack } from "./waiting.ts";

/** After a commit failed (full disk, another writer) a claim is tried again. */
const RETRY_MS = 1000;

export class Dispatcher {
  readonly #ctx: Context;
  readonly #moves: Moves;
  readonly #wake: (at: number) => void;
  /** Windows for which something became eligible while a claim was under way. */
  readonly #again = new WeakSet<Attached>();
  #stopped = false;

  constructor(ctx: Context, moves: Moves, wake: (at: number) => void) {
    this.#ctx = ctx;
    this.#moves = moves;
    this.#wake = wake;
  }

  /** No lease is taken from now on (L-03). */
  stop(): void {
    this.#stopped = true;
  }

  /** Looks whether anything waits for windows of `repo`, or for any window. */
  pumpAll(repo?: string, expectWork = false): void {
    const { attachments } = this.#ctx;
    for (const attached of repo === undefined ? attachments.all() : attachments.byRepo(repo)) {
      this.pump(attached, expectWork);
    }
  }

  /**
   * Takes a lease for `attached` if it can take a message now. `expectWork` skips the look before
   * the transaction: the work that makes a message eligible stands before this one in the same
   * commit, so that both cost one write to the disk.
   */
  pump(attached: Attached, expectWork = false): void {
    if (!this.#ready(attached)) return;
    if (attached.claiming) {
      this.#again.add(attached);
      return;
    }
    if (!expectWork && this.#candidate(attached) === undefined) return;
    attached.claiming = true;
    this.#ctx.commit.run(() => this.#claim(attached)).then(
      (leased) => {
        attached.claiming = false;
        const again = this.#again.delete(attached);
        if (leased !== undefined) this.#deliver(attached, leased);
        // Whoever asked in the meantime may stand in a commit that is still to come: what it makes
        // eligible cannot be seen yet.
        else if (again) this.pump(attached, true);
      },
      (error) => {
        attached.claiming = false;
        this.#ctx.log.warn("claim failed", {
          repo: attached.window.repo,
          error: errorText(error),
        });
        this.#wake(this.#ctx.steady.now() + RETRY_MS);
      },
    );
  }

  #ready(attached: Attached): boolean {
    // A delivery taken over from an earlier connection may be settled over that one, or be
    // acknowledged, and its broker may never have seen it: then nobody would ever release it here.
    const { outstanding } = attached;
    if (
      outstanding?.adopted &&
      this.#ctx.store.messages.byLease(outstanding.leaseToken) === undefined
    ) attached.outstanding = undefined;
    return !this.#stopped && !this.#ctx.valve.paused && attached.live && attached.gate.open &&
      !attached.silent &&
      attached.outstanding === undefined;
  }

  #candidate(attached: Attached): MessageRecord | undefined {
    const { store, steady } = this.#ctx;
    const { endpointRef, repo } = attached.window;
    const now = steady.now();
    const until = store.endpoints.backoffUntil(endpointRef, repo);
    if (until !== undefined && until > now) return undefined;
    const message = store.messages.next(targetOf(this.#ctx, attached.window), now);
    // The oldest one: what follows it was admitted later and is held back as well (B-11).
    return message === undefined || heldBack(this.#ctx, attached.window, message)
      ? undefined
      : message;
  }

  #claim(attached: Attached): MessageRecord | undefined {
    if (!this.#ready(attached)) return undefined;
    const message = this.#candidate(attached);
    if (message === undefined) return undefined;
    return this.#moves.lease(message, attached.window, this.#ctx.policyFor(attached.window));
  }

  #deliver(attached: Attached, message: MessageRecord): void {
    const leaseToken = message.leaseToken!;
    if (!attached.live) {
      this.#unsent(message);
      return;
    }
    attached.outstanding = { messageId: message.messageId, leaseToken, adopted: false };
    try {
      attached.port.deliver({
        messageId: message.messageId,
        attempt: message.attemptCount,
        leaseToken,
        envelope: {
          message_id: message.messageId,
          sender_repo: message.senderRepo,
          provenance: message.provenance,
          body: message.body,
          ack_requested: message.ackMode === "acknowledged",
        },
      });
    } catch (error) {
      attached.outstanding = undefined;
      this.#ctx.log.error("delivery could not be handed over", {
        message_id: message.messageId,
        error: errorText(error),
      });
      this.#unsent(message);
    }
  }

  /** The lease is durable but nobody was told: it certainly was not written. */
  #unsent(leased: MessageRecord): void {
    const { commit, store, policyFor, log } = this.#ctx;
    commit.run(() => {
      const message = store.messages.byLease(leased.leaseToken!);
      if (message === undefined) return;
      const failure = { outcome: "failed", reason: "detached", scope: "target" } as const;
      this.#moves.failed(message, failure, policyFor({ repo: message.targetRepo }));
    }).catch((error) => {
      // The lease expires instead.
      log.warn("lease not released", { message_id: leased.messageId, error: errorText(error) });
    });
  }
}
