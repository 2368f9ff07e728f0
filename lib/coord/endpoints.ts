/**
 * Identities of endpoints (K-09): one id an endpoint and generation, minted when it is first heard
 * of, whether it attaches itself or is found. `(coordination_endpoint_id, message_id)` then names a
 * message whatever machine or session it came from.
 */
import type { Clock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import { newToken } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Processes, Registry } from "../model/ports.ts";
import type { Random } from "../base/random.ts";
import type { WireEndpoint } from "../protocol/schema.ts";
import { ENGINE_CAPABILITIES, type EngineRequest } from "./operations.ts";
import type { Receipts } from "./receipts.ts";
import type { EndpointRow } from "./records.ts";
import type { CoordStore } from "./store/store.ts";

export interface EndpointOptions {
  readonly store: CoordStore;
  readonly registry: Registry;
  readonly processes: Pick<Processes, "identify">;
  readonly receipts: Receipts;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

export class Endpoints {
  readonly #o: EndpointOptions;
  /** By endpoint id: those of generations that live. */
  readonly #live = new Map<string, EndpointRow>();

  constructor(options: EndpointOptions) {
    this.#o = options;
  }

  idOf(endpointId: string): string | undefined {
    return this.#live.get(endpointId)?.coordEndpointId;
  }

  /** Gives those that are new their identity. */
  async discover(endpoints: readonly WireEndpoint[]): Promise<void> {
    for (const { endpoint_id, tmux_session, protocol } of endpoints) {
      const generation = this.#generation(endpoint_id);
      if (generation === undefined) continue;
      if (this.#live.get(endpoint_id)?.generation === generation) continue;
      await this.#keep(endpoint_id, generation, tmux_session, protocol, null);
    }
  }

  /**
   * The message service's handshake. The registry is read afresh; exact slug and path (E-04).
   * Throws `endpoint_dead`, `unknown_repository`, `ambiguous_repository`, `path_mismatch`.
   */
  async attach(request: EngineRequest<"attach">, protocol: string) {
    const { registry, clock, log } = this.#o;
    const generation = this.#generation(request.endpoint_id);
    if (generation === undefined) {
      throw new TamqError(
        "FAILED_PRECONDITION",
        "endpoint_dead",
        `there is no tmux server of ${request.endpoint_id}`,
      );
    }
    for (const { repo, path } of request.windows) {
      const found = registry.find(repo);
      if (found === "unknown" || found === "ambiguous") {
        throw new TamqError(
          "NOT_FOUND",
          found === "unknown" ? "unknown_repository" : "ambiguous_repository",
          `"${repo}" is ${found} in ${registry.source}`,
        );
      }
      if (found.path !== path) {
        throw new TamqError(
          "FAILED_PRECONDITION",
          "path_mismatch",
          `${repo} is registered at another path than the window's`,
        );
      }
    }
    const { endpoint_id, tmux_session } = request;
    const row = await this.#keep(endpoint_id, generation, tmux_session, protocol, clock.now());
    log.info("endpoint.attached", { endpoint: endpoint_id, id: row.coordEndpointId });
    return {
      coordination_endpoint_id: row.coordEndpointId,
      protocol,
      capabilities: ENGINE_CAPABILITIES.filter((name) => request.capabilities.includes(name)),
    };
  }

  async #keep(
    endpointId: string,
    generation: string,
    session: string,
    protocol: string,
    attachedAt: number | null,
  ): Promise<EndpointRow> {
    const { store, random, receipts } = this.#o;
    const row = await store.commit(() => {
      const coordEndpointId = newToken(random);
      const kept = store.journal.endpoint({
        coordEndpointId,
        endpointId,
        generation,
        session,
        protocol,
        attachedAt,
      });
      if (kept.coordEndpointId === coordEndpointId || attachedAt !== null) {
        receipts.write("configuration", attachedAt === null ? "discovered" : "attached", {}, {
          coordination_endpoint_id: kept.coordEndpointId,
          protocol_version: protocol,
        });
      }
      return kept;
    });
    this.#live.set(endpointId, row);
    return row;
  }

  #generation(endpointId: string): string | undefined {
    const pid = Number(endpointId.slice(endpointId.lastIndexOf("-") + 1));
    return this.#o.processes.identify(pid)?.start;
  }
}
