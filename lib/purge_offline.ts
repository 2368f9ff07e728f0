/** Purging while no service runs: this process takes the service's place for as long. */
import { type Clock, systemClock } from "./base/clock.ts";
import { TamqError } from "./base/errors.ts";
import { ancestry } from "./base/proc.ts";
import { brokerProcesses } from "./broker_process.ts";
import type { Settings } from "./config.ts";
import { configVersion } from "./config_keys.ts";
import { lockPath, tryLockFile } from "./ipc/lock.ts";
import type { PurgeChoice } from "./model/purge.ts";
import type { RequestOf, ResponseOf } from "./protocol/operations.ts";
import { planPurge, purgeOperation, type PurgePlan, Purger } from "./queue/purger.ts";
import { GroupCommit } from "./sqlite/group_commit.ts";
import type { Database } from "./sqlite/open.ts";
import { PurgeReader } from "./store/purge_reader.ts";
import { openStore } from "./store/store.ts";

/** Counts what a purge would take, from a database that is open for reading. */
export function countPurge(
  db: Database,
  choice: PurgeChoice,
  maxBytes: number | undefined,
): PurgePlan {
  const work = planPurge(new PurgeReader(db), choice, maxBytes);
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

export interface OfflinePurge extends Disposable {
  /** The `purge` operation, as the service performs it. */
  readonly purge: (request: RequestOf<"purge">) => Promise<ResponseOf<"purge">>;
  /** Makes the file as small as it can be, where the purge itself could not. */
  readonly shrink: () => void;
}

/**
 * Holds the service lock until disposed. Throws `worker_refused` in a window that tamq opened
 * (T-27), `service_running` when a service is there after all, and store errors.
 */
export async function openOfflinePurge(
  settings: Settings,
  clock: Clock = systemClock,
): Promise<OfflinePurge> {
  const isBroker = brokerProcesses(clock);
  if (ancestry(Deno.pid).some(isBroker)) {
    throw new TamqError("PERMISSION_DENIED", "worker_refused", "a window may not purge history", {
      hint: "run it in a terminal outside the windows that tamq opened",
    });
  }
  // Not through the lock's own release: that would make a crashed service look like a stopped one.
  const lock = await tryLockFile(lockPath(settings.stateDir));
  if (lock === undefined) {
    throw new TamqError(
      "ALREADY_EXISTS",
      "service_running",
      `a service is starting or stopping on ${settings.stateDir}`,
      { hint: "try again in a moment" },
    );
  }
  try {
    const { database, busyTimeoutMs } = settings;
    const { db, store } = await openStore(database, {
      busyTimeoutMs,
      clock,
      stamp: { config_version: configVersion(settings) },
    });
    const commit = new GroupCommit(db, { path: database, clock, busyTimeoutMs });
    const purger = new Purger({ store, commit, clock });
    return {
      purge: (request) => purgeOperation(purger, request),
      // A file made before schema 2 cannot be shortened in pieces; written anew, it can from then on.
      shrink: () => {
        if (!store.purge.canGiveBack()) store.purge.rebuild();
      },
      [Symbol.dispose]() {
        db.close();
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}
