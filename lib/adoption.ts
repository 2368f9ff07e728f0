/**
 * Sends what dead brokers left in their spools (B-13). The state directory is ours alone and a free
 * lock proves that the owner is gone: that is the proof of who the sender was.
 */
import type { Clock } from "./base/clock.ts";
import { errorText } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import { isAlive, type ProcessIdentity } from "./base/proc.ts";
import { isPermanent, type OrphanSpool, orphanSpools, spooledSend } from "./pty/spool.ts";
import type { Queue } from "./queue.ts";

export interface AdoptionOptions {
  readonly dir: string;
  readonly queue: Pick<Queue, "send">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * When to look again after a broker's stream ended, milliseconds. A dying process may close its
 * socket before its spool; a broker that lives on keeps its lock, and looking costs next to nothing.
 */
const LOOKS_MS = [50, 1000, 10_000];

export class Adoption {
  readonly #options: AdoptionOptions;
  readonly #timers = new Set<() => void>();
  /** Brokers for which a look is due. */
  readonly #watched = new Set<string>();
  #running: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(options: AdoptionOptions) {
    this.#options = options;
  }

  /** Goes over the spools now; resolves when done. A call during a run makes it run once more. */
  run(): Promise<void> {
    if (this.#running !== undefined) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#runAll().finally(() => this.#running = undefined);
    return this.#running;
  }

  /** The stream of this broker ended, or it could not attach: it may have died, or die soon. */
  brokerLeft(broker: ProcessIdentity): void {
    const key = `${broker.pid} ${broker.start}`;
    if (this.#watched.has(key)) return;
    this.#watched.add(key);
    this.#look(broker, key, 0);
  }

  #look(broker: ProcessIdentity, key: string, look: number): void {
    const delay = LOOKS_MS[look];
    if (delay === undefined || this.#stopped) {
      this.#watched.delete(key);
      return;
    }
    const cancel = this.#options.clock.after(delay, () => {
      this.#timers.delete(cancel);
      if (!isAlive(broker)) void this.run();
      // Once more in any case: a process that is just being started holds copies of all locks.
      this.#look(broker, key, look + 1);
    });
    this.#timers.add(cancel);
  }

  /** No further look; waits for the one under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    await this.#running;
  }

  async #runAll(): Promise<void> {
    const { dir, log } = this.#options;
    do {
      this.#again = false;
      try {
        const spools = orphanSpools(dir, (file, error) => {
          log.warn("spool.damaged", { file, reason: errorText(error) });
        });
        for (const spool of spools) await this.#adopt(spool);
      } catch (error) {
        log.error("spool.adoption_failed", { reason: errorText(error) });
      }
    } while (this.#again && !this.#stopped);
  }

  /** In order; stops at the first that cannot go now, so that none overtakes another. */
  async #adopt(spool: OrphanSpool): Promise<void> {
    const { queue, log } = this.#options;
    const { repo, place } = spool.header;
    try {
      for (const record of spool.records) {
        if (this.#stopped) return;
        try {
          await queue.send(spooledSend(spool.header, record), { adopted: { repo, place } });
        } catch (error) {
          if (!isPermanent(error)) throw error;
          log.warn("spool.refused", { repo, sequence: record.sequence, reason: error.reason });
        }
        spool.advance(record.sequence);
      }
      spool.remove();
      if (spool.records.length > 0) {
        log.info("spool.adopted", { repo, messages: spool.records.length });
      }
    } catch (error) {
      log.warn("spool.kept", { repo, reason: errorText(error) });
    } finally {
      spool.close();
    }
  }
}
