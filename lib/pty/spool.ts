/**
 * The durable spool of a broker (B-13): every captured message is appended and synced, then sent,
 * then marked as advanced – one path and one order, whether the service is up or not.
 */
import { type Clock, pause } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Provenance } from "../model/message.ts";
import { SpoolFile, type SpoolHeader, type SpoolRecord } from "./spool_file.ts";

export type { SpoolHeader, SpoolRecord } from "./spool_file.ts";

/** What is handed to the service: the fields of its `send` operation. */
export interface SpooledSend {
  readonly client_id: string;
  readonly idempotency_key: string;
  readonly sender_repo: string;
  readonly target_repo: string;
  readonly provenance: Provenance;
  readonly body: string;
}

/** The request that a record of a spool stands for; the same for its owner and for who adopts it. */
export function spooledSend(header: SpoolHeader, record: SpoolRecord): SpooledSend {
  return {
    client_id: `broker-${header.instance}`,
    idempotency_key: String(record.sequence),
    sender_repo: header.repo,
    target_repo: record.target,
    provenance: record.provenance,
    body: record.body,
  };
}

/** Reasons that a later attempt may not meet again, whatever their code. */
const PASSING = new Set([
  "registry_unavailable",
  "shutting_down",
  "sender_mismatch", // not attached yet, or not any more
  "not_attached",
  "peer_mismatch",
  "internal_error",
]);
const PERMANENT_CODES = new Set([
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "ALREADY_EXISTS",
]);

/** Refused for good although the code alone says otherwise: the operator has to act first (B-14). */
const PERMANENT_REASONS = new Set(["storm_guard"]);

/** True when the service will give the same refusal again: the message is not kept. */
export function isPermanent(error: unknown): error is TamqError {
  if (!(error instanceof TamqError) || PASSING.has(error.reason)) return false;
  return PERMANENT_CODES.has(error.code) || PERMANENT_REASONS.has(error.reason);
}

export interface SpoolOptions {
  readonly dir: string;
  readonly header: SpoolHeader;
  readonly send: (request: SpooledSend, signal: AbortSignal) => Promise<unknown>;
  readonly clock: Clock;
  readonly log: Log;
  /** Tells the operator; one line, no body. */
  readonly notice: (text: string) => void;
  /** Bytes of messages kept while they cannot be sent; default 32 MiB. */
  readonly maxBytes?: number;
  /** Where the program before this one stood; the header's instance is the same (B-17). */
  readonly kept?: KeptSpool;
}

/** What another process goes on from. */
export type KeptSpool = ReturnType<Spool["save"]>;

interface Item {
  readonly record: SpoolRecord;
  durable: boolean;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5000;

export class Spool {
  readonly #o: SpoolOptions;
  readonly #queue: Item[] = [];
  readonly #stop = new AbortController();
  #file: SpoolFile | undefined;
  #bytes = 0;
  #sequence = 0;
  #storageTold = false;
  #wake: () => void = () => {};
  #kicked = false;
  #empty: (() => void)[] = [];
  #running: Promise<void>;

  /** Never throws: a directory that cannot be written is told, and messages are kept in memory. */
  constructor(options: SpoolOptions) {
    this.#o = options;
    if (options.kept !== undefined) this.#restore(options.kept);
    this.#running = this.#run();
  }

