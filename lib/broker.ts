/**
 * Composition root of one window: the broker of one worker's terminal (B-01 to B-16). Everything it
 * needs is imported before the worker starts: a changed checkout must not break a running broker.
 */
import { type Clock, systemClock } from "./base/clock.ts";
import { errorText } from "./base/errors.ts";
import { brokerArguments } from "./broker_process.ts";
import { guard, knownNames, placeOf, refusalText, relayUntilExit } from "./broker_support.ts";
import { Upgrade } from "./broker_upgrade.ts";
import { newToken } from "./base/ids.ts";
import { createLog, type Log } from "./base/log.ts";
import { systemRandom } from "./base/random.ts";
import { importLate } from "./base/late.ts";
import { call, findSocket, openStream } from "./client.ts";
import type { Settings } from "./config.ts";
import { checkBody } from "./model/body.ts";
import type { Mode } from "./model/endpoint.ts";
import type { Registry } from "./model/ports.ts";
import { CAPABILITIES } from "./protocol/handshake.ts";
import { type Handover, HANDOVER_FORMAT, type KeptWorker } from "./handover.ts";
import type { AgentOptions, KeptAgent } from "./pty/agent.ts";
import { Link } from "./pty/link.ts";
import { appendLines } from "./pty/log_file.ts";
import { Notices } from "./pty/notice.ts";
import { launchFor } from "./launch.ts";
import { screenNoticeText } from "./pty/notice_texts.ts";
import { isAgentProfile } from "./pty/profiles/catalog.ts";
import type { Profile } from "./pty/profiles/plain.ts";
import { adoptOrphans, collectOrphans } from "./pty/orphans.ts";
import { Relay, type RelayHooks } from "./pty/relay.ts";
import { Session } from "./pty/session.ts";
import { Spool } from "./pty/spool.ts";
import { OuterTerminal } from "./pty/terminal.ts";
import { WorkerWindow } from "./pty/window.ts";
import { Termios } from "./pty_ffi.ts";
import type { AgentSide } from "./pty/window_options.ts";
import { windowCapture } from "./window_capture.ts";
import { type RecordWish, WindowRecording } from "./window_recording.ts";

export interface BrokerOptions {
  readonly repo: string;
  /** Registered path of the repository; the worker starts there. */
  readonly path: string;
  readonly command: readonly string[];
  readonly mode: Mode;
  readonly tmux: {
    readonly server_pid: number;
    readonly session: string;
    readonly session_id?: string;
    readonly window_id: string;
    readonly pane_id: string;
  };
  readonly settings: Settings;
  /** False: no messaging at all, a pure relay with a visible warning (E-06). */
  readonly service: boolean;
  /** Nothing is added to the command (E-05). */
  readonly bare?: boolean;
  /** Profile to use whatever the command is called. */
  readonly profile?: string;
  /** What its terminal shows is recorded (B-15). */
  readonly record?: RecordWish;
  /** Observed and delivered messages are written to a file, for diagnosis (B-15). */
  readonly capture?: boolean;
  readonly registry: Registry;
  /** The package's version. */
  readonly version?: string;
  /** Of the program that this process was before (B-17). */
  readonly before?: Predecessor;
  /** Descriptors of the outer terminal, for tests; standard input and output. */
  readonly terminal?: { readonly stdin: number; readonly stdout: number };
  readonly clock?: Clock;
}

/** What the program that this process was before has left. */
export interface Predecessor {
  readonly worker: KeptWorker;
  /** Text: why there is none, and the worker's terminal alone goes on. */
  readonly state: Handover | string;
}

/** The worker and what its messages need; `reason`: why there will be none. */
type Running =
  & { readonly session: Session; readonly command: readonly string[] }
  & ({ readonly profile: Profile; readonly agent: AgentSide | undefined } | {
    readonly reason: string;
  });

/** How long a worker's last messages may take to reach the service, milliseconds (B-12). */
const FLUSH_MS = 2000;

/**
 * Runs the command on a terminal of its own until it ends, or goes on with one that runs already;
 * returns its exit status (128 + signal when one ended it). Throws `command_not_found`, `command_not_executable`, `directory_missing`,
 * before anything was changed.
 */
