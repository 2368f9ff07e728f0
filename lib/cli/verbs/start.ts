/** `tamq start`, also reached as `tamq --command CMD REPO…` (E-05, E-06). */
import { pause } from "../../base/clock.ts";
import { displaySafe } from "../../base/display.ts";
import { errorText, TamqError } from "../../base/errors.ts";
import { selfCommand } from "../../base/self.ts";
import { brokerArguments } from "../../broker_process.ts";
import { call, findSocket } from "../../client.ts";
import { loadSettings, type Settings } from "../../config.ts";
import { gitaRegistry } from "../../gita.ts";
import { ensureStateDir } from "../../ipc/state_dir.ts";
import { endpointId, type Mode } from "../../model/endpoint.ts";
import type { Repository } from "../../model/ports.ts";
import { launchFor } from "../../launch.ts";
import { windowRule } from "../../model/window_policy.ts";
import { startDetached } from "../../service_control.ts";
import type { Tmux } from "../../tmux/client.ts";
import { discard, openWindow, type RepoWindow, repoWindows, SESSION } from "../../tmux/windows.ts";
import type { Verb } from "../command.ts";
import type { CliContext } from "../context.ts";
import { requireCommand } from "../find_command.ts";
import { withOpenLock } from "../open_lock.ts";
import { requireRepositories } from "../targets.ts";
import { attachTerminal, chooseServer, type Surroundings } from "../tmux_server.ts";
import { windowEnvironment } from "../window_environment.ts";
import { quoteWord, splitWords } from "../words.ts";

export interface StartFlags {
  readonly command: string;
  readonly mode?: Mode;
  readonly tmuxSocket?: string;
  readonly noService?: boolean;
  readonly bare?: boolean;
  readonly profile?: string;
  readonly record?: boolean;
  readonly recordInput?: boolean;
  readonly capture?: boolean;
  readonly dryRun?: boolean;
}

/** What is to run for one repository: options first, then the configuration's rules, then defaults. */
interface Wish {
  readonly repo: Repository;
  readonly mode: Mode;
  /** Named by option or rule; otherwise the command decides. */
  readonly profile: string | undefined;
}

const MODE_WORDS: Readonly<Record<Mode, string>> = {
  trigger: "messages are typed and submitted",
  draft: "messages are typed, Enter is yours",
  hold: "messages wait for tamq release",
};

/** A broker loads its program, attaches and is listed within a second; ten cover a loaded machine. */
const ATTACH_MS = 10_000;
const POLL_MS = 50;

const start: Verb<StartFlags, string[]> = async function (flags, ...names) {
  // Everything that can be refused is refused before anything is started.
  const words = splitWords(flags.command);
  const settings = await loadSettings(this.env);
  const repos = requireRepositories(gitaRegistry(this.env), names);
  requireCommand(words[0]!, this.env, repos.map((repo) => repo.path));
  const surroundings = await chooseServer(this.env, flags.tmuxSocket);
  const tightened = ensureStateDir(settings.stateDir);
  if (tightened !== undefined) this.err(`tamq: ${displaySafe(tightened)}`);
  const server = await serverEnvironment(surroundings.tmux);
  const wishes = repos.map((repo): Wish => {
    const rule = windowRule(settings.windows, repo.name, words);
    return {
      repo,
      mode: flags.mode ?? rule.mode ?? "trigger",
      profile: flags.profile ?? rule.profile,
    };
  });
  // What the broker will find: the server's environment and what is passed beside it.
  const env = (name: string) => server.has(name) ? "set" : this.env(name);
  for (const line of await planned(surroundings, wishes, words, flags, settings, env)) {
    this.out(displaySafe(line));
  }

  if (flags.record || flags.recordInput) {
    const what = flags.recordInput ? "shown and typed" : "shown";
    this.out(`what is ${what} is recorded in ${displaySafe(settings.recordingsDir)}`);
  }
  if (flags.capture) {
    this.out(`messages are also written to files in ${displaySafe(settings.capturesDir)}`);
  }
  if (flags.dryRun) return;
  await this.flush(); // said before it is done
  if (flags.noService) {
    this.err("tamq: warning: --no-service: these windows neither send nor receive messages");
  } else {
    const started = await startDetached(settings);
    if (started.started) this.out(`message service started (pid ${started.pid})`);
    if (started.advisory !== undefined) this.err(displaySafe(started.advisory));
  }
  const opened = await withOpenLock(
    settings.stateDir,
    () => open(this, surroundings, wishes, words, flags),
  );
  await this.flush();
  if (!flags.noService) {
    await waitAttached(this, settings, surroundings.tmux, repos, opened.windows, words);
  }
  return await attachTerminal(
    this,
    surroundings,
    opened.sessionId,
    opened.windows.get(repos[0]!.name),
  );
};
export default start;

