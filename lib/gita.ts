/**
 * The gita registry (T-07, E-04): gita's own file, read afresh whenever it changed. No `gita` process
 * is run for it: `gita ls` prints names unquoted on one line, so names with spaces could not be told
 * apart.
 */
import { type Clock, systemClock } from "./base/clock.ts";
import { errorText, TamqError } from "./base/errors.ts";
import { probe } from "./base/probe.ts";
import type { Registry, Repository } from "./model/ports.ts";

type Env = (name: string) => string | undefined;

interface Row {
  readonly name: string;
  readonly path: string;
}

interface Snapshot {
  /** Device, inode, size and times of the file that was read. */
  readonly identity: string;
  /** Rows by name, in the registry's order. */
  readonly rows: ReadonlyMap<string, readonly Row[]>;
  readonly names: readonly string[];
  /** Read so soon after the last change that another one may hide behind the same times. */
  readonly racy: boolean;
}

/**
 * Kernels stamp files with the time of their last tick (4 or 10 ms), and the runtime shows whole
 * milliseconds: two writes this close together may look like one.
 */
const RACY_MS = 50;
/** Far beyond a real registry (some 60,000 rows); a limit on what a mistaken path may make us read. */
const MAX_BYTES = 8 << 20;

/**
 * The registry of this user. Every call of `names` and `find` looks at the file again; all throw
 * `registry_unavailable` when it is missing, unreadable or malformed. Relative paths in it are
 * resolved against the current directory, as gita does.
 */
export function gitaRegistry(
  env: Env = Deno.env.get,
  clock: Pick<Clock, "now"> = systemClock,
): Registry {
  const directory = registryDirectory(env);
  let snapshot: Snapshot | undefined;
  let known = directory === undefined ? undefined : `${directory}/repos.csv`;

  const current = (): Snapshot => {
    if (directory === undefined) {
      throw unavailable("HOME is not set, so the gita registry cannot be found", "set HOME");
    }
    // gita before May 2021 kept `repo_path`; a later gita converts it and goes by repos.csv alone.
    for (const [file, old] of [["repos.csv", false], ["repo_path", true]] as const) {
      const path = `${directory}/${file}`;
      const info = stat(path);
      if (info === undefined) continue;
      known = path;
      if (snapshot === undefined || snapshot.racy || snapshot.identity !== identify(info)) {
        snapshot = undefined;
        snapshot = read(path, old, clock);
      }
      return snapshot;
    }
    throw unavailable(
      `there is no gita registry: ${directory}/repos.csv does not exist`,
      "register a repository with: gita add PATH",
    );
  };

  return {
    get source() {
      return known ?? "gita/repos.csv";
    },
    names: () => current().names,
    find(name): Repository | "unknown" | "ambiguous" {
      const live = (current().rows.get(name) ?? []).filter((row) => isRepository(row.path));
      if (live.length > 1) return "ambiguous";
      return live[0] ?? "unknown";
    },
  };
}

function registryDirectory(env: Env): string | undefined {
  const get = (name: string) => env(name) || undefined; // gita, too, takes empty for unset
  const home = get("HOME");
  const base = get("GITA_PROJECT_HOME") ?? get("XDG_CONFIG_HOME") ??
    (home === undefined ? undefined : `${home}/.config`);
  return base === undefined ? undefined : `${base}/gita`;
}

function stat(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.NotADirectory) {
      return undefined;
    }
    throw unreadable(path, errorText(cause), cause);
  }
}

function identify(info: Deno.FileInfo): string {
  return [info.dev, info.ino, info.size, info.mtime?.getTime(), info.ctime?.getTime()].join(":");
}

