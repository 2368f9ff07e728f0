/** The coordination engine and the embedded State Hub, where they are used (K-21). */
import { errorText, TamqError } from "../../base/errors.ts";
import type { Env, Settings } from "../../config.ts";
import { callEngine } from "../../coord/client.ts";
import { connectHub } from "../../coord/connect.ts";
import { engineSettings } from "../../coord/settings.ts";
import { findHub, hubSettings } from "../../hub/settings.ts";
import { liveHolder, readHolder } from "../../socket.ts";
import { openDatabase } from "../../sqlite/open.ts";
import { damageOf, sizeAdvisory, usedBytes } from "../../sqlite/size.ts";
import { VERSION } from "../version.ts";
import { failed, type Finding, ok, problem, warning } from "./finding.ts";

/** Longer than either needs, and short for a person. */
const TIMEOUT_MS = 3000;

interface Part {
  readonly ok: boolean;
  readonly detail: string;
}

export async function checkEngine(settings: Settings): Promise<Finding[]> {
  const place = engineSettings(settings);
  const found = checkFile("engine", "coord", "coordination data", place.database, settings);
  const holder = liveHolder(place.stateDir);
  if (holder === undefined) return [...away("engine", "coord", place), ...found];
  try {
    const status = await callEngine(holder.socket, "status", {}, { timeoutMs: TIMEOUT_MS });
    const { engine, triggers, leases, projection } = status as Record<
      string,
      Record<string, number>
    >;
    const version = (engine as unknown as { version: string }).version;
    const detail = `process ${holder.pid}, version ${version}, ${leases!.held} leases held, ` +
      `${triggers!.gated ?? 0} triggers gated, ${projection!.waiting} receipts unpublished`;
    const restart = "tamq coord stop; tamq coord serve --detach";
    found.unshift(
      version === VERSION ? ok("engine", detail) : warning(
        "engine",
        `it is version ${version}, this is ${VERSION}`,
        restart,
      ),
    );
    for (const name of ["sqlite", "gita", "state_hub", "message_service"]) {
      const part = status[name] as Part;
      if (!part.ok) found.push(warning(`engine: ${name}`, part.detail, remedyOf(name)));
    }
    return found;
  } catch (error) {
    return [failed("engine", error, `see the end of ${place.logFile}`), ...found];
  }
}

function remedyOf(name: string): string {
  if (name === "state_hub") return "nobody is newly woken meanwhile: tamq hub status";
  if (name === "message_service") return "start it: tamq serve --detach";
  return "see: tamq coord status";
}

export async function checkHub(settings: Settings, env: Env): Promise<Finding[]> {
  const place = hubSettings(settings, env);
  const found = checkFile("state hub", "hub", "State Hub data", place.database, settings);
  const address = findHub(settings, place);
  const embedded = liveHolder(place.stateDir) !== undefined;
  if (!embedded && !settings.stateHubExplicit) {
    return [...away("state hub", "hub", place), ...found];
  }
  const where = "unix" in address ? address.unix : address.base;
  try {
    using hub = connectHub(settings, env, { backoffMs: [], timeoutMs: TIMEOUT_MS });
    const { value } = await hub.call("hub", {});
    found.unshift(ok("state hub", `${where}, version ${value.version}`));
  } catch (error) {
    const hint = error instanceof TamqError ? error.hint : undefined;
    const detail = `${where}: ${errorText(error)}`;
    found.unshift(warning("state hub", detail, hint ?? "see: tamq hub status"));
  }
  return found;
}

/** Neither is needed for messages: one that nobody started is no fault. */
function away(
  check: string,
  command: string,
  { stateDir, logFile }: { stateDir: string; logFile: string },
): Finding[] {
  // One that stops in order empties its lock file.
  if (readHolder(stateDir) === undefined) return [ok(check, "not running")];
  const remedy = `see the end of ${logFile}; start it: tamq ${command} serve --detach`;
  return [warning(check, "it ended without a shutdown", remedy)];
}

function checkFile(
  check: string,
  command: string,
  what: string,
  database: string,
  { busyTimeoutMs }: Settings,
): Finding[] {
  try {
    Deno.lstatSync(database);
  } catch {
    return []; // never used
  }
  const name = `${check}: database`;
  try {
    const db = openDatabase(database, { readOnly: true, busyTimeoutMs });
    try {
      const damage = damageOf(db);
      if (damage !== undefined) {
        const remedy = `tamq ${command} stop; keep a copy; sqlite3 ${database} .recover`;
        return [problem(name, `${database} is damaged: ${damage}`, remedy)];
      }
      const advisory = sizeAdvisory(what, `tamq ${command} purge`, usedBytes(db));
      return advisory === undefined
        ? [ok(name, `${database}: sound`)]
        : [warning(name, advisory, `see: tamq ${command} purge --dry-run`)];
    } finally {
      db.close();
    }
  } catch (error) {
    return [failed(name, error)];
  }
}
