/**
 * An agent as its window sees it: the observer of its screen, whether it is the program at the
 * terminal, and whether it can take a message now (B-06, B-08). Loaded only where a profile asks
 * for it: the terminal model comes with it.
 */
import type { Clock } from "../base/clock.ts";
import { ExpectedEchoes } from "./echo.ts";
import type { Foreground } from "./foreground.ts";
import type { Block } from "./lines.ts";
import { commandName } from "../model/command_name.ts";
import type { AgentProfile } from "./profiles/schema.ts";
import { type ScreenNotice, ScreenObserver, type ScreenSize } from "./screen.ts";
import type { AgentStatus } from "./status.ts";

export interface AgentHooks {
  readonly onBlock: (block: Block) => void;
  readonly onNotice: (notice: ScreenNotice) => void;
  /** What the agent does, or whether that is known, may have changed. */
  readonly onStatus: () => void;
  /** Writes into the agent's input, at once. */
  readonly answer: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** What reads the terminal, looked at anew. */
  readonly foreground: () => Foreground;
}

export interface AgentOptions {
  readonly profile: AgentProfile;
  readonly clock: Clock;
  readonly size: ScreenSize;
  readonly names: () => readonly string[];
}

/** Why nothing may be written to the agent now. */
export interface Obstacle {
  readonly reason: string;
  /** Look again by then, monotonic milliseconds: nothing may announce the change. */
  readonly due?: number;
}

/** What is known of the operator's own line from their keys alone. */
export interface OperatorLine {
  readonly dirty: boolean;
  /** In the middle of a sequence, a character or a paste. */
  readonly cut: boolean;
  readonly lastKey: number;
}

/** The screen is being painted: ask again so soon. */
const UNSETTLED_MS = 40;
const RECHECK_MS = 1000;
/** State is told to the gate this often at most: a spinner must not keep a core busy. */
const TELL_MS = 25;

/** An agent says only some time after a submission that it works; until then it looks ready. */
const BEGIN_MS = 2000;

/** The screen is between two states: neither open nor closed. */
export const UNSETTLED = "screen_unsettled";

/** What another process goes on from. */
export type KeptAgent = ReturnType<Agent["save"]>;

export class Agent {
  readonly profile: AgentProfile;
  readonly observer: ScreenObserver;
  /** What comes back because it was typed; asked only where the profile has no echo mark. */
  readonly echoes: ExpectedEchoes;
  readonly #clock: Clock;
  #hooks: AgentHooks | undefined;
  #knownAt: number | undefined;
  #waiters: (() => void)[] = [];
  #cancelTell: (() => void) | undefined;
  #closed = false;
  #submitted = { turns: -1, until: -Infinity };
  /** A message that stands in the operator's line because it was not submitted. */
  left: { readonly messageId: string; readonly text: string } | undefined;

  /** Loads the terminal model: await it before the worker is spawned. */
  static async open(options: AgentOptions, kept?: KeptAgent): Promise<Agent> {
    const made: { agent?: Agent } = {};
    const hooks = () => made.agent === undefined ? undefined : made.agent.#hooks;
    const echoes = new ExpectedEchoes();
    const observer = await ScreenObserver.open({
      ...options,
      echoes,
      onBlock: (block) => hooks()?.onBlock(block),
      onNotice: (notice) => hooks()?.onNotice(notice),
      onStatus: () => {
        if (made.agent !== undefined) made.agent.#statusChanged();
      },
      onStatusQuery: (answer) => {
        const found = hooks();
        // Any other program would read the answer as keys.
        if (found !== undefined && made.agent!.atTerminal(found.foreground())) {
          found.answer(answer);
        }
      },
    }, kept?.screen);
    made.agent = new Agent(options, observer, echoes);
    if (kept !== undefined) made.agent.#restore(kept);
    return made.agent;
  }

  /** For who takes over (B-17); clocks differ, so that times are told as what is left of them. */
  save() {
    const now = this.#clock.monotonic();
    const { turns, until } = this.#submitted;
    return {
      screen: this.observer.save(),
      knownMs: this.#knownAt === undefined ? null : now - this.#knownAt,
      submitted: { turns, ms: Math.max(0, until - now) },
      left: this.left ?? null,
    };
  }

