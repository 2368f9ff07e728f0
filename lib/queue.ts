/**
 * The durable queue as the service uses it: admission, dispatch, settlement (T-06 to T-19, T-25,
 * T-26). Results have the shapes of the operation table; failures are TamqErrors.
 */
import type { Attached, Attachments } from "./attachments.ts";
import type { Clock } from "./base/clock.ts";
import { TamqError } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import { identify } from "./base/proc.ts";
import type { Random } from "./base/random.ts";
import type { DeliveryPort, Processes, Registry, Window } from "./model/ports.ts";
import { cursorOf, historyQuery } from "./model/history.ts";
import { DEFAULT_ROUTING, type GuardPolicy, type RoutingPolicy } from "./model/controls.ts";
import type { EndpointFacts, MessageRecord, QueueStore, ReceiptData } from "./model/records.ts";
import { attemptView, messageView } from "./model/view.ts";
import type { RequestOf, ResponseOf } from "./protocol/operations.ts";
import type { Settlement } from "./protocol/schema.ts";
import {
  type Commit,
  type Context,
  holderAlive,
  holderText,
  type Origin,
} from "./queue/context.ts";
import { OperatorControls } from "./queue/controls.ts";
import { Deadlines } from "./queue/deadlines.ts";
import { Dispatcher } from "./queue/dispatch.ts";
import { StormGuard } from "./queue/guard.ts";
import { Moves } from "./queue/moves.ts";
import { purgeOperation, Purger } from "./queue/purger.ts";
import { replayWork } from "./queue/replay.ts";
import { letConfiguredGo, openedBeside } from "./queue/routing.ts";
import { Sender } from "./queue/sender.ts";
import { adoptFormerWork, settleLease } from "./queue/settle.ts";
import { Steady } from "./queue/steady.ts";
import { waitingReason } from "./queue/waiting.ts";

export type { Commit, Origin } from "./queue/context.ts";
export type { EndpointFacts } from "./model/records.ts";

export interface QueueOptions {
  readonly store: QueueStore;
  readonly commit: Commit;
  readonly attachments: Attachments;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The policy of a window, of a repository without one, or of none in particular. */
  readonly policyFor: Context["policyFor"];
  /** Tells dead brokers and tmux servers from living ones; the kernel when absent. */
  readonly processes?: Pick<Processes, "identify">;
  /** How much a worker may write to one repository (B-14); no bound when absent. */
  readonly guard?: GuardPolicy;
  /** Who may write to whom (B-18). */
  readonly routing?: RoutingPolicy;
  /** Called in the last commit: what else the receipt of the shutdown says. */
  readonly lastWords?: () => ReceiptData;
}

/** What a broker brings along from an earlier connection (T-25). */
export interface Carried {
  /** An attempt it made whose report was not yet answered. */
  readonly outstanding?: Settlement;
  /** Token of the attempt it is making now; null when none, undefined when it does not say. */
  readonly inProgress?: string | null;
}

export class Queue {
  readonly #ctx: Context;
  readonly #moves: Moves;
  readonly #sender: Sender;
  readonly #dispatcher: Dispatcher;
  readonly #deadlines: Deadlines;
  readonly #purger: Purger;
  readonly #operator: OperatorControls;
  #phase: "new" | "running" | "stopping" | "stopped" = "new";

