/**
 * Tries a profile (`tamq profile test`): runs a command in the terminal at hand, writes nothing to
 * it, and reports what its profile recognised. Not a broker: no service, no messages.
 */
import { type Clock, pause, systemClock } from "./base/clock.ts";
import { importLate } from "./base/late.ts";
import { createLog } from "./base/log.ts";
import type { Settings } from "./config.ts";
import { launchFor, type LaunchWish } from "./launch.ts";
import type { Agent } from "./pty/agent.ts";
import { type Foreground, foreground } from "./pty/foreground.ts";
import { ModeTracker } from "./pty/modes.ts";
import { isAgentProfile } from "./pty/profiles/catalog.ts";
import { Relay, type RelayHooks } from "./pty/relay.ts";
import { Session } from "./pty/session.ts";
import { OuterTerminal } from "./pty/terminal.ts";

export interface ProbeReport {
  readonly profile: string;
  readonly added: readonly string[];
  /** What a program without a profile gets: see `tamq profile test`. Null: it has a profile. */
  readonly plain: "shell" | "full_screen" | "lines" | "unknown" | null;
  /** Null where the profile is no agent's: there is nothing to recognise. */
  readonly seen: {
    /** `ready`, `busy`, `blocked` or `unknown`, and why. */
    readonly state: string;
    readonly reason: string;
    /** Whether the profile's program reads the terminal. */
    readonly at_terminal: boolean;
    readonly bracketed_paste: boolean;
    readonly alternate_screen: boolean;
    /** Last report by OSC 7501. */
    readonly reported: string | null;
    readonly title: string;
    /** Whether the line for typing is empty; null: it was not found. */
    readonly line_empty: boolean | null;
    /** Rows of the screen that are not empty. */
    readonly screen: readonly string[];
  } | null;
  /** Until then, milliseconds. */
  readonly took_ms: number;
  /** Exit status of a command that ended by itself. */
  readonly exit: number | null;
}

export interface ProbeOptions extends LaunchWish {
  readonly directory: string;
  readonly settings: Settings;
  readonly clock?: Clock;
}

/** An agent counts as ready once it has been so for this long, milliseconds. */
const STEADY_MS = 1000;
/** Agents take some seconds to start; one that is not ready by then will not be. */
const STUCK_MS = 6000;
const PATIENCE_MS = 20_000;
/** A program without a profile shows what it is within so long, milliseconds. */
const PLAIN_MS = 1500;

/** Throws as starting a window does: `command_not_found`, `profile_invalid`, … */
export async function probeProfile(options: ProbeOptions): Promise<ProbeReport> {
  const clock = options.clock ?? systemClock;
  const log = createLog({ clock, level: "error", json: false, write() {} });
  const terminal = new OuterTerminal();
  const startedAt = clock.monotonic();
  let agent: Agent | undefined;
  try {
    const { profile, launch } = await launchFor(options, options.settings, Deno.env.get);
    if (isAgentProfile(profile)) {
      const side = await importLate<typeof import("./agent_side.ts")>("agent_side");
      const options = { profile, clock, size: terminal.size, names: () => [] };
      agent = (await side.openAgentSide(options)).agent;
    }
    terminal.enterRaw();
    const session = Session.start({
      command: launch.argv,
      directory: options.directory,
      env: { ...Deno.env.toObject(), ...launch.env },
      size: terminal.size,
    });
    try {
      const modes = new ModeTracker();
      const hooks: RelayHooks = {
        output(chunk) {
          if (agent === undefined) modes.feed(chunk);
          else agent.observer.push(chunk);
        },
        input: (chunk) => chunk,
        inputRelayed() {},
      };
      const relay = new Relay({ session, terminal, hooks, clock, log, onDegraded() {} });
      agent?.bind({
        onBlock() {},
        onNotice() {},
        onStatus() {},
        answer: (bytes) => relay.pushWorker(bytes),
        foreground: () => foreground(session.master, session.pid),
      });
      let exit: number | null = null;
      const running = relay.run().then(({ code }) => void (exit = code));
      const settled = agent === undefined ? pause(clock, PLAIN_MS) : steady(agent, clock);
      await Promise.race([running, settled]);
      const report: ProbeReport = {
        profile: profile.name,
        added: launch.added,
        plain: agent === undefined && exit === null
          ? plain(modes, foreground(session.master, session.pid))
          : null,
        seen: agent === undefined ? null : look(agent, session),
        took_ms: Math.round(clock.monotonic() - startedAt),
        exit,
      };
      if (exit === null) relay.hangUp(false);
      await running;
      return report;
    } finally {
      session.close();
    }
  } finally {
    await agent?.close();
    terminal.close();
  }
}

/** How a message would reach a program that no profile is for (B-16). */
function plain(modes: ModeTracker, front: Foreground): ProbeReport["plain"] {
  if (front.kind === "shell" || front.windowShell) return "shell";
  if (front.kind === "unknown") return "unknown";
  return modes.alternateScreen ? "full_screen" : "lines";
}

/** Until the agent has been ready for a while, or nothing changes any more, or patience ends. */
async function steady(agent: Agent, clock: Clock): Promise<void> {
  let said = "";
  let since = clock.monotonic();
  await agent.until(() => {
    const now = clock.monotonic();
    const { state, reason } = agent.status.reading();
    if (reason !== said) since = now;
    said = reason;
    return now - since >= (state === "ready" ? STEADY_MS : STUCK_MS);
  }, PATIENCE_MS);
}

function look(agent: Agent, session: Session): NonNullable<ProbeReport["seen"]> {
  const { status, observer } = agent;
  const { state, reason } = status.reading();
  return {
    state,
    reason,
    at_terminal: agent.atTerminal(foreground(session.master, session.pid)),
    bracketed_paste: observer.bracketedPaste,
    alternate_screen: observer.alternate,
    reported: status.reported ?? null,
    title: status.title,
    line_empty: status.promptEmpty() ?? null,
    screen: observer.screenRows().map(({ text }) => text).filter((text) => text.trim() !== ""),
  };
}