  #restore(kept: KeptAgent): void {
    const now = this.#clock.monotonic();
    if (kept.knownMs !== null) this.#knownAt = now - kept.knownMs;
    this.#submitted = { turns: kept.submitted.turns, until: now + kept.submitted.ms };
    this.left = kept.left ?? undefined;
  }

  private constructor(options: AgentOptions, observer: ScreenObserver, echoes: ExpectedEchoes) {
    this.echoes = echoes;
    this.profile = options.profile;
    this.observer = observer;
    this.#clock = options.clock;
  }

  bind(hooks: AgentHooks): void {
    this.#hooks = hooks;
  }

  get status(): AgentStatus {
    return this.observer.status;
  }
  /** Since when the profile recognises what it sees, monotonic milliseconds. */
  get knownAt(): number | undefined {
    return this.#knownAt;
  }

  /** Whether the profile's program is what reads the terminal. */
  atTerminal(front: Foreground): boolean {
    if (front.kind === "shell") return false;
    const { match } = this.profile;
    return front.members.some(({ argv, command }) =>
      match.includes(command) || match.includes(commandName(argv))
    );
  }

  /** Call right before a text is submitted: work is expected to begin. */
  submitting(): void {
    this.#submitted = { turns: this.status.turns, until: this.#clock.monotonic() + BEGIN_MS };
  }

  /** Whether it takes a message while it works. */
  get takesWhileBusy(): boolean {
    return this.profile.input.queues || this.profile.input.busySubmit !== undefined;
  }

  /**
   * What stands in the way of a message, in the order in which it matters; undefined when nothing
   * does. {@link UNSETTLED} says that the screen is being painted.
   */
  obstacle(operator: OperatorLine): Obstacle | undefined {
    const now = this.#clock.monotonic();
    const { status } = this;
    const { state, reason } = status.reading();
    if (state === "blocked") return { reason: "dialog_open", due: now + RECHECK_MS };
    const quiet = operator.lastKey + this.profile.operatorQuietMs;
    if (operator.cut) return { reason: "operator_typing" };
    if (now < quiet) return { reason: "operator_typing", due: quiet };
    if (reason === UNSETTLED) return { reason, due: now + UNSETTLED_MS };
    if (state === "unknown") return unrecognised(reason, now);
    if (state === "busy" && (!this.takesWhileBusy || reason === "flood")) {
      return { reason: "agent_busy", due: now + RECHECK_MS };
    }
    const { turns, until } = this.#submitted;
    if (!this.takesWhileBusy && status.turns === turns && now < until) {
      return { reason: "agent_busy", due: until };
    }
    return this.#line(operator, now);
  }

  #line(operator: OperatorLine, now: number): Obstacle | undefined {
    const { status } = this;
    const reason = operator.dirty ? "operator_typing" : "line_not_empty";
    const typing = { reason, due: now + RECHECK_MS };
    if (this.profile.screen.prompt === undefined) return operator.dirty ? typing : undefined;
    if (!this.observer.settled) return { reason: UNSETTLED, due: now + UNSETTLED_MS };
    const empty = status.promptEmpty();
    if (empty === undefined) return unrecognised("no_prompt_row", now);
    if (empty || (this.left !== undefined && status.composerIs(this.left.text))) return undefined;
    return typing;
  }

  /**
   * True once `condition` holds, looked at whenever all output so far is read; false after `ms`
   * milliseconds.
   */
  async until(condition: () => boolean, ms: number): Promise<boolean> {
    const end = this.#clock.monotonic() + ms;
    for (;;) {
      await this.observer.drained();
      if (condition()) return true;
      const left = end - this.#clock.monotonic();
      if (left <= 0 || this.#closed) return false;
      await this.#change(Math.min(left, UNSETTLED_MS));
    }
  }

  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#waiters.push(() => {
        cancel();
        resolve();
      });
    });
  }

  #statusChanged(): void {
    for (const wake of this.#waiters.splice(0)) wake();
    if (this.#closed) return;
    this.#cancelTell ??= this.#clock.after(TELL_MS, () => {
      this.#cancelTell = undefined;
      if (this.#knownAt === undefined && this.status.reading().state !== "unknown") {
        this.#knownAt = this.#clock.monotonic();
      }
      this.#hooks?.onStatus();
    });
  }

  /** The worker ended: its last words are complete. */
  async end(): Promise<void> {
    this.#stop();
    await this.observer.end();
  }
  async close(): Promise<void> {
    this.#stop();
    await this.observer.close();
  }
  #stop(): void {
    this.#closed = true;
    this.#cancelTell?.();
    this.#cancelTell = undefined;
    for (const wake of this.#waiters.splice(0)) wake();
  }
}

/** A version whose signs the profile does not know is never written to; the reason is shown. */
function unrecognised(reason: string, now: number): Obstacle {
  return { reason: `agent_unrecognised: ${reason}`, due: now + RECHECK_MS };
}
