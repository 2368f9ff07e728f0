/**
 * Wakes a worker through the message service, as any client of it would (T-05, T-23, K-10). This is
 * the one place where the engine touches terminals, and it does so by sending a message (K-20).
 */
import { type Clock, rfc3339, systemClock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { call as callService } from "../client.ts";
import type { Orwell } from "../ipc/orwell.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { ENGINE_SENDER } from "../model/envelope.ts";
import type { WorkerTrigger } from "../model/trigger.ts";
import { CAPABILITIES, PROTOCOL, requireService } from "../protocol/handshake.ts";
import type { WireEndpoint, WireMessage } from "../protocol/schema.ts";

export interface WakeRequest {
  readonly lease_id: string;
  readonly target_repo: string;
  readonly target_agent?: string;
  readonly trigger: WorkerTrigger;
  readonly checkpoint?: Checkpoint;
  /** Generated from trigger and continuation policy; holds no secret value. */
  readonly prompt: string;
}

export interface WakeAck {
  readonly lease_id: string;
  /** The endpoint whose session was addressed; empty when there is none. */
  readonly session_id: string;
  /** RFC 3339, UTC. */
  readonly accepted_at: string;
  /** `started`: the first wake; `resumed`: with a checkpoint. No session is ever made (K-10). */
  readonly capability: "resumed" | "started" | "unavailable";
}

/** What became of a wake in the transport, beside the contract's answer. */
export interface WakeResult {
  readonly ack: WakeAck;
  /** Absent when unavailable: then no message exists. */
  readonly message?: { readonly message_id: string; readonly state: WireMessage["state"] };
}

export interface AdapterOptions {
  /** Asked for each call: the service may come back at another path. */
  readonly socket: () => string;
  readonly clock?: Clock;
  /** For one operation, milliseconds. */
  readonly timeoutMs?: number;
  /** Cuts what is under way; the same lease id may be sent again. */
  readonly signal?: AbortSignal;
  readonly orwell?: Orwell;
}

export class CoordinationEngineAdapter {
  readonly #options: AdapterOptions;
  readonly #clock: Clock;

  constructor(options: AdapterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  #call: typeof callService = async (_, op, request, options) => {
    this.#options.orwell?.see("service.request", { op, request });
    return await callService(this.#options.socket(), op, request, {
      clock: this.#clock,
      timeoutMs: this.#options.timeoutMs,
      signal: this.#options.signal,
      ...options,
    });
  };

  /**
   * Sends the wake to the one live endpoint that has the repository, or to the one that is named.
   * Repeating it with the same lease id changes nothing and returns the same message. Throws
   * `ambiguous_endpoint` when several are live and none is named, `protocol_mismatch` and
   * `capability_missing` before anything is sent, and the service's own refusals.
   */
  async wake(request: WakeRequest, endpointId?: string): Promise<WakeAck> {
    return (await this.wakeMessage(request, endpointId)).ack;
  }

  /** As {@link wake}, with the id of the message. */
  async wakeMessage(request: WakeRequest, endpointId?: string): Promise<WakeResult> {
    requireService(await this.#call("", "ping", {}), CAPABILITIES);
    const endpoint = resolveEndpoint(await this.endpoints(), request.target_repo, endpointId);
    if (endpoint === undefined) return { ack: this.#ack(request, "", "unavailable") };
    let sent;
    try {
      sent = await this.#call("", "send", {
        client_id: ENGINE_SENDER,
        idempotency_key: request.lease_id,
        correlation_id: request.trigger.id,
        sender_repo: ENGINE_SENDER,
        target_repo: request.target_repo,
        endpoint_id: endpoint.endpoint_id,
        provenance: "coordination_engine",
        metadata: {
          lease_id: request.lease_id,
          trigger_id: request.trigger.id,
          source_revision: request.trigger.source_revision,
        },
        body: request.prompt,
      });
    } catch (error) {
      // It went away between the look and the sending: nothing was admitted.
      const gone = error instanceof TamqError && error.reason === "endpoint_unavailable";
      if (gone) return { ack: this.#ack(request, "", "unavailable") };
      throw error;
    }
    const { message_id, state } = sent;
    const capability = request.checkpoint === undefined ? "started" : "resumed";
    return {
      ack: this.#ack(request, endpoint.endpoint_id, capability),
      message: { message_id, state },
    };
  }

  #ack(request: WakeRequest, session: string, capability: WakeAck["capability"]): WakeAck {
    const accepted_at = rfc3339(this.#clock.now());
    return { lease_id: request.lease_id, session_id: session, accepted_at, capability };
  }

  async endpoints(): Promise<readonly WireEndpoint[]> {
    return (await this.#call("", "endpoints", {})).endpoints;
  }

  /** The receipt of one message, after a restart of either side as before (T-17). */
  async message(messageId: string): Promise<WireMessage> {
    return (await this.#call("", "message", { message_id: messageId })).message;
  }

  /** The message of that lease, if the transport ever admitted one whose answer was lost. */
  async find(leaseId: string, triggerId: string): Promise<WireMessage | undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.#call("", "history", { correlation_id: triggerId, cursor });
      const found = page.messages.find((message) =>
        message.client_id === ENGINE_SENDER && message.idempotency_key === leaseId
      );
      if (found !== undefined) return found;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    return undefined;
  }

  /** True when it was withdrawn before a delivery had begun; false when that was lost (K-07). */
  async cancel(messageId: string): Promise<boolean> {
    try {
      await this.#call("", "cancel", { message_id: messageId });
      return true;
    } catch (error) {
      const late = error instanceof TamqError &&
        (error.reason === "already_leased" || error.reason === "invalid_state");
      if (late) return false;
      throw error;
    }
  }

  /** Version of the transport's protocol that this adapter speaks. */
  readonly protocol = PROTOCOL;
}

/**
 * The live endpoint that has the repository: the named one, else the only one; undefined when there
 * is none. Throws `ambiguous_endpoint` rather than choosing (T-05).
 */
export function resolveEndpoint(
  endpoints: readonly WireEndpoint[],
  repo: string,
  endpointId?: string,
): WireEndpoint | undefined {
  const live = endpoints.filter(({ repos }) => repos.includes(repo));
  if (endpointId !== undefined) return live.find((one) => one.endpoint_id === endpointId);
  if (live.length <= 1) return live[0];
  const names = live.map((one) => one.endpoint_id).join(", ");
  throw new TamqError(
    "FAILED_PRECONDITION",
    "ambiguous_endpoint",
    `${repo} is open in several tmux servers: ${names}`,
    { hint: "name one of them, or close the others" },
  );
}
