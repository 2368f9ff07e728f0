/**
 * What the operator lets pass: who may write to whom (B-18), pairs that were stopped for writing too
 * much (B-14), everything paused, windows that hold (B-11).
 */
import { LOCAL_SENDER, RESERVED_SENDERS } from "./envelope.ts";
import type { Provenance } from "./message.ts";

/** Sender and target: messages from the one to the other, not back. */
export interface Pair {
  readonly sender: string;
  readonly target: string;
}

/** How much one worker may write to one repository (B-14). */
export interface GuardPolicy {
  /** Messages that may come at once. */
  readonly burst: number;
  /** How fast that allowance grows back. */
  readonly perHour: number;
}

/**
 * Two programs that answer each other at once are stopped after 60 messages each; two agents that
 * take ten seconds for an answer, after half an hour. Work that is got done stays below: fifty
 * messages in a row and then one a minute are let through.
 */
export const DEFAULT_GUARD: GuardPolicy = { burst: 60, perHour: 60 };

export interface RoutingPolicy {
  /** Everybody may write to everybody. */
  readonly open: boolean;
  /** Windows opened in one tmux session may write to each other. */
  readonly together: boolean;
  readonly allow: readonly Pair[];
}

export const DEFAULT_ROUTING: RoutingPolicy = { open: false, together: true, allow: [] };

/**
 * Whether the routing policy has a say: for what a program said in a window, and for what a replay
 * repeats. A person's own words, from a window or a shell, are the operator's will; the
 * coordination engine has policies of its own.
 */
export function isRouted(provenance: Provenance, { sender, target }: Pair): boolean {
  if (sender === target || RESERVED_SENDERS.includes(sender)) return false;
  return provenance === "worker" || provenance === "replay" ||
    (provenance === "cli" && sender !== LOCAL_SENDER);
}

/** Whether the guard counts it: what was observed, not what somebody typed, sent or replayed. */
export function isGuarded(provenance: Provenance): boolean {
  return provenance === "worker";
}

export interface BlockedPair extends Pair {
  readonly since: number;
  /** Messages refused since then. */
  readonly refused: number;
}

export interface HeldPair extends Pair {
  readonly messages: number;
}

/** The durable side; writes happen inside a commit. */
export interface ControlStore {
  blocked(): BlockedPair[];
  isBlocked(pair: Pair): boolean;
  /** Blocks it, or counts one more refusal of a blocked pair. */
  refuse(pair: Pair, at: number): void;
  /** False when it was not blocked. */
  unblock(pair: Pair): boolean;

  allowed(): Pair[];
  isAllowed(pair: Pair): boolean;
  allow(pair: Pair, at: number): void;
  /** False when it was not allowed. */
  disallow(pair: Pair): boolean;
  /** Two repositories have windows in one tmux session; true when that is new. */
  openedTogether(ref: number, a: string, b: string, at: number): boolean;
  /** At one of these endpoints, or at any. */
  wereTogether(a: string, b: string, refs: readonly (number | null)[] | "any"): boolean;

  /** Pairs with held messages. */
  held(): HeldPair[];
  /** Lets held messages go, those sent or bound elsewhere than `ref` excepted; their number. */
  letGo(pair: Pair, eligibleAt: number, ref?: number): number;

  /** Since when everything is paused. */
  pausedAt(): number | undefined;
  setPaused(at: number | undefined): void;
  /** Waiting since now, for the bound on waiting (T-13): paused time does not count. */
  restartWaits(now: number): void;

  /** Windows that hold may be given messages up to this one, by sequence. */
  releasedThrough(repo: string): number;
  /** Everything waiting for `repo` may go; the number of those that could not before. */
  release(repo: string, eligibleAt: number): number;
}
