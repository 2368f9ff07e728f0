/** Which windows are attached right now, and to whom a process belongs. Memory only: connections are. */
import type { ProcessIdentity } from "./base/proc.ts";
import { TamqError } from "./base/errors.ts";
import type { DeliveryPort, Processes, Window } from "./model/ports.ts";

export type { Delivery, DeliveryPort, Window } from "./model/ports.ts";

/** Whether a window can take a message this moment, as its broker last said (B-08). */
export interface Gate {
  open: boolean;
  /** Why it is closed; null when open or not told. */
  reason: string | null;
  /** Steady milliseconds (see `lib/queue/steady.ts`) of the last change between open and closed. */
  since: number;
}

export interface Outstanding {
  readonly messageId: string;
  readonly leaseToken: string;
  /** Taken over an earlier connection: whether the broker ever saw the delivery is unknown. */
  readonly adopted: boolean;
}

/** One attached window. Mutable parts belong to the queue; others read them. */
export interface Attached {
  readonly window: Window;
  readonly port: DeliveryPort;
  /** False once removed or replaced; nothing is delivered to it any more. */
  live: boolean;
  gate: Gate;
  /** What it shows is being recorded, as its broker says (B-15). */
  recording: boolean;
  /** The delivery that its broker has not settled yet; at most one (T-25). */
  outstanding: Outstanding | undefined;
  /** A lease for it is being made durable. */
  claiming: boolean;
  /** Its last lease expired without a word: no further one until it speaks (T-25). */
  silent: boolean;
}

export interface Owner {
  readonly attached: Attached;
  /** The process is the broker itself; otherwise it descends from the broker or its worker. */
  readonly isBroker: boolean;
}

export class Attachments {
  readonly #processes: Pick<Processes, "identify">;
  readonly #all = new Set<Attached>();
  readonly #byRepo = new Map<string, Set<Attached>>();
  readonly #byPid = new Map<number, Attached>();

  constructor(processes: Pick<Processes, "identify">) {
    this.#processes = processes;
  }

  /**
   * Throws `already_attached` when the endpoint has that repository in a window whose broker lives
   * (E-02). A window whose broker is gone, or the same broker on a new connection, is replaced:
   * `replaced` receives the old one after it was taken out.
   */
  add(
    window: Window,
    port: DeliveryPort,
    since = 0,
    replaced: (old: Attached) => void = () => {},
  ): Attached {
    const old = this.find(window.endpointRef, window.repo);
    if (old !== undefined) {
      if (!sameBroker(old.window, window) && this.brokerAlive(old)) {
        throw new TamqError(
          "ALREADY_EXISTS",
          "already_attached",
          `${window.repo} already has a window at ${window.endpointId} ` +
            `(${old.window.windowId}, broker ${old.window.broker.pid})`,
          { hint: "use that window, or end its command first" },
        );
      }
      this.remove(old);
      replaced(old);
    }
    const attached: Attached = {
      window,
      port,
      live: true,
      gate: { open: false, reason: null, since },
      recording: window.recording === true,
      outstanding: undefined,
      claiming: false,
      silent: false,
    };
    this.#all.add(attached);
    const peers = this.#byRepo.get(window.repo) ?? new Set();
    this.#byRepo.set(window.repo, peers.add(attached));
    this.#byPid.set(window.broker.pid, attached);
    this.#byPid.set(window.workerPid, attached);
    return attached;
  }

  /** Takes a window out; true when it was in. */
  remove(attached: Attached): boolean {
    attached.live = false;
    if (!this.#all.delete(attached)) return false;
    const { repo, broker, workerPid } = attached.window;
    const peers = this.#byRepo.get(repo);
    peers?.delete(attached);
    if (peers?.size === 0) this.#byRepo.delete(repo);
    for (const pid of [broker.pid, workerPid]) {
      if (this.#byPid.get(pid) === attached) this.#byPid.delete(pid);
    }
    return true;
  }

  /** Every live window of `repo`, one an endpoint, in order of attachment. */
  byRepo(repo: string): readonly Attached[] {
    return [...this.#byRepo.get(repo) ?? []];
  }

  /** Every live window, in order of attachment. */
  all(): readonly Attached[] {
    return [...this.#all];
  }

  find(endpointRef: number, repo: string): Attached | undefined {
    for (const attached of this.#byRepo.get(repo) ?? []) {
      if (attached.window.endpointRef === endpointRef) return attached;
    }
    return undefined;
  }

  /**
   * The window to which a process belongs, by its ancestry (nearest first, the process itself
   * included): the first of them that is a broker or a broker's worker (B-04).
   */
  ownerOf(pids: readonly number[]): Owner | undefined {
    for (const [index, pid] of pids.entries()) {
      const attached = this.#byPid.get(pid);
      if (attached !== undefined) {
        return { attached, isBroker: index === 0 && attached.window.broker.pid === pid };
      }
    }
    return undefined;
  }

  /** Whether the very process that attached this window still lives. */
  brokerAlive(attached: Attached): boolean {
    return sameProcess(
      this.#processes.identify(attached.window.broker.pid),
      attached.window.broker,
    );
  }
}

function sameProcess(a: ProcessIdentity | undefined, b: ProcessIdentity): boolean {
  return a !== undefined && a.pid === b.pid && a.start === b.start;
}

function sameBroker(a: Window, b: Window): boolean {
  return a.instance === b.instance && sameProcess(a.broker, b.broker);
}
