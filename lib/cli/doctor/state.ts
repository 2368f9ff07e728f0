/** What lies on the disk: directory, modes, filesystem, socket, database, spool, clock. */
import { type Clock, rfc3339 } from "../../base/clock.ts";
import type { Settings } from "../../config.ts";
import { historyAdvisory } from "../../history_advisory.ts";
import { filesystemOf, isNetwork } from "../../ipc/filesystem.ts";
import { orwellSink } from "../../ipc/orwell.ts";
import { socketPathBytes } from "../../ipc/path.ts";
import { openDatabase } from "../../sqlite/open.ts";
import { checkUp } from "../../store/checkup.ts";
import { SCHEMA_VERSION } from "../../store/store.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

export function checkStateDir(settings: Settings): Finding[] {
  const { stateDir } = settings;
  const found = [filesystem(settings)];
  const info = stat(stateDir);
  if (info === undefined) {
    return [...found, ok("state directory", `${stateDir}: made when the service first starts`)];
  }
  const check = "state directory";
  if (!info.isDirectory) {
    const remedy = "move it away, or set TAMQ_STATE_DIR";
    return [...found, problem(check, `${stateDir} is no directory`, remedy)];
  }
  if (info.uid !== Deno.uid()) {
    const detail = `${stateDir} belongs to user ${info.uid}, not to user ${Deno.uid()}`;
    return [...found, problem(check, detail, "set TAMQ_STATE_DIR to a directory of your own")];
  }
  const loose = looseModes(stateDir, info);
  found.push(
    loose.length === 0 ? ok(check, stateDir) : problem(
      check,
      `others may read: ${loose.join(", ")}`,
      `chmod -R go= ${stateDir}`,
    ),
  );
  return found;
}

function filesystem(settings: Settings): Finding {
  const mount = filesystemOf(settings.stateDir);
  if (mount === undefined) return ok("filesystem", "the kernel does not say");
  const text = `${mount.type} at ${mount.point}`;
  if (!isNetwork(mount.type)) return ok("filesystem", text);
  const remedy = "set TAMQ_STATE_DIR to a directory on a local disk";
  return settings.allowNetworkState
    ? warning("filesystem", `${text}: a network filesystem, allowed by configuration`, remedy)
    : problem("filesystem", `${text}: a network filesystem damages databases`, remedy);
}

/** Names in the directory that somebody else could open. */
function looseModes(dir: string, info: Deno.FileInfo): string[] {
  const loose = ((info.mode ?? 0) & 0o077) === 0 ? [] : [dir];
  // Behind a closed door the modes of the files matter less, but a copy takes them along.
  for (const { name, isSymlink } of Deno.readDirSync(dir)) {
    const file = isSymlink ? undefined : stat(`${dir}/${name}`);
    if (file !== undefined && ((file.mode ?? 0) & 0o077) !== 0) loose.push(name);
  }
  return loose;
}

/** The file of the socket; whether somebody answers is another question. */
export function checkSocket(socket: string): Finding[] {
  const check = "socket";
  socketPathBytes(socket);
  let info: Deno.FileInfo;
  try {
    info = Deno.lstatSync(socket);
  } catch {
    return [ok(check, `${socket}: made when the service starts`)];
  }
  const elsewhere = "move it away, or set TAMQ_SOCKET to another path";
  if (info.isSocket !== true) return [problem(check, `${socket} is no socket`, elsewhere)];
  if (info.uid !== Deno.uid()) {
    return [problem(check, `${socket} belongs to user ${info.uid}`, elsewhere)];
  }
  const mode = (info.mode ?? 0) & 0o777;
  if ((mode & 0o077) !== 0) {
    return [problem(check, `${socket} has mode ${mode.toString(8)}`, `chmod 600 ${socket}`)];
  }
  return [ok(check, socket)];
}

export function checkDatabase(settings: Settings, clock: Clock): Finding[] {
  const { database, busyTimeoutMs } = settings;
  const check = "database";
  if (stat(database) === undefined) {
    return [ok(check, `${database}: made when the service first starts`)];
  }
  const db = openDatabase(database, { readOnly: true, busyTimeoutMs });
  try {
    const { damage, schema, lastAt } = checkUp(db);
    if (damage !== undefined) {
      const remedy = `tamq stop; keep a copy; sqlite3 ${database} .recover, or restore a backup`;
      return [problem(check, `${database} is damaged: ${damage}`, remedy)];
    }
    const text = `${database}: sound, schema ${schema}`;
    if (schema > SCHEMA_VERSION) {
      const detail = `${text}, newer than this tamq knows (${SCHEMA_VERSION})`;
      return [problem(check, detail, "use the newer tamq")];
    }
    const found: Finding[] = [];
    found.push(
      schema === SCHEMA_VERSION ? ok(check, text) : warning(
        check,
        `${text}; this tamq writes ${SCHEMA_VERSION}`,
        "start the service again, which upgrades it after a backup: tamq stop; tamq serve --detach",
      ),
    );
    const advisory = schema > 0 ? historyAdvisory(db) : undefined;
    if (advisory !== undefined) found.push(warning("history", advisory, "see: tamq purge"));
    if (schema > 0) found.push(clockCheck(lastAt, clock));
    return found;
  } finally {
    db.close();
  }
}

/** Waits are not measured by the wall clock, but the times that people read are. */
function clockCheck(last: number, clock: Clock): Finding {
  const now = clock.now();
  if (last <= now + 60_000) return ok("clock", rfc3339(now));
  return warning(
    "clock",
    `it shows ${rfc3339(now)}, before the last entry of the database (${rfc3339(last)})`,
    "set the clock: times in the history are not in order otherwise",
  );
}

/** What brokers left that nobody has sent yet; `windows` are attached now. */
export function checkSpool(dir: string, windows: number | undefined): Finding[] {
  let files: string[];
  try {
    files = [...Deno.readDirSync(dir)].map(({ name }) => name)
      .filter((name) => name.endsWith(".spool"));
  } catch {
    return [ok("spool", "empty")];
  }
  if (files.length <= (windows ?? 0)) {
    return [ok("spool", files.length === 0 ? "empty" : `${files.length} in use`)];
  }
  return [
    windows === undefined
      ? warning("spool", `${files.length} not sent yet`, "start the service: tamq serve --detach")
      : warning(
        "spool",
        `${files.length} files, ${windows} windows: some could not be sent`,
        `see "spool" in the log for the reason; the files stay in ${dir}`,
      ),
  ];
}

/** What `--orwell` wrote is to be deleted after the diagnosis (C-06). */
export function checkOrwell(dirs: readonly string[]): Finding[] {
  const left = dirs.map(orwellSink).filter((sink) => stat(sink) !== undefined);
  return left.map((sink) =>
    warning("orwell", `${sink} holds bodies and credentials in clear`, `delete it: rm ${sink}*`)
  );
}

function stat(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