  /**
   * For who takes over. What is being sent is sent again: its key makes that a no-op. `lock` is the
   * descriptor to keep open, so that nobody takes the file for a dead broker's; without it the
   * messages are in memory alone for a moment, and the file is left to the service.
   */
  save() {
    const lock = this.#file?.lock ?? null;
    const queue = this.#queue.map(({ record, durable }) => ({
      record,
      durable: durable && lock !== null,
    }));
    return { sequence: this.#sequence, queue, lock, empty: this.#file?.empty ?? 0 };
  }

  #restore({ sequence, queue, lock, empty }: KeptSpool): void {
    this.#sequence = sequence;
    this.#queue.push(...queue);
    this.#bytes = queue.reduce((sum, { record }) => sum + record.body.length, 0);
    if (lock === null) return;
    try {
      const path = `${this.#o.dir}/${this.#o.header.instance}.spool`;
      this.#file = SpoolFile.resume(path, lock, empty);
    } catch (error) {
      for (const item of this.#queue) item.durable = false;
      this.#o.log.error("spool.storage_failed", { dir: this.#o.dir, reason: errorText(error) });
    }
  }

  /** Messages not handed over yet. */
  get pending(): number {
    return this.#queue.length;
  }

  /** Takes a message; false (and a notice) when too much waits already. */
  add(target: string, body: string, provenance: Provenance): boolean {
    if (this.#bytes + body.length > (this.#o.maxBytes ?? 32 << 20)) {
      this.#o.notice(`message to ${target} NOT sent: too many messages wait for the service`);
      this.#o.log.error("spool.full", { target, pending: this.#queue.length });
      return false;
    }
    const record = { sequence: ++this.#sequence, target, body, provenance };
    this.#bytes += body.length;
    this.#queue.push({ record, durable: false });
    this.kick();
    return true;
  }

  /** Tries again at once: the service is back. */
  kick(): void {
    this.#kicked = true;
    this.#wake();
  }

  /** Resolves when everything is handed over, or after `ms` milliseconds. */
  async flush(ms: number): Promise<boolean> {
    this.kick();
    if (this.#queue.length > 0) {
      const done = Promise.withResolvers<void>();
      this.#empty.push(done.resolve);
      const cancel = this.#o.clock.after(ms, done.resolve);
      await done.promise;
      cancel();
    }
    return this.#queue.length === 0;
  }

  /** Ends it; the file stays for the service to adopt unless everything was handed over. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#wake();
    await this.#running;
    if (this.#queue.length > 0) await this.#persistAll();
    if (this.#queue.some((item) => !item.durable)) {
      this.#o.notice("messages that could not be stored are lost: the spool cannot be written");
      this.#o.log.error("spool.lost", { count: this.#queue.length });
    }
    if (this.#queue.length === 0) this.#file?.remove();
    this.#file?.close();
    this.#file = undefined;
  }

  async #run(): Promise<void> {
    let delay = FIRST_RETRY_MS;
    while (!this.#stop.signal.aborted) {
      const head = this.#queue[0];
      if (head === undefined) {
        for (const resolve of this.#empty.splice(0)) resolve();
        await this.#sleep();
        continue;
      }
      // A storage failure does not hold a message back that the service itself may store.
      await this.#persistAll();
      if (await this.#handOver(head)) {
        delay = FIRST_RETRY_MS;
        this.#queue.shift();
        this.#bytes -= head.record.body.length;
        this.#mark(head);
      } else {
        await this.#sleep(delay);
        delay = Math.min(MAX_RETRY_MS, delay * 2);
      }
    }
  }

  /** Until kicked, or for `ms`. */
  async #sleep(ms?: number): Promise<void> {
    if (!this.#kicked && !this.#stop.signal.aborted) {
      const awake = new AbortController();
      this.#wake = () => awake.abort();
      if (ms !== undefined) await pause(this.#o.clock, ms, awake.signal);
      else {
        await new Promise((resolve) => awake.signal.addEventListener("abort", resolve));
      }
      this.#wake = () => {};
    }
    this.#kicked = false;
  }

  /** Appends what is not yet in the file, in order, and syncs once. */
  async #persistAll(): Promise<void> {
    const fresh = this.#queue.filter((item) => !item.durable);
    if (fresh.length === 0) return;
    try {
      this.#file ??= SpoolFile.create(this.#o.dir, this.#o.header);
      for (const item of fresh) {
        this.#file.append({ type: "message", ...item.record });
        item.durable = true;
      }
      await this.#file.sync();
      this.#storageTold = false;
    } catch (error) {
      this.#o.log.error("spool.storage_failed", { dir: this.#o.dir, reason: errorText(error) });
      if (!this.#storageTold) {
        this.#storageTold = true;
        this.#o.notice(`cannot write ${this.#o.dir}: messages are kept in memory only`);
      }
    }
  }

  /** True when the message is dealt with for good. */
  async #handOver(item: Item): Promise<boolean> {
    const { target, sequence } = item.record;
    try {
      await this.#o.send(spooledSend(this.#o.header, item.record), this.#stop.signal);
      return true;
    } catch (error) {
      if (!isPermanent(error)) {
        this.#o.log.debug("spool.retry", { sequence, reason: errorText(error) });
        return false;
      }
      const hint = error.hint === undefined ? "" : ` (${error.hint})`;
      this.#o.notice(`message to ${target} NOT sent, ${error.reason}: ${error.message}${hint}`);
      this.#o.log.warn("spool.refused", { sequence, target, reason: error.reason });
      return true;
    }
  }

  /** Not synced: after a crash the message is sent again and its key makes that a no-op. */
  #mark(item: Item): void {
    if (!item.durable || this.#file === undefined) return;
    try {
      if (this.#queue.some((one) => one.durable)) {
        this.#file.append({ type: "advance", sequence: item.record.sequence });
      } else this.#file.clear();
    } catch (error) {
      this.#o.log.warn("spool.advance_failed", { reason: errorText(error) });
    }
  }
}

/** A spool whose broker is dead, held under its lock until `close`. */
export interface OrphanSpool {
  readonly file: string;
  readonly header: SpoolHeader;
  /** Not yet handed over, in order; send each with {@link spooledSend}. */
  readonly records: readonly SpoolRecord[];
  /** Marks one as handed over (or refused for good). */
  advance(sequence: number): void;
  /** Deletes the file; when every record was advanced. */
  remove(): void;
  /** Releases it; what was not advanced stays for the next adoption. */
  close(): void;
}

/**
 * The spools in `dir` whose owners are dead (their lock is free). A damaged one is passed to
 * `onDamaged` and left alone. Each must be closed.
 */
export function orphanSpools(
  dir: string,
  onDamaged: (file: string, error: unknown) => void = () => {},
): OrphanSpool[] {
  const found: OrphanSpool[] = [];
  let names: string[];
  try {
    names = [...Deno.readDirSync(dir)].map((entry) => entry.name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return found;
    throw error;
  }
  for (const name of names.filter((name) => name.endsWith(".spool")).sort()) {
    const file = `${dir}/${name}`;
    try {
      const adopted = SpoolFile.adopt(file);
      if (adopted === undefined) continue;
      const { spool, content } = adopted;
      found.push({
        file,
        header: content.header,
        records: content.pending,
        advance: (sequence) => spool.append({ type: "advance", sequence }),
        remove: () => spool.remove(),
        close: () => spool.close(),
      });
    } catch (error) {
      onDamaged(file, error);
    }
  }
  return found;
}