function read(path: string, old: boolean, clock: Pick<Clock, "now">): Snapshot {
  // gita writes in place: when the file changed while it was read, what was read may be half of it.
  for (let tries = 0;; tries++) {
    const before = stat(path);
    if (before === undefined || !before.isFile) throw unreadable(path, "it is no regular file");
    if (before.size > MAX_BYTES) throw unreadable(path, `it has ${before.size} bytes`);
    probe("gita.read", path);
    let bytes: Uint8Array;
    try {
      bytes = Deno.readFileSync(path);
    } catch (cause) {
      throw unreadable(path, errorText(cause), cause);
    }
    const after = stat(path);
    const steady = after !== undefined && identify(after) === identify(before);
    if (!steady && tries < 3) continue;
    const racy = !steady || clock.now() - (before.mtime?.getTime() ?? 0) < RACY_MS;
    const rows = (old ? parseRepoPath : parseReposCsv)(decode(bytes, path), path);
    const byName = new Map<string, Row[]>();
    for (const row of rows) {
      const same = byName.get(row.name);
      if (same === undefined) byName.set(row.name, [row]);
      else same.push(row);
    }
    const names = Object.freeze([...byName.keys()]);
    return { identity: identify(before), rows: byName, names, racy };
  }
}

function decode(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const sound = new TextDecoder().decode(bytes);
    const at = sound.indexOf("\ufffd");
    throw malformed(path, sound.slice(0, Math.max(0, at)).split("\n").length, "not valid UTF-8");
  }
}

/** Rows of repos.csv: `path,name[,type[,flags[,…]]]`, minimal quoting, CRLF or LF. */
export function parseReposCsv(text: string, file: string): Row[] {
  const rows: Row[] = [];
  let line = 1;
  for (let at = 0; at < text.length;) {
    const begun = line;
    const fields: string[] = [];
    for (;;) {
      let field = "";
      if (text[at] === '"') {
        // To the closing quote; a doubled one stands for itself.
        for (at++;; at++) {
          if (at >= text.length) throw malformed(file, begun, "a quote is never closed");
          if (text[at] === '"') {
            if (text[at + 1] !== '"') break;
            at++;
          }
          if (text[at] === "\n") line++;
          field += text[at];
        }
        at++;
        if (at < text.length && !",\r\n".includes(text[at]!)) {
          throw malformed(file, line, "text follows a closing quote");
        }
      } else {
        const start = at;
        while (at < text.length && !",\r\n".includes(text[at]!)) at++;
        field = text.slice(start, at);
      }
      fields.push(field);
      if (text[at] !== ",") break;
      at++;
    }
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    line++;
    const [path = "", name = ""] = fields;
    if (fields.length === 1 && path === "") continue; // an empty line
    rows.push(row(path, name, file, begun));
  }
  return rows;
}

/** Rows of the older file `repo_path`: lines `path,name`. */
export function parseRepoPath(text: string, file: string): Row[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    if (line === "") return [];
    const comma = line.lastIndexOf(",");
    return [row(line.slice(0, Math.max(0, comma)), line.slice(comma + 1), file, index + 1)];
  });
}

function row(path: string, name: string, file: string, line: number): Row {
  if (path === "" || name === "") throw malformed(file, line, "path or name is missing");
  if (path.includes("\0")) throw malformed(file, line, "the path holds a NUL character");
  return { name, path: path.startsWith("/") ? path : `${Deno.cwd()}/${path}` };
}

/** Whether gita would list it: a work tree (`.git` is a folder, or a file in worktrees) or a bare one. */
function isRepository(path: string): boolean {
  if (exists(`${path}/.git`)) return true;
  return exists(`${path}/HEAD`) && exists(`${path}/objects`) && exists(`${path}/refs`);
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

function unavailable(message: string, hint: string, cause?: unknown): TamqError {
  return new TamqError("UNAVAILABLE", "registry_unavailable", message, { hint, cause });
}

function unreadable(path: string, why: string, cause?: unknown): TamqError {
  return unavailable(
    `cannot read the gita registry ${path}: ${why}`,
    "check its owner and permissions, or write it anew with: gita add PATH...",
    cause,
  );
}

function malformed(path: string, line: number, why: string): TamqError {
  return unavailable(
    `the gita registry ${path} is malformed in line ${line}: ${why}`,
    "mend or delete that line, then register the repository again with: gita add PATH",
  );
}