export async function runBroker(options: BrokerOptions): Promise<number> {
  const clock = options.clock ?? systemClock;
  const log = createLog({
    clock,
    level: "info",
    json: false,
    fields: { window: options.repo }, // ten windows write one file
    write: appendLines(options.settings.logFile),
  });
  const { before } = options;
  const { stdin, stdout } = options.terminal ?? {};
  const settings = typeof before?.state === "object" ? before.state.termios : null;
  const found = settings === null ? undefined : new Termios(Uint8Array.from(settings));
  const terminal = new OuterTerminal(stdin, stdout, found);
  const stopGuarding = guard(log);
  try {
    // Raw before the worker starts: keys typed early are then mangled by nobody.
    terminal.enterRaw();
    const running = before === undefined
      ? await start(options, terminal, clock, log)
      : await goOn(options, before, terminal, clock, log);
    const { session } = running;
    const stopCollecting = collectOrphans(session.pid);
    const recording = new WindowRecording({
      wish: options.record,
      repo: options.repo,
      settings: options.settings,
      size: terminal.size,
      env: Deno.env.get,
      clock,
    });
    try {
      if ("reason" in running) {
        return await runPlain(options, running, terminal, clock, log, recording);
      }
      try {
        return await runMessaging(options, running, terminal, clock, log, recording);
      } catch (error) {
        if (before === undefined) throw error;
        // A worker depends on it: its terminal goes on whatever this is.
        log.error("broker.degraded", { reason: errorText(error) });
        const reason = `after an upgrade: ${errorText(error)}`;
        return await runPlain(options, { session, reason }, terminal, clock, log, recording);
      }
    } finally {
      stopCollecting();
      await recording.close();
      session.close();
      if (!("reason" in running)) await running.agent?.agent.close();
    }
  } finally {
    terminal.close();
    stopGuarding();
  }
}

async function start(
  options: BrokerOptions,
  terminal: OuterTerminal,
  clock: Clock,
  log: Log,
): Promise<Running> {
  const { profile, launch } = await launchFor(options, options.settings, Deno.env.get);
  const names = knownNames(options.registry, (text) => log.warn("registry", { reason: text }));
  // All that is needed later is loaded before the worker starts.
  const agent = options.service
    ? await agentSide(profile, { clock, size: terminal.size, names })
    : undefined;
  try {
    adoptOrphans();
    const session = Session.start({
      command: launch.argv,
      directory: options.path,
      env: { ...Deno.env.toObject(), ...launch.env },
      size: terminal.size,
      ...(terminal.settings === undefined ? {} : { termios: terminal.settings.withUtf8() }),
    });
    const worker = { session, command: launch.argv };
    if (!options.service) return { ...worker, reason: "--no-service" };
    return { ...worker, profile, agent };
  } catch (error) {
    await agent?.agent.close();
    throw error;
  }
}

/** Never throws for want of anything but the worker: its terminal goes on whatever happens. */
async function goOn(
  options: BrokerOptions,
  { worker, state }: Predecessor,
  terminal: OuterTerminal,
  clock: Clock,
  log: Log,
): Promise<Running> {
  adoptOrphans();
  const session = Session.resume(worker);
  try {
    if (typeof state === "string") throw new Error(state);
    const names = knownNames(options.registry, (text) => log.warn("registry", { reason: text }));
    const { command, repo } = options;
    const wish = { command, repo, profile: state.profile, bare: true };
    const { profile } = await launchFor(wish, options.settings, Deno.env.get);
    const kept = state.window.agent ?? undefined;
    const agent = await agentSide(profile, { clock, size: terminal.size, names }, kept);
    log.info("broker.upgraded", { from: state.version, to: options.version });
    return { session, command: state.command, profile, agent };
  } catch (error) {
    log.error("broker.degraded", { reason: errorText(error) });
    return { session, command: options.command, reason: `after an upgrade: ${errorText(error)}` };
  }
}

/** Loads what an agent needs, the terminal model above all; nothing for any other program. */
async function agentSide(
  profile: Profile,
  options: Omit<AgentOptions, "profile">,
  kept?: KeptAgent,
): Promise<AgentSide | undefined> {
  if (!isAgentProfile(profile)) return undefined;
  const { openAgentSide } = await importLate<typeof import("./agent_side.ts")>("agent_side");
  return await openAgentSide({ ...options, profile }, kept);
}

/** A relay and nothing else. */
async function runPlain(
  options: BrokerOptions,
  { session, reason }: { readonly session: Session; readonly reason: string },
  terminal: OuterTerminal,
  clock: Clock,
  log: Log,
  recording: WindowRecording,
): Promise<number> {
  const hooks: RelayHooks = { output() {}, input: (chunk) => chunk, inputRelayed() {} };
  const tap = recording.tap(session.master);
  const relay = new Relay({ session, terminal, hooks, ...tap, clock, log, onDegraded() {} });
  const warning = `tamq: messaging is off in this window (${reason})`;
  const notices = new Notices({ pane: options.tmux.pane_id, log, repo: options.repo });
  notices.show(`messaging is off (${reason})`);
  recording.attend((trouble) => notices.show(trouble));
  // A program that runs already has painted its screen.
  if (options.before === undefined) {
    void relay.sendTerminal(new TextEncoder().encode(warning + "\r\n"), FLUSH_MS);
  }
  return await relayUntilExit(relay);
}

