/**
 * Composition root of one window: the broker of one worker's terminal (B-01 to B-16). Everything it
 * needs is imported before the worker starts: a changed checkout must not break a running broker.
 */
import { type Clock, systemClock } from "./base/clock.ts";
import { errorText } from "./base/errors.ts";
import { newToken } from "./base/ids.ts";
import { createLog, type Log } from "./base/log.ts";
import { identify } from "./base/proc.ts";
import { systemRandom } from "./base/random.ts";
import { importLate } from "./base/late.ts";
import { call, findSocket, openStream } from "./client.ts";
import type { Settings } from "./config.ts";
import { checkBody } from "./model/body.ts";
import { endpointId, type Mode } from "./model/endpoint.ts";
import { nearest } from "./model/nearest.ts";
import type { Place, Registry } from "./model/ports.ts";
import { CAPABILITIES } from "./protocol/handshake.ts";
import type { AgentOptions } from "./pty/agent.ts";
import { Link } from "./pty/link.ts";
import { appendLines } from "./pty/log_file.ts";
import { Notices } from "./pty/notice.ts";
import { launchFor } from "./launch.ts";
import { REFUSAL_TEXTS, screenNoticeText } from "./pty/notice_texts.ts";
import { isAgentProfile } from "./pty/profiles/catalog.ts";
import type { Profile } from "./pty/profiles/plain.ts";
import { adoptOrphans, collectOrphans } from "./pty/orphans.ts";
import { Relay, type RelayHooks } from "./pty/relay.ts";
import { Session } from "./pty/session.ts";
import { Spool } from "./pty/spool.ts";
import { OuterTerminal } from "./pty/terminal.ts";
import { WorkerWindow } from "./pty/window.ts";
import type { AgentSide } from "./pty/window_options.ts";
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
  readonly registry: Registry;
  /** Descriptors of the outer terminal, for tests; standard input and output. */
  readonly terminal?: { readonly stdin: number; readonly stdout: number };
  readonly clock?: Clock;
}

/** How long a worker's last messages may take to reach the service, milliseconds (B-12). */
const FLUSH_MS = 2000;

/**
 * Runs the command on a terminal of its own until it ends; returns its exit status (128 + signal
 * when one ended it). Throws `command_not_found`, `command_not_executable`, `directory_missing`,
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
  const terminal = new OuterTerminal(options.terminal?.stdin, options.terminal?.stdout);
  const stopGuarding = guard(log);
  try {
    // Raw before the worker starts: keys typed early are then mangled by nobody.
    terminal.enterRaw();
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
        const running = { ...options, command: launch.argv };
        return options.service
          ? await runMessaging(running, session, terminal, clock, log, profile, agent, recording)
          : await runPlain(options, session, terminal, clock, log, recording);
      } finally {
        stopCollecting();
        await recording.close();
        session.close();
      }
    } finally {
      await agent?.agent.close();
    }
  } finally {
    terminal.close();
    stopGuarding();
  }
}

/** Loads what an agent needs, the terminal model above all; nothing for any other program. */
async function agentSide(
  profile: Profile,
  options: Omit<AgentOptions, "profile">,
): Promise<AgentSide | undefined> {
  if (!isAgentProfile(profile)) return undefined;
  const { openAgentSide } = await importLate<typeof import("./agent_side.ts")>("agent_side");
  return await openAgentSide({ ...options, profile });
}

/** A relay and nothing else. */
async function runPlain(
  options: BrokerOptions,
  session: Session,
  terminal: OuterTerminal,
  clock: Clock,
  log: Log,
  recording: WindowRecording,
): Promise<number> {
  const hooks: RelayHooks = { output() {}, input: (chunk) => chunk, inputRelayed() {} };
  const tap = recording.tap(session.master);
  const relay = new Relay({ session, terminal, hooks, ...tap, clock, log, onDegraded() {} });
  const warning = "tamq: messaging is off in this window (--no-service)";
  const notices = new Notices({ pane: options.tmux.pane_id, log, repo: options.repo });
  notices.show("messaging is off (--no-service)");
  recording.attend((trouble) => notices.show(trouble));
  void relay.sendTerminal(new TextEncoder().encode(warning + "\r\n"), FLUSH_MS);
  return await relayUntilExit(relay);
}

