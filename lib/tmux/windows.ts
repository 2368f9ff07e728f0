/**
 * The windows of repositories in one tmux server. A window is known by user options on it, never by
 * its name: people and agents rename windows.
 */
import { TamqError } from "../base/errors.ts";
import { describe } from "../base/proc.ts";
import { literal, type Tmux } from "./client.ts";

/** Registered name of the repository, percent-encoded: no space, no `#`, no line break. */
const REPO_OPTION = "@tamq_repo";
/** The pane that the broker runs in; the window may have others, of the operator's making. */
const PANE_OPTION = "@tamq_pane";

/** The session that is used outside tmux. */
export const SESSION = "tamq";

export interface RepoWindow {
  readonly repo: string;
  readonly windowId: string;
  /** False when the broker is gone: its pane is dead, closed, or runs something else. */
  readonly live: boolean;
  /** Panes of the window in which some program runs, the broker's not counted. */
  readonly otherPanes: number;
  /** The broker's pane, if it still shows with nothing running in it. */
  readonly deadPane: string | undefined;
  /** What the live broker runs. */
  readonly command: readonly string[];
}

/** Where new windows go: an existing session by id, or one to be made. */
export type Place =
  | { readonly kind: "session"; readonly sessionId: string }
  | {
    readonly kind: "new";
    readonly size?: { readonly columns: number; readonly rows: number };
  };

export interface Opening {
  readonly repo: string;
  /** What runs in the window; run by tmux without a shell. */
  readonly argv: readonly string[];
  /** Set in the window's environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** Every window of the server that carries a repository's name. */
export async function repoWindows(tmux: Tmux): Promise<RepoWindow[]> {
  const format = [
    "#{window_id}",
    "#{pane_id}",
    "#{pane_dead}",
    "#{pane_pid}",
    `#{${PANE_OPTION}}`,
    `#{${REPO_OPTION}}`,
  ].join(" ");
  const { code, stdout } = await tmux.attempt("list-panes", "-a", "-F", format);
  if (code !== 0) return []; // no server
  const windows = new Map<string, { repo: string; brokerPane: string; panes: Map<string, Pane> }>();
  for (const line of stdout.split("\n")) {
    const [windowId, paneId, dead, pid, brokerPane, encoded] = line.split(" ");
    const repo = decode(encoded);
    if (!windowId || !paneId || repo === undefined) continue;
    let window = windows.get(windowId);
    if (window === undefined) {
      window = { repo, brokerPane: brokerPane ?? "", panes: new Map() };
      windows.set(windowId, window);
    }
    // A window linked into several sessions is listed in each of them.
    window.panes.set(paneId, { dead: dead === "1", pid: Number(pid) });
  }
  return [...windows].map(([windowId, { repo, brokerPane, panes }]) => {
    const pane = panes.get(brokerPane);
    const others = [...panes].filter(([id, one]) => id !== brokerPane && !one.dead).length;
    const { found, command = [] } = pane === undefined || pane.dead
      ? { found: "nothing" }
      : occupant(pane.pid);
    return {
      repo,
      windowId,
      live: found === "broker",
      otherPanes: others + (found === "other" ? 1 : 0),
      deadPane: pane !== undefined && found === "nothing" ? brokerPane : undefined,
      command,
    };
  });
}

interface Pane {
  readonly dead: boolean;
  readonly pid: number;
}

function decode(encoded: string | undefined): string | undefined {
  if (!encoded) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined; // not written by us
  }
}

/**
 * tmux runs the broker without a shell, so the pane's process is the broker, unless respawned. The
 * process table is asked, since tmux may take a while to notice that a pane's process has ended.
 */
function occupant(
  pid: number,
): { found: "broker" | "other" | "nothing"; command?: readonly string[] } {
  const process = describe(pid);
  if (process === undefined) return { found: "nothing" };
  // Between fork and exec the new process still looks like the server.
  if (process.command.startsWith("tmux: server")) return { found: "broker" };
  const { argv } = process;
  const verb = argv.indexOf("broker");
  if (verb <= 0 || argv[verb + 1]?.startsWith("--repo=") !== true) return { found: "other" };
  const dashes = argv.indexOf("--", verb);
  return { found: "broker", command: dashes < 0 ? [] : argv.slice(dashes + 1) };
}

/** The repository in whose window a pane stands, and where that is; undefined for any other. */
export async function repoOfPane(
  tmux: Tmux,
  pane: string,
): Promise<
  { readonly repo: string; readonly server_pid: number; readonly window_id: string } | undefined
