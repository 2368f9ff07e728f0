/**
 * The interfaces over which queue and (later) engine reach stores, registries and terminals.
 * Implementations are wired by the composition roots alone.
 */
import type { Envelope } from "./envelope.ts";
import type { ProcessIdentity } from "../base/proc.ts";
import type { Mode } from "./endpoint.ts";

/** The other end of a connection, as the kernel vouches for it (T-02). */
export interface Peer {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
  /**
   * {@link Processes.ancestry} of the peer as it is now; empty when it cannot be traced, has ended,
   * or ended and gave its pid to a process that was started after the connection (decision 0005).
   */
  readonly ancestry?: () => readonly number[];
}

/** One registered repository. */
export interface Repository {
  readonly name: string;
  readonly path: string;
}

/** The gita registry as it is now (T-07, E-04). Throws `registry_unavailable` when it cannot be read. */
export interface Registry {
  /** The file it reads, for status and errors. */
  readonly source: string;
  /** Every name, also ambiguous ones; in the registry's order, without repeats. */
  names(): readonly string[];
  /**
   * The repository of that exact name, `"unknown"`, or `"ambiguous"` when two rows carry the name.
   * A row whose path is gone or no git repository counts as unknown, as gita itself treats it.
   */
  find(name: string): Repository | "unknown" | "ambiguous";
}

/** Facts about processes, read from the kernel. */
export interface Processes {
  /** Undefined when no such process lives (a zombie counts as gone). */
  identify(pid: number): ProcessIdentity | undefined;
  /** `pid` and its ancestors, nearest first, ending before pid 1. */
  ancestry(pid: number): number[];
}

/** Where a window was opened: which run of which tmux server, which of its sessions (B-18). */
export interface Place {
  readonly endpointId: string;
  /** Start identity of the tmux server. */
  readonly generation: string;
  readonly session: string;
}

/** A window that may take deliveries, as the service sees it. */
export interface Window {
  readonly endpointRef: number;
  readonly endpointId: string;
  readonly repo: string;
  readonly path: string;
  readonly command: readonly string[];
  readonly mode: Mode;
  readonly broker: ProcessIdentity;
  readonly workerPid: number;
  readonly instance: string;
  readonly windowId: string;
  /** Id of the tmux session it was opened in: what one session holds was opened together (B-18). */
  readonly session?: string;
  readonly attachedAt: number;
  /** It was recorded when it attached (B-15). */
  readonly recording?: boolean;
}

/** Hands one delivery to a window's broker; the answer comes later as a settlement. */
export interface Delivery {
  readonly messageId: string;
  readonly attempt: number;
  readonly leaseToken: string;
  readonly envelope: Envelope;
}

/** Where deliveries for one window go. Must not throw and must not block: it only enqueues bytes. */
export interface DeliveryPort {
  deliver(delivery: Delivery): void;
}