async function runMessaging(
  options: BrokerOptions,
  session: Session,
  terminal: OuterTerminal,
  clock: Clock,
  log: Log,
  profile: Profile,
  agent: AgentSide | undefined,
  recording: WindowRecording,
): Promise<number> {
  const { repo, path, command, mode, tmux, settings, registry } = options;
  const instance = newToken(systemRandom);
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
  });
  const names = knownNames(registry, notice);
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
      if (checked.ok) spool.add(target, body, provenance);
      else notice(`message to ${target} NOT sent: ${checked.error.message}`);
    },
    // The name is what a terminal showed: the log gets the reason alone.
    onRefusal: (target, reason) =>
      notices.show(refusalText(target, reason, names()), `message not sent: ${reason}`),
    onGate: (state) => link?.gateChanged(state),
    onLongBlock: (target) => notice(`a message to ${target} waits for its empty line`),
    onNotice: (found) => notice(screenNoticeText(found)),
  });
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
    },
    gate: () => window.gate.state,
    deliver: async (frame) => {
      const outcome = await window.deliver(frame.envelope);
      window.attempted(outcome);
      return outcome;
    },
    onAttached: () => spool.kick(),
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

/** Undefined when the tmux server is gone already. */
function placeOf(tmux: BrokerOptions["tmux"]): Place | undefined {
  const server = identify(tmux.server_pid);
  if (server === undefined) return undefined;
  return {
    endpointId: endpointId(server.pid),
    generation: server.start,
    session: tmux.session_id ?? tmux.session,
  };
}

/** Runs the relay with the signals that concern a terminal's owner. */
async function relayUntilExit(relay: Relay): Promise<number> {
  const resize = () => relay.resize();
  const gone = () => relay.hangUp(true);
  const stop = () => relay.hangUp(false);
  const handlers: [Deno.Signal, () => void][] = [
    ["SIGWINCH", resize],
    ["SIGHUP", gone],
    ["SIGTERM", stop],
    ["SIGINT", stop],
  ];
  for (const [signal, handler] of handlers) Deno.addSignalListener(signal, handler);
  try {
    relay.resize(); // it may have changed since the size was read
    return (await relay.run()).code;
  } finally {
    for (const [signal, handler] of handlers) Deno.removeSignalListener(signal, handler);
  }
}

/** An error of ours outside the relay loop is logged; it must not end the terminal. */
function guard(log: Log): () => void {
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    log.error("broker.unexpected", { reason: errorText(event.reason) });
  };
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    log.error("broker.unexpected", { reason: errorText(event.error) });
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  globalThis.addEventListener("error", onError);
  return () => {
    globalThis.removeEventListener("unhandledrejection", onRejection);
    globalThis.removeEventListener("error", onError);
  };
}

/** The registry's names; none, and one notice, while it cannot be read. */
function knownNames(registry: Registry, notice: (text: string) => void): () => readonly string[] {
  let told = false;
  return () => {
    try {
      const names = registry.names();
      told = false;
      return names;
    } catch (error) {
      if (!told) notice(`no message can be addressed: ${errorText(error)}`);
      told = true;
      return [];
    }
  };
}

function refusalText(target: string, reason: string, names: readonly string[]): string {
  if (reason !== "unknown_target") {
    return `message to ${target} NOT sent: ${REFUSAL_TEXTS[reason] ?? reason}`;
  }
  const like = nearest(target, names);
  const hint = like.length > 0 ? `; did you mean ${like.join(", ")}?` : "";
  return `message NOT sent: no repository "${target}" is registered${hint}`;
}