  constructor(options: QueueOptions) {
    this.#ctx = {
      ...options,
      steady: new Steady(options.clock),
      processes: options.processes ?? { identify },
      routing: options.routing ?? DEFAULT_ROUTING,
      valve: { paused: false },
    };
    const guard = options.guard && new StormGuard(this.#ctx, options.guard);
    this.#purger = new Purger(this.#ctx);
    this.#moves = new Moves(this.#ctx, (at) => this.#deadlines.consider(at));
    this.#sender = new Sender(this.#ctx, this.#moves, guard);
    this.#dispatcher = new Dispatcher(
      this.#ctx,
      this.#moves,
      (at) => this.#deadlines.consider(at),
    );
    this.#deadlines = new Deadlines(this.#ctx, this.#moves, () => this.#dispatcher.pumpAll());
    this.#operator = new OperatorControls(
      this.#ctx,
      guard,
      (repo) => this.#dispatcher.pumpAll(repo),
    );
  }

  /**
   * Takes over what an earlier service left: its leases get time for their brokers to attach again
   * (T-19, T-25). Call once, before anything else.
   */
  async start(): Promise<void> {
    const { commit, clock, store } = this.#ctx;
    const held = await commit.run(() => {
      store.receipts.add("start", clock.now(), { pid: Deno.pid });
      letConfiguredGo(this.#ctx);
      return adoptFormerWork(this.#ctx, this.#moves);
    });
    this.#ctx.valve.paused = store.controls.pausedAt() !== undefined;
    this.#phase = "running";
    this.#deadlines.start();
    for (const lease of held) this.#deadlines.watchHolder(lease.leaseToken!, lease.leaseHolder!);
  }

  /**
   * No new leases; waits for the last commit, marks endpoints disconnected and writes a `shutdown`
   * receipt (L-03). Leases stay for their brokers to settle with the next service.
   */
  async stop(): Promise<void> {
    if (this.#phase === "stopping" || this.#phase === "stopped") return;
    this.#phase = "stopping";
    this.#dispatcher.stop();
    this.#deadlines.stop();
    this.#purger.stop();
    const { commit, clock, log, store } = this.#ctx;
    await commit.drain();
    try {
      await commit.run(() => {
        const { states, leases } = store.messages.counts();
        store.endpoints.allDisconnected(clock.now());
        const facts = { pid: Deno.pid, ...states, leases, ...this.#ctx.lastWords?.() };
        store.receipts.add("shutdown", clock.now(), facts);
      });
    } catch (error) {
      // A full disk must not keep a service from stopping; the next start repairs the marks.
      log.warn("shutdown not recorded", { reason: reasonOf(error) });
    }
    await commit.drain();
    this.#phase = "stopped";
  }

  /** The reference by which windows name their endpoint; the same for the same tmux server (E-01). */
  registerEndpoint(facts: EndpointFacts): Promise<number> {
    const { commit, clock, store } = this.#ctx;
    return commit.run(() => store.endpoints.register(facts, clock.now()));
  }

  /** Admits a message or recognises its repetition; resolves once it is on disk (T-10). */
  async send(request: RequestOf<"send">, origin: Origin): Promise<ResponseOf<"send">> {
    this.#mustRun();
    const admitted = this.#ctx.commit.run(this.#sender.prepare(request, origin));
    // In the same commit, so that the way from block to terminal waits for the disk once.
    this.#dispatcher.pumpAll(request.target_repo, true);
    const answer = await admitted;
    if (answer instanceof TamqError) throw answer;
    const { messageId, deduplicated, state, held } = answer;
    return { message_id: messageId, deduplicated, state, ...held ? { held } : {} };
  }

  /** Admits lines of an exported file in their order, in one commit (Q-06, T-20). */
  async replay(request: RequestOf<"replay">, origin: Origin): Promise<ResponseOf<"replay">> {
    this.#mustRun();
    const admitted = this.#ctx.commit.run(replayWork(this.#sender, request, origin));
    const targets = new Set(request.entries.map((entry) => entry.target_repo));
    for (const target of targets) this.#dispatcher.pumpAll(target, true);
    return { results: await admitted };
  }

  /** Counts, begins or goes on with a purge. Throws `no_filter`, `unknown_receipt`. */
  purge(request: RequestOf<"purge">): Promise<ResponseOf<"purge">> {
    this.#mustRun();
    return purgeOperation(this.#purger, request);
  }

  /** What the operator alone may do. */
  get controls(): OperatorControls {
    this.#mustRun();
    return this.#operator;
  }

  /** Throws `unknown_message`. */
  message(id: string): ResponseOf<"message"> {
    const message = this.#find(id);
    return {
      message: this.#view(message),
      attempts: this.#ctx.store.attempts.of(message.seq).map(attemptView),
    };
  }

  /** Throws `invalid_time` or `invalid_cursor`. */
  history(filters: RequestOf<"history">): ResponseOf<"history"> {
    const page = this.#ctx.store.messages.history(historyQuery(filters));
    return {
      messages: page.records.map((message) => this.#view(message)),
      next_cursor: cursorOf(page),
    };
  }

  /** Records an acknowledgement, also a late one (T-15). Throws `unknown_message`. */
  ack(id: string): Promise<ResponseOf<"ack">> {
    return this.#change(id, (message) => this.#moves.ack(message));
  }

  /** Starts a failed message over (T-16, T-27). Throws `worker_refused`, `invalid_state`. */
  async retry(id: string, origin: Origin): Promise<ResponseOf<"retry">> {
    if (origin.owner !== undefined) {
      throw new TamqError(
        "PERMISSION_DENIED",
        "worker_refused",
        `a program in the window of ${origin.owner.attached.window.repo} cannot retry messages`,
        { hint: "run tamq retry from a shell outside the windows that tamq opened" },
      );
    }
    return await this.#change(id, (message) => this.#moves.retry(message));
  }

  /** Withdraws a pending message (T-27). Throws `already_leased`, `invalid_state`. */
  cancel(id: string): Promise<ResponseOf<"cancel">> {
    return this.#change(id, (message) => this.#moves.cancel(message));
  }

  /**
   * Settles what is outstanding first, then takes the window in; its gate counts as closed until its
   * broker says otherwise. Throws `already_attached` (E-02).
   */
  async attach(window: Window, port: DeliveryPort, carried: Carried = {}): Promise<Attached> {
    this.#mustRun();
    const { attachments, commit, steady } = this.#ctx;
    const attached = attachments.add(window, port, steady.now(), (old) => {
      this.#deadlines.gateGone(old);
    });
    let letGo = 0;
    try {
      const held = await commit.run(() => {
        const taken = this.#takeIn(window, carried);
        letGo = openedBeside(this.#ctx, window);
        return taken;
      });
      if (held !== undefined) {
        // Its broker may still be writing it: nothing else goes there until that is settled or over.
        this.#deadlines.unwatchHolder(held.leaseToken!);
        const leaseToken = held.leaseToken!;
        attached.outstanding = { messageId: held.messageId, leaseToken, adopted: true };
      }
    } catch (error) {
      attachments.remove(attached);
      throw error;
    }
    if (attached.live) this.#deadlines.gateClosed(attached);
    // Windows beside it may have messages from it that were held until now.
    if (letGo > 0) this.#dispatcher.pumpAll();
    return attached;
  }

  /** What the broker says of its window (B-08); opening hands over the next message. */
  setGate(attached: Attached, open: boolean, reason?: string): void {
    if (!attached.live) return;
    attached.silent = false;
    const changed = attached.gate.open !== open;
    attached.gate = {
      open,
      reason: open ? null : reason ?? null,
      since: changed ? this.#ctx.steady.now() : attached.gate.since,
    };
    if (open) this.#deadlines.gateGone(attached);
    else if (changed) this.#deadlines.gateClosed(attached);
    this.#dispatcher.pump(attached);
  }

  /**
   * Records how the attempt with that exact token ended. `accepted: false` with `lease_lost` means
   * that the lease is over and nothing was changed. Rejects when it could not be made durable; the
   * broker then settles again.
   */
  async settle(
    attached: Attached,
    settlement: Settlement,
  ): Promise<{ accepted: boolean; reason?: string }> {
    if (this.#phase === "stopped") this.#mustRun();
    attached.silent = false;
    const held = attached.outstanding;
    const mine = held?.leaseToken === settlement.lease_token;
    if (mine) attached.outstanding = undefined;
    const settled = this.#ctx.commit.run(() =>
      settleLease(this.#ctx, this.#moves, attached.window, settlement)
    );
    this.#dispatcher.pump(attached, true);
    try {
      const accepted = await settled;
      if (!attached.live) this.#dispatcher.pumpAll(attached.window.repo);
      return accepted ? { accepted } : { accepted, reason: "lease_lost" };
    } catch (error) {
      if (mine) attached.outstanding ??= held;
      throw error;
    }
  }

  /**
   * The window's connection ended. Its lease stays for the broker to come back with, unless the
   * broker's process is gone: then the attempt has failed. Safe to call more than once.
   */
  async detach(attached: Attached): Promise<void> {
    const { attachments, commit, clock, log, store } = this.#ctx;
    if (!attachments.remove(attached)) return;
    this.#deadlines.gateGone(attached);
    const { endpointRef, endpointId, repo } = attached.window;
    const last = !attachments.all().some((other) => other.window.endpointRef === endpointRef);
    if (last) this.#sender.endpointLeft(endpointRef);
    if (this.#phase !== "running") return;
    const token = attached.outstanding?.leaseToken;
    try {
      const orphan = await commit.run(() => {
        store.receipts.add("detach", clock.now(), { endpoint_id: endpointId, repo });
        if (last) store.endpoints.disconnected(endpointRef, clock.now());
        const message = token === undefined ? undefined : store.messages.byLease(token);
        if (message === undefined || holderAlive(this.#ctx, message.leaseHolder!)) return message;
        this.#deadlines.brokerLost(message);
        return undefined;
      });
      if (orphan !== undefined) {
        this.#deadlines.watchHolder(orphan.leaseToken!, orphan.leaseHolder!);
      }
    } catch (error) {
      // Memory is right already, and the lease will expire.
      log.warn("detach not recorded", { repo, reason: reasonOf(error) });
    }
    // With one endpoint fewer, what was ambiguous may have a place to go (T-18).
    this.#dispatcher.pumpAll(repo);
  }

  /** What there is, for `status` (L-06). */
  summary(): { states: Record<string, number>; cancelled: number; activeLeases: number } {
    const { states, cancelled, leases } = this.#ctx.store.messages.counts();
    return { states, cancelled, activeLeases: leases };
  }

  #takeIn(window: Window, { outstanding, inProgress }: Carried): MessageRecord | undefined {
    const { store, clock } = this.#ctx;
    if (outstanding !== undefined) settleLease(this.#ctx, this.#moves, window, outstanding);
    let held: MessageRecord | undefined;
    for (const message of store.messages.leases(window.endpointRef, window.repo)) {
      const own = message.leaseHolder === holderText(window.broker);
      if (own && (inProgress === undefined || inProgress === message.leaseToken)) held = message;
      else if (own) this.#moves.notReceived(message);
      else if (!holderAlive(this.#ctx, message.leaseHolder!)) this.#deadlines.brokerLost(message);
    }
    store.endpoints.seen(window.endpointRef, clock.now());
    const endpoint = store.endpoints.get(window.endpointRef);
    store.receipts.add("attach", clock.now(), {
      endpoint_id: window.endpointId,
      repo: window.repo,
      mode: window.mode,
      command: window.command,
      broker_pid: window.broker.pid,
      session: endpoint?.session ?? null,
      protocol: endpoint?.protocol ?? null,
      capabilities: endpoint?.capabilities ?? [],
    });
    return held;
  }

  async #change(id: string, move: (message: MessageRecord) => MessageRecord) {
    this.#mustRun();
    const changed = this.#ctx.commit.run(() => move(this.#find(id)));
    const message = await changed;
    this.#dispatcher.pumpAll(message.targetRepo);
    return { message: this.#view(message) };
  }

  #find(id: string): MessageRecord {
    const message = this.#ctx.store.messages.byId(id);
    if (message !== undefined) return message;
    throw new TamqError("NOT_FOUND", "unknown_message", `there is no message ${id}`, {
      hint: "list message ids with: tamq history; of an id six characters or more are enough",
    });
  }

  #view(message: MessageRecord) {
    return messageView(message, waitingReason(this.#ctx, message));
  }

  #mustRun(): void {
    if (this.#phase === "running") return;
    throw new TamqError("UNAVAILABLE", "shutting_down", "the message service is not running", {
      hint: "start it with: tamq serve --detach, then send again under the same key",
    });
  }
}

function reasonOf(error: unknown): string {
  return error instanceof TamqError ? error.reason : "unexpected";
}