> {
  const format = `#{pid} #{window_id} #{${REPO_OPTION}}`;
  const { stdout } = await tmux.attempt("display-message", "-p", "-t", pane, format);
  const [pid, windowId, encoded] = stdout.trim().split(" ");
  const repo = decode(encoded);
  if (repo === undefined || !windowId) return undefined;
  return { repo, server_pid: Number(pid), window_id: windowId };
}

/** The session that windows of this repository go to when we run outside of the server. */
export async function ownSession(tmux: Tmux): Promise<string | undefined> {
  const { code, stdout } = await tmux.attempt(
    "list-sessions",
    "-F",
    "#{session_id} #{session_name}",
  );
  if (code !== 0) return undefined;
  for (const line of stdout.split("\n")) {
    const space = line.indexOf(" ");
    if (line.slice(space + 1) === SESSION) return line.slice(0, space);
  }
  return undefined;
}

/** The session of the pane we run in. */
export async function sessionOfPane(tmux: Tmux, pane: string | undefined): Promise<string> {
  const target = pane === undefined ? [] : ["-t", pane];
  return (await tmux.run("display-message", "-p", ...target, "#{session_id}")).trim();
}

/** Opens the window in the background and marks it; returns the window's id and its session's. */
export async function openWindow(
  tmux: Tmux,
  place: Place,
  opening: Opening,
): Promise<{ windowId: string; sessionId: string }> {
  // With one word tmux would hand it to a shell.
  if (opening.argv.length < 2) throw new Error("at least two words are needed");
  const env = Object.entries(opening.env).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  const print = ["-P", "-F", "#{window_id} #{pane_id} #{session_id}"];
  const where = place.kind === "session"
    ? ["new-window", "-d", "-t", `${place.sessionId}:`]
    : ["new-session", "-d", "-s", SESSION, ...sizeArguments(place.size)];
  const said = await tmux.run(...where, ...print, ...env, "--", ...opening.argv);
  const [windowId, paneId, sessionId] = said.trim().split(" ");
  if (!windowId || !paneId || !sessionId) {
    throw new TamqError("FAILED_PRECONDITION", "tmux_failed", `tmux answered "${said.trim()}"`);
  }
  try {
    await tmux.run("set-option", "-w", "-t", windowId, PANE_OPTION, paneId);
    await tmux.run("set-option", "-w", "-t", windowId, REPO_OPTION, encode(opening.repo));
    // The name is for people, so that a failure to set it is none.
    await tmux.attempt("rename-window", "-t", windowId, "--", literal(opening.repo));
  } catch (error) {
    // Unmarked, nobody would find it again.
    const { code } = await tmux.attempt("kill-window", "-t", windowId);
    if (code === 0) throw error;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "window_ended",
      `the window of "${opening.repo}" closed at once`,
      { cause: error },
    );
  }
  return { windowId, sessionId };
}

function encode(repo: string): string {
  return encodeURIComponent(repo);
}

function sizeArguments(size: { columns: number; rows: number } | undefined): string[] {
  return size === undefined ? [] : ["-x", String(size.columns), "-y", String(size.rows)];
}

/**
 * Removes what a dead broker left: the whole window, or only its dead pane and our mark when the
 * operator has other panes there. Called after the new window exists, since closing the last window
 * of a session would close the session.
 */
export async function discard(tmux: Tmux, window: RepoWindow): Promise<void> {
  if (window.otherPanes === 0) {
    await tmux.attempt("kill-window", "-t", window.windowId);
    return;
  }
  await tmux.attempt("set-option", "-w", "-u", "-t", window.windowId, REPO_OPTION);
  await tmux.attempt("set-option", "-w", "-u", "-t", window.windowId, PANE_OPTION);
  if (window.deadPane !== undefined) await tmux.attempt("kill-pane", "-t", window.deadPane);
}

/** What a broker tells the service about its pane. */
export interface PaneFacts {
  readonly server_pid: number;
  readonly session: string;
  readonly session_id: string;
  readonly window_id: string;
  readonly pane_id: string;
}

export async function paneFacts(tmux: Tmux, pane: string): Promise<PaneFacts> {
  const format = "#{pid} #{session_id} #{window_id} #{pane_id} #{session_name}"; // a name may hold spaces
  const said = (await tmux.run("display-message", "-p", "-t", pane, format)).replace(/\n$/, "");
  const match = /^(\d+) (\$\d+) (@\d+) (%\d+) (.*)$/s.exec(said);
  if (match === null) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "tmux_failed",
      `tmux does not know the pane ${pane}`,
    );
  }
  return {
    server_pid: Number(match[1]),
    session_id: match[2]!,
    window_id: match[3]!,
    pane_id: match[4]!,
    session: match[5]!,
  };
}
