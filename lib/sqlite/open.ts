/** Opens SQLite files the way every service here needs them. */
import { DatabaseSync } from "node:sqlite";

export type Database = DatabaseSync;

export interface OpenOptions {
  /** Never creates, never writes. */
  readonly readOnly?: boolean;
  /** How long a statement waits for another writer, milliseconds. */
  readonly busyTimeoutMs: number;
}

// Signature only; the next commit fills it in.
export declare function openDatabase(path: string, options: OpenOptions): Database;