/** What will run, and where: one line for each way in which windows that are not open yet differ. */
async function planned(
  { tmux, place, inside }: Surroundings,
  wishes: readonly Wish[],
  words: readonly string[],
  flags: StartFlags,
  settings: Settings,
  env: (name: string) => string | undefined,
): Promise<string[]> {
  const open = new Map(
    (await repoWindows(tmux)).filter(({ live }) => live).map((window) => [window.repo, window]),
  );
  const missing = wishes.filter(({ repo }) => !open.has(repo.name));
  const lines: string[] = [];
  // Without --dry-run the same is said when the others are opened.
  for (const { repo: { name } } of flags.dryRun ? wishes : []) {
    const window = open.get(name);
    if (window !== undefined) lines.push(alreadyOpen(window, words));
  }
  const where = inside
    ? "the current tmux session"
    : `${place.kind === "new" ? "a new" : "the"} tmux session "${SESSION}"`;
  const ways = Map.groupBy(missing, ({ mode, profile }) => `${mode} ${profile ?? ""}`);
  for (const same of ways.values()) {
    const { mode, profile: name, repo } = same[0]!;
    const wish = { command: words, repo: repo.name, profile: name, bare: flags.bare };
    const { profile, launch } = await launchFor(wish, settings, env);
    const command = launch.argv.map(quoteWord).join(" ");
    const windows = same.length === 1 ? "a window" : "a window each";
    lines.push(
      `will run ${command} in ${windows} of ${where}: ${
        same.map(({ repo }) => repo.name).join(", ")
      }`,
      `  mode ${mode}: ${MODE_WORDS[mode]}`,
    );
    if (launch.added.length > 0) {
      const added = launch.added.map(quoteWord).join(" ");
      lines.push(`  profile ${profile.name} adds: ${added} (--bare leaves it out)`);
    }
  }
  return lines;
}

interface Opened {
  /** Window by repository, also of those that were open before. */
  readonly windows: ReadonlyMap<string, string>;
  readonly sessionId: string | undefined;
}

async function open(
  context: CliContext,
  surroundings: Surroundings,
  wishes: readonly Wish[],
  words: readonly string[],
  flags: StartFlags,
): Promise<Opened> {
  const { tmux } = surroundings;
  const existing = await repoWindows(tmux);
  const env = windowEnvironment(context.env, await serverEnvironment(tmux));
  const windows = new Map<string, string>();
  let place = surroundings.place;
  for (const { repo: { name, path }, mode, profile } of wishes) {
    const own = existing.filter((window) => window.repo === name);
    const live = own.find((window) => window.live);
    if (live !== undefined) {
      windows.set(name, live.windowId);
      context.out(displaySafe(alreadyOpen(live, words)));
      continue;
    }
    const { bare, capture } = flags;
    const record = flags.recordInput ? "input" : flags.record ? "output" : undefined;
    const service = flags.noService !== true;
    const argv = selfCommand(
      brokerArguments({
        repo: name,
        path,
        mode,
        service,
        bare,
        record,
        capture,
        profile,
        command: words,
      }),
    );
    const made = await openWindow(tmux, place, { repo: name, argv, env }).catch((error) => {
      const ended = error instanceof TamqError && error.reason === "window_ended";
      throw ended ? endedAtOnce({ name, path }, words) : error;
    });
    place = { kind: "session", sessionId: made.sessionId };
    windows.set(name, made.windowId);
    for (const dead of own) await discard(tmux, dead);
    const command = words.map(quoteWord).join(" ");
    const where = `window ${made.windowId}, ${path}`;
    context.out(`${displaySafe(name)}: runs ${displaySafe(command)} (${displaySafe(where)})`);
  }
  return { windows, sessionId: place.kind === "session" ? place.sessionId : undefined };
}

