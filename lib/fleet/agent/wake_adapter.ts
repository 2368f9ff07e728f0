/** The real adapter: an execution is a wake through this host's own message service (G-08). */
import type { Clock } from "../../base/clock.ts";
import { errorText, type FailureCode, TamqError } from "../../base/errors.ts";
import { call } from "../../client.ts";
import { ENGINE_SENDER } from "../../model/envelope.ts";
import { CAPABILITIES, requireService } from "../../protocol/handshake.ts";
import type { WireMessage } from "../../protocol/schema.ts";
import type { Evidence, ExecutionAdapter, Work } from "../ports.ts";

export interface WakeAdapterOptions {
  /** Asked for each call: the service may come back at another path. */
  readonly socket: () => string;
  readonly clock: Clock;
}

const OUTCOMES: Readonly<Record<WireMessage["state"], Evidence["outcome"]>> = {
  pending: "accepted",
  awaiting_ack: "accepted",
  injected: "applied",
  acknowledged: "applied",
  failed: "failed",
};

/** Codes by which the service says that it admitted nothing. */
const REFUSALS: ReadonlySet<FailureCode> = new Set([
  "INVALID_ARGUMENT",
  "PERMISSION_DENIED",
  "FAILED_PRECONDITION",
  "RESOURCE_EXHAUSTED",
  "NOT_FOUND",
]);

export class WakeAdapter implements ExecutionAdapter {
  readonly kind = "wake";
  /** A wake is one message: it can be withdrawn, not held. */
  readonly pausable = false;
  readonly #options: WakeAdapterOptions;

  constructor(options: WakeAdapterOptions) {
    this.#options = options;
  }

  /** Throws once the message may have been admitted; what fails before that has had no effect. */
  async execute(work: Work): Promise<Evidence> {
    const { executionId, targetRepo, prompt } = work;
    const { socket, clock } = this.#options;
    let endpoint: string;
    try {
      requireService(await call(socket(), "ping", {}, { clock }), CAPABILITIES);
      endpoint = await this.#endpoint(work);
    } catch (error) {
      const state = error instanceof TamqError ? error.reason : errorText(error);
      return { messageId: "", messageState: state, outcome: "failed" };
    }
    try {
      const { message_id, state } = await call(socket(), "send", {
        client_id: ENGINE_SENDER,
        // One execution, one message: the service itself would not admit a second one.
        idempotency_key: keyOf(executionId),
        correlation_id: correlationOf(executionId),
        sender_repo: ENGINE_SENDER,
        target_repo: targetRepo,
        endpoint_id: endpoint,
        provenance: "coordination_engine",
        metadata: { execution_id: executionId },
        body: prompt,
      }, { clock });
      return { messageId: message_id, messageState: state, outcome: OUTCOMES[state] };
    } catch (error) {
      // A refusal is an answer: nothing was admitted. Without an answer nobody knows.
      if (!(error instanceof TamqError) || !REFUSALS.has(error.code)) throw error;
      return { messageId: "", messageState: error.reason, outcome: "failed" };
    }
  }

  async find(executionId: string): Promise<Evidence | undefined> {
    const message = await this.#message(executionId);
    if (message === undefined) return undefined;
    const { message_id, state } = message;
    return { messageId: message_id, messageState: state, outcome: OUTCOMES[state] };
  }

  async stop(executionId: string): Promise<boolean> {
    const message = await this.#message(executionId);
    if (message === undefined) return false;
    try {
      const { socket, clock } = this.#options;
      await call(socket(), "cancel", { message_id: message.message_id }, { clock });
      return true;
    } catch (error) {
      // It is being written or was: the worker has it.
      if (error instanceof TamqError && error.code === "FAILED_PRECONDITION") return false;
      throw error;
    }
  }

  async #message(executionId: string): Promise<WireMessage | undefined> {
    const { socket, clock } = this.#options;
    const request = { correlation_id: correlationOf(executionId) };
    const page = await call(socket(), "history", request, { clock });
    return page.messages.find((message) =>
      message.client_id === ENGINE_SENDER && message.idempotency_key === keyOf(executionId)
    );
  }

  /** The named endpoint, else the only live one that has the repository (T-05). */
  async #endpoint({ targetRepo, endpointId }: Work): Promise<string> {
    const { socket, clock } = this.#options;
    const { endpoints } = await call(socket(), "endpoints", {}, { clock });
    const live = endpoints.filter(({ repos, endpoint_id }) =>
      repos.includes(targetRepo) && (endpointId === undefined || endpoint_id === endpointId)
    );
    if (live.length === 1) return live[0]!.endpoint_id;
    const reason = live.length === 0 ? "endpoint_unavailable" : "ambiguous_endpoint";
    throw new TamqError("UNAVAILABLE", reason, `${targetRepo} is open in ${live.length} terminals`);
  }
}

function keyOf(executionId: string): string {
  return `fleet.${executionId}`;
}

function correlationOf(executionId: string): string {
  return `fleet.${executionId}`;
}