async function runMessaging(
  options: BrokerOptions,
  { session, command, profile, agent }: Exclude<Running, { reason: string }>,
  terminal: OuterTerminal,
  clock: Clock,
  log: Log,
  recording: WindowRecording,
): Promise<number> {
  const { repo, path, mode, tmux, settings, registry, version = "0" } = options;
  const kept = typeof options.before?.state === "object" ? options.before.state : undefined;
  // One instance, one spool and one row of keys, whichever program: nothing is sent twice.
  const instance = kept?.instance ?? newToken(systemRandom);
  const notices = new Notices({ pane: tmux.pane_id, log, repo });
  const notice = (text: string) => notices.show(text);
  const spool = new Spool({
    dir: settings.spoolDir,
    header: { repo, path, instance, place: placeOf(tmux) },
    send: async (request, signal) => {
      const { held } = await call(findSocket(settings), "send", request, { clock, signal });
      const { sender_repo: sender, target_repo: target } = request;
      if (held) {
        notice(`message to ${target} is held; to let it go: tamq allow ${sender} ${target}`);
      }
    },
    clock,
    log,
    notice,
    ...(kept === undefined ? {} : { kept: kept.spool }),
  });
  const names = knownNames(registry, notice);
  const capture = windowCapture(options.capture === true, settings, repo, clock);
  let link: Link | undefined = undefined;
  const window = new WorkerWindow({
    clock,
    profile,
    ...(agent === undefined ? {} : { agent }),
    observe: !settings.unobserved.includes(repo),
    // Holding back is the service's part: it knows what was released (B-11).
    mode: mode === "hold" ? "trigger" : mode,
    session,
    names,
    onMessage: (target, body, provenance) => {
      const checked = checkBody(body);
      capture.observed(target, body, provenance, checked.ok ? undefined : checked.error.reason);
      if (checked.ok) spool.add(target, body, provenance);
      else notice(`message to ${target} NOT sent: ${checked.error.message}`);
    },
    // The name is what a terminal showed: the log gets the reason alone.
    onRefusal: (target, reason) => {
      capture.observed(target, null, "worker", reason);
      notices.show(refusalText(target, reason, names()), `message not sent: ${reason}`);
    },
    onGate: (state) => link?.gateChanged(state),
    onLongBlock: (target) => notice(`a message to ${target} waits for its empty line`),
    onNotice: (found) => notice(screenNoticeText(found)),
  }, kept?.window);
  const relay = new Relay({
    session,
    terminal,
    hooks: window,
    ...recording.tap(session.master),
    clock,
    log,
    onDegraded: (error) => {
      window.degrade();
      notice(`messaging stopped in this window after an error: ${errorText(error)}`);
    },
  });
  window.bind(relay);
  const upgrades = kept?.upgrades ?? 0;
  const upgrade = new Upgrade({
    clock,
    log,
    profile: profile.name,
    unfinished: () =>
      relay.unfinished ?? (link!.busy ? "delivery_in_progress" : window.unfinished) ??
        (recording.busy ? "recording_not_written" : notices.busy ? "notice_shown" : undefined),
    state: () => ({
      format: HANDOVER_FORMAT,
      version,
      worker: { pid: session.pid, master: session.master, slave: session.slave },
      termios: terminal.settings === undefined ? null : [...terminal.settings.raw],
      upgrades: upgrades + 1,
      command,
      profile: profile.name,
      tmux,
      instance,
      window: window.save(),
      link: link!.save(),
      spool: spool.save(),
    }),
    // A recording goes on in a file of its own, unless it has ended by itself.
    argumentsFor: (handover) => {
      const record = recording.active ? options.record : undefined;
      return brokerArguments({ ...options, record, handover });
    },
    onFailed: (reason) => link!.notUpgraded(reason),
  });
  link = new Link({
    open: (request, signal) => openStream(findSocket(settings), request, { clock, signal }),
    request: {
      capabilities: [...CAPABILITIES],
      repos: [repo],
      path,
      command: [...command],
      mode,
      tmux,
      instance,
      worker_pid: session.pid,
      ...(recording.active ? { recording: true } : {}),
      program: { version, upgrades },
    },
    gate: () => window.gate.state,
    deliver: async (frame) => {
      const outcome = await window.deliver(frame.envelope);
      window.attempted(outcome);
      capture.delivered(frame, outcome);
      return outcome;
    },
    onAttached: () => spool.kick(),
    onSettled: () => upgrade.look(),
    onUpgrade: (program, waitMs) => void upgrade.request(program, waitMs),
    ...(kept === undefined ? {} : { kept: kept.link }),
    onRefused: (error) => notice(`this window gets no messages: ${error.message}`),
    clock,
    log,
  });
  recording.attend((trouble) => {
    notice(trouble);
    link.recordingEnded();
  });
  try {
    return await relayUntilExit(relay);
  } finally {
    upgrade.stop();
    // The terminal is the operator's again while the last messages go out.
    terminal.restore();
    await window.end();
    await spool.flush(FLUSH_MS);
    await link.close();
    await spool.close();
    await window.close();
    await notices.idle();
  }
}
