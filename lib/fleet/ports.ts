/**
 * What the fleet needs of others: a durable store (G-03), a place for recordings, a queue for facts
 * (G-13, G-21), and whoever executes (G-08). Rules stand above these ports, once for all of them.
 */
import type { Records } from "./records.ts";

export type Kind = keyof Records;

export interface Stored<T> {
  readonly value: T;
  /** Counts the record's changes, from 1. */
  readonly revision: number;
}

export interface ListOptions {
  /** Records of this group only. */
  readonly group?: string;
  readonly limit?: number;
  /** Latest first; otherwise in the order in which they came. */
  readonly newest?: boolean;
}

/** One transaction. Its work awaits nothing but these methods. */
export interface FleetTx {
  get<K extends Kind>(kind: K, key: string): Promise<Stored<Records[K]> | undefined>;
  /** False when there is one already; then nothing changed. */
  insert<K extends Kind>(kind: K, key: string, value: Records[K], group?: string): Promise<boolean>;
  /** False when the record is not at `revision` any more; then nothing changed. */
  update<K extends Kind>(
    kind: K,
    key: string,
    revision: number,
    value: Records[K],
    group?: string,
  ): Promise<boolean>;
  list<K extends Kind>(
    kind: K,
    options?: ListOptions,
  ): Promise<{ readonly key: string; readonly value: Records[K] }[]>;
}

export interface FleetStore {
  /**
   * Runs `work` alone and atomically; resolves once all of it is durable. What it throws undoes it.
   * No two transactions see each other's half: whichever process they are in.
   */
  commit<T>(work: (tx: FleetTx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface Fact {
  readonly factId: string;
  readonly kind: string;
  readonly content: Uint8Array;
}

/** The message queue; resolves once the queue has confirmed that the fact is durable there. */
export interface FactQueue {
  publish(fact: Fact): Promise<void>;
}

export interface AssetSpec {
  readonly uploadId: string;
  readonly agentId: string;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly contentType: string;
}

export interface Grant {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Unix epoch, milliseconds. */
  readonly expiresAt: number;
}

/** Signs leave to put one asset at one place; never sees a byte of it (G-21). */
export interface ObjectStore {
  grant(asset: AssetSpec): Promise<Grant>;
}

export interface Work {
  readonly executionId: string;
  readonly targetRepo: string;
  readonly endpointId?: string;
  readonly prompt: string;
}

/** What is known of a work: evidence, never a guess. */
export interface Evidence {
  readonly messageId: string;
  readonly messageState: string;
  readonly outcome: "accepted" | "applied" | "failed";
}

/** Executes works; the only effect of an agent on the world. */
export interface ExecutionAdapter {
  /** `ExecuteAuthorized` is for the isolated mock alone (G-07, G-18). */
  readonly kind: "wake" | "mock";
  /** Called at most once for an execution. A throw means: nobody knows. */
  execute(work: Work): Promise<Evidence>;
  /** What became of it, if there is evidence. Changes nothing. */
  find(executionId: string): Promise<Evidence | undefined>;
  /** True when nothing of it will happen any more; false when it is too late. */
  stop(executionId: string): Promise<boolean>;
  /** Whether works of this kind can be held and let go. */
  readonly pausable: boolean;
}
