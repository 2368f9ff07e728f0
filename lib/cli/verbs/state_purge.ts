/** `tamq coord purge` and `tamq hub purge` (K-22): count first, ask, and only then remove. */
import { rfc3339 } from "../../base/clock.ts";
import { TamqError } from "../../base/errors.ts";
import { ancestry } from "../../base/proc.ts";
import { loadSettings } from "../../config.ts";
import { engineSettings } from "../../coord/settings.ts";
import { purgeEngine } from "../../coord/store/purge.ts";
import { hubSettings } from "../../hub/settings.ts";
import { purgeHub } from "../../hub/store/purge.ts";
import { windowOfAncestry } from "../../broker_process.ts";
import { DEFAULT_BEFORE } from "../../model/purge.ts";
import { lockPath, tryLockFile } from "../../socket.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseTime } from "../times.ts";

export interface StatePurgeFlags {
  readonly before?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

interface Place {
  readonly name: string;
  readonly command: "coord" | "hub";
  readonly database: string;
  readonly stateDir: string;
  readonly busyTimeoutMs: number;
  readonly purge: typeof purgeEngine;
}

export const coord: Verb<StatePurgeFlags> = async function (flags) {
  const settings = await loadSettings(this.env);
  const { database, stateDir } = engineSettings(settings);
  const { busyTimeoutMs } = settings;
  await purge(this, flags, {
    name: "coordination engine",
    command: "coord",
    database,
    stateDir,
    busyTimeoutMs,
    purge: purgeEngine,
  });
};

export const hub: Verb<StatePurgeFlags> = async function (flags) {
  const place = hubSettings(await loadSettings(this.env), this.env);
  await purge(this, flags, { ...place, name: "State Hub", command: "hub", purge: purgeHub });
};

async function purge(context: CliContext, flags: StatePurgeFlags, place: Place): Promise<void> {
  const iso = parseTime(flags.before ?? DEFAULT_BEFORE, context.clock.now(), "--before");
  const before = Date.parse(iso);
  const { database, busyTimeoutMs } = place;
  const options = { before, busyTimeoutMs };
  const counts = place.purge(database, { ...options, execute: false });
  const what = Object.entries(counts).map(([name, n]) => `${n} ${name}`).join(", ");
  const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const told = (purged: boolean) =>
    context.out(JSON.stringify({ purged, before: rfc3339(before), ...counts }));
  if (!flags.json) context.out(`older than ${rfc3339(before)}: ${what}`);
  const ask = context.stdinIsTerminal() && context.stdoutIsTerminal() && !flags.json;
  if (total === 0 || flags.dryRun || (!flags.yes && !ask)) {
    if (flags.json) return told(false);
    return context.out(total === 0 ? "nothing to purge" : "nothing was purged; add --yes to purge");
  }
  if (!flags.yes) {
    await context.flush();
    if (await context.ask("Purge these? Type yes: ") !== "yes") {
      return context.out("nothing was purged");
    }
  }
  await alone(place, () => place.purge(database, { ...options, execute: true }));
  if (flags.json) return told(true);
  context.out("purged");
}

/** Takes the place of the process that works with the database, for as long. */
async function alone({ name, command, stateDir }: Place, work: () => void): Promise<void> {
  if (windowOfAncestry(ancestry(Deno.pid)) !== undefined) {
    throw new TamqError("PERMISSION_DENIED", "worker_refused", "a window may not purge", {
      hint: "run it in a terminal outside the windows that tamq opened",
    });
  }
  const lock = await tryLockFile(lockPath(stateDir));
  if (lock === undefined) {
    throw new TamqError("FAILED_PRECONDITION", "still_running", `the ${name} is running`, {
      hint: `stop it first: tamq ${command} stop; afterwards: tamq ${command} serve --detach`,
    });
  }
  try {
    work();
  } finally {
    lock.close();
  }
}