/** Names of the variables that the server gives to its windows. */
async function serverEnvironment(tmux: Tmux): Promise<Set<string>> {
  const { code, stdout } = await tmux.attempt("show-environment", "-g");
  if (code !== 0) return new Set(); // no server yet: it will have our own environment
  return new Set(stdout.split("\n").flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? []));
}

/** Waits until the service lists each repository in this tmux server; bounded. */
async function waitAttached(
  context: CliContext,
  settings: Settings,
  tmux: Tmux,
  repos: readonly Repository[],
  windows: ReadonlyMap<string, string>,
  words: readonly string[],
): Promise<void> {
  const { clock } = context;
  const requireLive = async (some: readonly Repository[]) => {
    const live = (await repoWindows(tmux)).filter((one) => one.live).map((one) => one.windowId);
    for (const repo of some) {
      if (!live.includes(windows.get(repo.name)!)) throw endedAtOnce(repo, words);
    }
  };
  const end = clock.monotonic() + ATTACH_MS;
  const missing = new Set(repos.map((repo) => repo.name));
  let trouble: unknown;
  for (let round = 0;; round++) {
    const pid = await tmux.serverPid();
    try {
      const { endpoints } = await call(findSocket(settings), "endpoints", {});
      const here = endpoints.find((one) =>
        pid !== undefined && one.endpoint_id === endpointId(pid)
      );
      for (const repo of here?.repos ?? []) missing.delete(repo);
    } catch (error) {
      trouble = error; // perhaps just being restarted
    }
    // Attached is not alive: a command that fails at once is caught here, as far as one look can.
    if (missing.size === 0) return await requireLive(repos);
    if (round % 4 === 3) await requireLive(repos.filter(({ name }) => missing.has(name)));
    if (clock.monotonic() >= end) break;
    await pause(clock, POLL_MS);
  }
  const names = [...missing].map((name) => `"${name}"`).join(", ");
  const why = trouble === undefined ? "" : `: ${errorText(trouble)}`;
  throw new TamqError(
    "DEADLINE_EXCEEDED",
    "attach_timeout",
    `no messages yet for ${names}: not attached within ${ATTACH_MS / 1000} seconds${why}`,
    { hint: "the window says why; see also: tamq status" },
  );
}

/** Also what an open window runs, when that is not what was asked for. */
function alreadyOpen(window: RepoWindow, words: readonly string[]): string {
  const open = `${window.repo}: already open (window ${window.windowId})`;
  const same = window.command.length === 0 || window.command.join("\0") === words.join("\0");
  if (same) return open;
  const runs = window.command.map(quoteWord).join(" ");
  return `${open}; it runs ${runs}, and ${words.map(quoteWord).join(" ")} was not started`;
}

function endedAtOnce(repo: Repository, words: readonly string[]): TamqError {
  const command = words.map(quoteWord).join(" ");
  return new TamqError(
    "FAILED_PRECONDITION",
    "window_ended",
    `${command} ended within a moment, and the window of "${repo.name}" closed with it`,
    { hint: `see why by running it there: cd ${quoteWord(repo.path)} && ${command}` },
  );
}
