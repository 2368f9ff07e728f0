/**
 * Makes this service's windows known to the coordination engine (K-09): when the engine is there and
 * whenever they change. It goes on without it when it is not; nothing here ever fails the service.
 * It waits for events (a window comes or goes, an engine writes its lock) and never polls, except
 * where the kernel cannot watch the directory.
 */
import { type Clock, pause } from "./base/clock.ts";
import { errorText, TamqError } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import { callRaw } from "./client.ts";
import type { Settings } from "./config.ts";
import { liveHolder } from "./ipc/lock.ts";
import { LockWatch } from "./ipc/lock_watch.ts";
import type { WireEndpoint } from "./protocol/schema.ts";

export interface CoordLinkOptions {
  readonly settings: Settings;
  readonly serviceId: string;
  readonly endpoints: () => readonly WireEndpoint[];
  readonly clock: Clock;
  readonly log: Log;
}

/** Windows opened together, and an engine's lock being written, are looked at once. */
const SETTLE_MS = 100;
/** An engine that lives and does not answer yet is tried again so soon, then ever later. */
const RETRY_MS = 1000;
const RETRY_MOST_MS = 60_000;
/** How often it is looked where the directory cannot be watched. */
const UNWATCHED_MS = 15_000;
const ATTACH_MS = 5000;
/** Of the engine's socket; the transport's own are of no use there. */
const CAPABILITIES = ["coordination_lease_v1", "coordination_receipt_v1"];

export class CoordLink {
  readonly #o: CoordLinkOptions;
  readonly #ending = new AbortController();
  readonly #watch: LockWatch;
  #news = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** What the engine of that id was last told, by endpoint. */
  #told = new Map<string, string>();
  /** Ids that the engine gave, by endpoint. */
  readonly #ids = new Map<string, string>();

  constructor(options: CoordLinkOptions) {
    this.#o = options;
    this.#watch = new LockWatch(coordDir(options.settings), () => this.nudge());
  }

  /** The engine's name for that endpoint; undefined before it attached. */
  idOf(endpointId: string): string | undefined {
    return this.#ids.get(endpointId);
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Something may have changed: a window came or went. */
  nudge(): void {
    this.#news.abort();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.nudge();
    await this.#running;
    await this.#watch.close();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#o;
    const { signal } = this.#ending;
    let retry = RETRY_MS;
    let blind: string | undefined;
    while (!signal.aborted) {
      // Both before the look: what happens during it is looked at again.
      this.#news = new AbortController();
      const { signal: news } = this.#news;
      const why = this.#watch.arm();
      if (why !== undefined && why !== blind) {
        log.warn("engine.not_watched", { reason: why, looking_every_ms: UNWATCHED_MS });
      }
      blind = why;
      let wait = why === undefined ? Infinity : UNWATCHED_MS;
      try {
        await this.#look(signal);
        retry = RETRY_MS;
      } catch (error) {
        if (signal.aborted) return;
        const reason = error instanceof TamqError ? error.reason : errorText(error);
        log.debug("engine.not_attached", { reason });
        wait = Math.min(wait, retry);
        retry = Math.min(retry * 2, RETRY_MOST_MS);
      }
      await pause(clock, wait, news);
      if (news.aborted) await pause(clock, SETTLE_MS, signal);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { settings, endpoints, serviceId, clock, log } = this.#o;
    const holder = liveHolder(coordDir(settings));
    if (holder === undefined) return;
    for (const endpoint of endpoints()) {
      const windows = endpoint.attachments.map(({ repo, path, command }) => ({
        repo,
        path,
        command,
      }));
      const session = endpoint.tmux_session || "unnamed";
      const facts = JSON.stringify([holder.service_id, session, windows]);
      if (windows.length === 0 || this.#told.get(endpoint.endpoint_id) === facts) continue;
      // Told once, also when it is refused: the same facts would be refused again.
      this.#told.set(endpoint.endpoint_id, facts);
      try {
        const answer = await callRaw(holder.socket, "attach", {
          capabilities: CAPABILITIES,
          service_id: serviceId,
          endpoint_id: endpoint.endpoint_id,
          tmux_session: session,
          windows,
        }, { clock, signal, timeoutMs: ATTACH_MS }) as { coordination_endpoint_id: string };
        this.#ids.set(endpoint.endpoint_id, answer.coordination_endpoint_id);
        log.info("engine.attached", {
          endpoint: endpoint.endpoint_id,
          id: answer.coordination_endpoint_id,
        });
      } catch (error) {
        const gone = error instanceof TamqError &&
          (error.code === "UNAVAILABLE" || error.code === "DEADLINE_EXCEEDED");
        if (gone) this.#told.delete(endpoint.endpoint_id);
        throw error;
      }
    }
  }
}

/** Where the engine of this state directory keeps its own state, and its lock. */
function coordDir(settings: Settings): string {
  return `${settings.stateDir}/coord`;
}
