/**
 * Which window a caller is in (K-07, K-09): by the ancestry of the peer's process and the brokers of
 * live windows, as the message service names them – never by what the caller says.
 */
import type { ProcessIdentity } from "../base/proc.ts";
import { TamqError } from "../base/errors.ts";
import type { Peer, Processes } from "../model/ports.ts";
import type { WireEndpoint } from "../protocol/schema.ts";

export interface CallerWindow {
  readonly repo: string;
  readonly endpointId: string;
  readonly broker: ProcessIdentity;
}

export interface CallerOptions {
  readonly processes: Processes;
  /** Asks the message service. */
  readonly endpoints: () => Promise<readonly WireEndpoint[]>;
  /** By argument vector: also windows that no service knows. */
  readonly isBroker: (pid: number) => boolean;
}

export class Callers {
  readonly #o: CallerOptions;
  /** By the broker's pid, as last told: it holds while the service does not answer. */
  #known = new Map<number, CallerWindow>();

  constructor(options: CallerOptions) {
    this.#o = options;
  }

  /** What the message service said; kept with the brokers' identities, so that no pid is reused. */
  remember(endpoints: readonly WireEndpoint[]): void {
    const known = new Map<number, CallerWindow>();
    for (const { endpoint_id, attachments } of endpoints) {
      for (const { repo, broker_pid } of attachments) {
        const broker = this.#o.processes.identify(broker_pid);
        if (broker !== undefined) known.set(broker_pid, { repo, endpointId: endpoint_id, broker });
      }
    }
    this.#known = known;
  }

  /**
   * The window that the peer is in. Throws `not_in_window`; `not_attached` and `windows_unknown` when
   * it may be in one all the same.
   */
  async windowOf(peer: Peer): Promise<CallerWindow> {
    const pids = peer.ancestry?.() ?? this.#o.processes.ancestry(peer.pid);
    const known = this.#find(pids);
    if (known !== undefined) return known;
    let silent: unknown;
    try {
      this.remember(await this.#o.endpoints());
    } catch (error) {
      silent = error; // what was known before still holds
    }
    const found = this.#find(pids);
    if (found !== undefined) return found;
    if (pids.some(this.#o.isBroker)) {
      throw new TamqError(
        "UNAVAILABLE",
        "not_attached",
        "the window that this comes from is not attached to the message service",
        { hint: "try again in a moment" },
      );
    }
    if (silent !== undefined) {
      throw new TamqError(
        "UNAVAILABLE",
        "windows_unknown",
        "the message service does not answer, so it is not known which window this comes from",
        { hint: "try again in a moment", cause: silent },
      );
    }
    throw new TamqError(
      "PERMISSION_DENIED",
      "not_in_window",
      "this is for workers: it must come from a window that tamq opened",
      { hint: "look at leases with: tamq coord leases" },
    );
  }

  /** Throws `worker_refused` for a caller inside any window (T-27). */
  async requireOutside(peer: Peer): Promise<void> {
    const pids = peer.ancestry?.() ?? this.#o.processes.ancestry(peer.pid);
    let inside = pids.some(this.#o.isBroker) || this.#find(pids) !== undefined;
    if (!inside) {
      try {
        this.remember(await this.#o.endpoints());
        inside = this.#find(pids) !== undefined;
      } catch {
        // Brokers are recognised by their arguments as well.
      }
    }
    if (!inside) return;
    throw new TamqError(
      "PERMISSION_DENIED",
      "worker_refused",
      "a command in a worker's window may not do this",
      { hint: "run it in a terminal outside the windows that tamq opened" },
    );
  }

  #find(pids: readonly number[]): CallerWindow | undefined {
    for (const pid of pids) {
      const window = this.#known.get(pid);
      if (window === undefined) continue;
      if (this.#o.processes.identify(pid)?.start === window.broker.start) return window;
    }
    return undefined;
  }
}
