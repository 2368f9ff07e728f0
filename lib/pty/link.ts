/**
 * The kept connection of a broker to the service (T-25): attaches, attaches again for ever, takes
 * one delivery at a time and carries its outcome until the service has settled it.
 */
import { type Clock, pause, within } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Stream } from "../client.ts";
import type { RequestOf } from "../protocol/operations.ts";
import type { ServiceFrame, Settlement } from "../protocol/schema.ts";
import type { GateState } from "./gate.ts";
import type { InjectionOutcome } from "./injector.ts";

export type DeliverFrame = Extract<ServiceFrame, { type: "deliver" }>;
export type AttachRequest = RequestOf<"attach">;

export interface LinkOptions {
  readonly open: (request: AttachRequest, signal: AbortSignal) => Promise<Stream>;
  /** Everything but the outstanding settlement. */
  readonly request: AttachRequest;
  readonly gate: () => GateState;
  /** Makes the attempt; what it throws counts as a failed attempt. */
  readonly deliver: (frame: DeliverFrame) => Promise<InjectionOutcome>;
  readonly onAttached: () => void;
  /** The service is there and says no; told again only when the reason changes. */
  readonly onRefused: (error: TamqError) => void;
  /** This process is to become another program (B-17). */
  readonly onUpgrade?: (program: readonly string[], waitMs: number) => void;
  /** An attempt is over and told. */
  readonly onSettled?: () => void;
  /** Where the program before this one stood (B-17). */
  readonly kept?: KeptLink;
  readonly clock: Clock;
  readonly log: Log;
}

/** What another process goes on from. */
export type KeptLink = ReturnType<Link["save"]>;

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 1000;
const REFUSED_RETRY_MS = 5000;
const CLOSE_MS = 500;

export class Link {
  readonly #o: LinkOptions;
  readonly #stop = new AbortController();
  #request: AttachRequest;
  #stream: Stream | undefined;
  #outstanding: Settlement | undefined;
  #token: string | undefined;
  /** Token of the attempt that is being made right now. */
  #inProgress: string | null = null;
  #work: Promise<void> = Promise.resolve();
  readonly #running: Promise<void>;

  constructor(options: LinkOptions) {
    this.#o = options;
    this.#request = options.request;
    this.#outstanding = options.kept?.outstanding ?? undefined;
    this.#token = options.kept?.token ?? undefined;
    this.#running = this.#run();
  }

  /** Tells the service why this process stays the program that it is. */
  notUpgraded(reason: string): void {
    this.#send({ type: "not_upgraded", reason });
  }

  /** An attempt is under way. */
  get busy(): boolean {
    return this.#inProgress !== null;
  }

  /**
   * For who takes over; not while {@link busy}. A delivery that was not read yet never reached this
   * broker: the service learns that when the next one attaches.
   */
  save() {
    return { outstanding: this.#outstanding ?? null, token: this.#token ?? null };
  }

  get attached(): boolean {
    return this.#stream !== undefined;
  }

  /** Tells the service that the gate changed. */
  gateChanged(state: GateState): void {
    const reason = state.reason === undefined ? {} : { reason: state.reason };
    this.#send({ type: "gate", open: state.open, ...reason });
  }

  /** The window is no longer recorded: later attachments do not say so, and this one is told. */
  recordingEnded(): void {
    if (this.#request.recording === undefined) return;
    const { recording: _, ...request } = this.#request;
    this.#request = request;
    this.#send({ type: "recording", on: false });
  }

  /** Ends it, after the attempt under way. */
  async close(): Promise<void> {
    await this.#work;
    this.#stop.abort();
    this.#stream?.close();
    // An attach that nobody answers must not keep a window open.
    await within(this.#o.clock, CLOSE_MS, this.#running, () => {});
  }

  async #run(): Promise<void> {
    let delay = FIRST_RETRY_MS;
    let told: string | undefined;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#connection();
        delay = FIRST_RETRY_MS;
        told = undefined;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        const refusal = error instanceof TamqError && error.code !== "UNAVAILABLE" &&
            error.code !== "DEADLINE_EXCEEDED"
          ? error
          : undefined;
        this.#o.log.debug("link.failed", { reason: errorText(error) });
        if (refusal !== undefined && refusal.reason !== told) this.#o.onRefused(refusal);
        told = refusal?.reason;
        delay = refusal !== undefined ? REFUSED_RETRY_MS : Math.min(MAX_RETRY_MS, delay * 2);
      }
      await pause(this.#o.clock, delay, this.#stop.signal);
    }
  }

  /** One connection from attach to its end; throws when attaching failed. */
  async #connection(): Promise<void> {
    const carried = this.#outstanding;
    const request = {
      ...this.#request,
      in_progress: this.#inProgress,
      ...(carried === undefined ? {} : { outstanding: carried }),
    };
    const stream = await this.#o.open(request, this.#stop.signal);
    if (this.#stop.signal.aborted) return stream.close();
    this.#stream = stream;
    this.#o.log.info("link.attached", { endpoint: stream.response.endpoint_id });
    try {
      // The service settled what the request carried; what came up meanwhile is told now.
      if (this.#outstanding === carried) this.#outstanding = undefined;
      this.gateChanged(this.#o.gate());
      if (this.#outstanding !== undefined) this.#send({ type: "settle", ...this.#outstanding });
      this.#o.onAttached();
      for await (const frame of stream.frames) this.#frame(frame);
    } catch (error) {
      this.#o.log.warn("link.lost", { reason: errorText(error) });
    } finally {
      this.#stream = undefined;
      stream.close();
    }
    this.#o.log.info("link.detached");
  }

  #frame(frame: ServiceFrame): void {
    if (frame.type === "deliver") {
      if (frame.lease_token === this.#token) return; // that attempt is made, or being made
      this.#token = frame.lease_token;
      this.#inProgress = frame.lease_token;
      this.#work = this.#work.then(() => this.#attempt(frame));
    } else if (frame.type === "settled") {
      if (this.#outstanding?.lease_token === frame.lease_token) this.#outstanding = undefined;
    } else if (frame.type === "upgrade") this.#o.onUpgrade?.(frame.program, frame.wait_ms);
  }

  async #attempt(frame: DeliverFrame): Promise<void> {
    let outcome: InjectionOutcome;
    try {
      outcome = await this.#o.deliver(frame);
    } catch (error) {
      this.#o.log.error("delivery.failed", {
        message: frame.message_id,
        reason: errorText(error),
      });
      outcome = { outcome: "failed", reason: "broker_error", scope: "target" };
    }
    this.#o.log.info("delivery.settled", {
      message: frame.message_id,
      outcome: outcome.outcome,
      reason: outcome.reason,
    });
    this.#outstanding = { lease_token: frame.lease_token, ...outcome };
    this.#inProgress = null;
    this.#send({ type: "settle", ...this.#outstanding });
    this.#o.onSettled?.();
  }

  #send(frame: Parameters<Stream["send"]>[0]): void {
    // A failure ends `frames` too; what matters is told again at the next attach.
    this.#stream?.send(frame).catch(() => {});
  }
}
