/**
 * Publishes receipts and checkpoints to the State Hub (K-15): in order, at least once, each with a
 * key by which a repeat is recognised. While the hub or the credential is missing they wait.
 */
import type { Clock } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { probe } from "../base/probe.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import type { StateHubClient } from "./statehub_client.ts";
import type { CheckpointRow } from "./records.ts";
import type { CoordStore } from "./store/store.ts";

export interface ProjectorOptions {
  readonly store: CoordStore;
  /** Undefined while the hub cannot be reached. */
  readonly hub: () => StateHubClient | undefined;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  /** Cuts what is being published; it is published again. */
  readonly signal?: AbortSignal;
}

const BATCH = 100;

export class Projector {
  readonly #o: ProjectorOptions;
  #running: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(options: ProjectorOptions) {
    this.#o = options;
  }

  /** Publishes what waits; one run at a time. Never rejects. */
  run(): Promise<void> {
    this.#again = true;
    return this.#running ??= this.#drain().finally(() => this.#running = undefined);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        while (!this.#stopped && await this.#batch()) { /* the next one */ }
      } catch (error) {
        const reason = error instanceof TamqError ? error.reason : "failed";
        this.#o.log.debug("projection.waits", { reason });
      }
    }
  }

  /** True when there may be more. */
  async #batch(): Promise<boolean> {
    const { store, clock, hub, log, signal } = this.#o;
    const client = hub();
    if (client === undefined) return false;
    const receipts = store.journal.unpublishedReceipts(BATCH);
    for (const { seq, item } of receipts) {
      await this.#publish(
        () => client.call("publishReceipt", { body: item, signal }),
        log,
        "receipt",
      );
      probe("coord.published", item);
      await store.commit(() => store.journal.receiptPublished(seq, clock.now()));
      if (this.#stopped) return false;
    }
    const checkpoints = store.journal.unpublishedCheckpoints(BATCH);
    for (const { seq, item } of checkpoints) {
      await this.#publish(() => publishCheckpoint(client, item, signal), log, "checkpoint");
      await store.commit(() => store.journal.checkpointPublished(seq, clock.now()));
      if (this.#stopped) return false;
    }
    return receipts.length === BATCH || checkpoints.length === BATCH;
  }

  /** What the hub will never take must not keep the rest back. */
  async #publish(work: () => Promise<unknown>, log: Log, what: string): Promise<void> {
    try {
      await work();
    } catch (error) {
      const never = error instanceof TamqError &&
        (error.code === "INVALID_ARGUMENT" || error.reason === "idempotency_conflict");
      if (!never) throw error;
      log.warn("projection.refused", { what, reason: (error as TamqError).reason });
    }
  }
}

async function publishCheckpoint(
  client: StateHubClient,
  row: CheckpointRow,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { files_changed, ...rest } = JSON.parse(row.record) as Checkpoint;
  const body = {
    ...rest,
    files_changed: [...files_changed],
    repo: row.repo,
    idempotency_key: row.checkpointId,
  };
  try {
    await client.call("createCheckpoint", { body, signal });
  } catch (error) {
    if (!(error instanceof TamqError) || error.reason !== "unknown_task") throw error;
    const { task_id: _, ...without } = body;
    await client.call("createCheckpoint", { body: without, signal });
  }
}
