/**
 * Whether a message may be injected now (B-08). The service takes a delivery lease only while the
 * gate is open, so waiting for a busy operator or a full-screen program consumes no attempt.
 */
import type { Clock } from "../base/clock.ts";
import type { Mode } from "../model/endpoint.ts";
import type { Obstacle, OperatorLine } from "./agent.ts";
import type { Foreground } from "./foreground.ts";
import type { Profile } from "./profiles/plain.ts";

/**
 * `worker_exited`, `hold`, `starting`, `full_screen_program`, `operator_typing`,
 * `foreground_unknown`, `not_reading`, `echo_off`, `raw_reader`, `reader_unseen`; with an agent
 * also `other_program`, `dialog_open`, `agent_busy` and `agent_unrecognised: <what is missing>`.
 */
export type GateReason = string;

export interface GateState {
  readonly open: boolean;
  readonly reason?: GateReason;
}

export interface GateOptions {
  readonly clock: Clock;
  readonly profile: Profile;
  readonly mode: Mode;
  readonly alternateScreen: () => boolean;
  readonly operator: OperatorLine;
  readonly foreground: () => Foreground;
  /** Why nothing may be typed into the program in the foreground now. */
  readonly unready: (front: Foreground) => string | undefined;
  /** Where the window's profile is an agent's: it decides while it is at the terminal (B-08). */
  readonly agent?: AgentView;
  readonly onChange: (state: GateState) => void;
}

/** What the gate needs of an agent. */
export interface AgentView {
  readonly knownAt: number | undefined;
  atTerminal(front: Foreground): boolean;
  obstacle(operator: OperatorLine): Obstacle | undefined;
}

/** Of {@link Obstacle}; not imported: a plain command loads nothing of agents. */
const UNSETTLED = "screen_unsettled";
/** How often a foreground that cannot be seen into is looked at again, milliseconds. */
const FOREGROUND_RECHECK_MS = 1000;
/**
 * Nothing tells that a program reads again: it is looked at after so long, then after twice that,
 * and so on up to the last. Reading takes a program some milliseconds, thinking minutes.
 */
const READER_FIRST_MS = 2, READER_LAST_MS = 1000;
/** After output: a program that waits for input mostly says so just before. */
const OUTPUT_CLOSED_MS = 20;
/** … and one that prints may be busy: found out before the next message is handed over. */
const OUTPUT_OPEN_MS = 250;

export class Gate {
  readonly #o: GateOptions;
  readonly #startedAt: number;
  #lastOutput: number | undefined;
  #started = false;
  #ended = false;
  #state: GateState = { open: false, reason: "starting" };
  #cancel: (() => void) | undefined;
  #dueAt = Infinity;
  #readerPause = READER_FIRST_MS;
  #waiters: (() => void)[] = [];

  constructor(options: GateOptions) {
    this.#o = options;
    this.#startedAt = options.clock.monotonic();
    this.touch();
  }

  get state(): GateState {
    return this.#state;
  }
  /** False once the worker is past its start-up: output need not be reported any more. */
  get starting(): boolean {
    return !this.#started;
  }

  /** The broker before this one saw the worker start (B-17). */
  skipStart(): void {
    this.#started = true;
    this.touch();
  }

  /** The worker printed something: it may have come to its prompt, or got busy. */
  output(): void {
    if (this.#started) return this.soon(this.#state.open ? OUTPUT_OPEN_MS : OUTPUT_CLOSED_MS);
    this.#lastOutput = this.#o.clock.monotonic();
    this.touch();
  }
  /** Looks again within `ms` milliseconds, without further ado where it will anyway. */
  soon(ms: number): void {
    if (!this.#ended) this.#schedule(this.#o.clock.monotonic() + ms);
  }
  /** The worker is gone; nothing opens the gate again. */
  end(): void {
    this.#ended = true;
    this.touch();
  }

  /** Looks again; tells a change, and sets a timer when time alone will bring one. */
  touch(): void {
    const now = this.#o.clock.monotonic();
    const { reason, due, keep } = this.#evaluate(now);
    if (keep) return this.#schedule(due);
    const state: GateState = reason === undefined ? { open: true } : { open: false, reason };
    if (state.open !== this.#state.open || state.reason !== this.#state.reason) {
      this.#state = state;
      this.#o.onChange(state);
      if (state.open || reason === "worker_exited" || reason === "hold") {
        for (const resolve of this.#waiters.splice(0)) resolve();
      }
    }
    this.#schedule(due);
  }

  /** The state once open, or closed for good, or after `ms` milliseconds. */
  async whenOpen(ms: number): Promise<GateState> {
    this.touch();
    if (
      !this.#state.open && this.#state.reason !== "worker_exited" && this.#state.reason !== "hold"
    ) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiters.push(resolve);
      const cancel = this.#o.clock.after(ms, resolve);
      await promise;
      cancel();
      this.#waiters = this.#waiters.filter((waiter) => waiter !== resolve);
    }
    return this.#state;
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** `keep`: nothing can be said right now, what was said stands. */
  #evaluate(now: number): { reason?: GateReason; due?: number; keep?: boolean } {
    const { profile, operator, agent } = this.#o;
    if (this.#ended) return { reason: "worker_exited" };
    if (this.#o.mode === "hold") return { reason: "hold" };
    if (!this.#started) {
      const due = Math.min(
        this.#startedAt + profile.startupMaxMs,
        (this.#lastOutput ?? Infinity) + profile.startupQuietMs,
        // An agent that works from the start on is never quiet.
        (agent?.knownAt ?? Infinity) + profile.startupQuietMs,
      );
      if (now < due) return { reason: "starting", due };
      this.#started = true;
    }
    if (agent !== undefined) {
      const front = this.#o.foreground();
      if (agent.atTerminal(front)) {
        const found = agent.obstacle(operator);
        return found?.reason === UNSETTLED ? { ...found, keep: true } : found ?? {};
      }
      if (front.kind !== "shell" && !front.windowShell) {
        const reason = front.kind === "unknown" ? "foreground_unknown" : "other_program";
        return { reason, due: now + FOREGROUND_RECHECK_MS };
      }
    }
    if (this.#o.alternateScreen()) return { reason: "full_screen_program" };
    if (operator.dirty || operator.cut) return { reason: "operator_typing" };
    const quiet = operator.lastKey + profile.operatorQuietMs;
    if (now < quiet) {
      this.#readerPause = READER_FIRST_MS;
      return { reason: "operator_typing", due: quiet };
    }
    const front = this.#o.foreground();
    if (front.kind === "unknown" && !front.windowShell) {
      return { reason: "foreground_unknown", due: now + FOREGROUND_RECHECK_MS };
    }
    if (front.kind === "shell" || front.windowShell) return {};
    const unready = this.#o.unready(front);
    if (unready === undefined) {
      this.#readerPause = READER_FIRST_MS;
      return {};
    }
    const due = now + this.#readerPause;
    this.#readerPause = Math.min(2 * this.#readerPause, READER_LAST_MS);
    return { reason: unready, due };
  }

  #schedule(due: number | undefined): void {
    // One timer at most: a later deadline is found when the earlier timer fires.
    if (due === undefined || this.#ended) {
      this.close();
      return;
    }
    if (this.#cancel !== undefined && this.#dueAt <= due) return;
    this.#cancel?.();
    this.#dueAt = due;
    this.#cancel = this.#o.clock.after(Math.ceil(due - this.#o.clock.monotonic()), () => {
      this.#cancel = undefined;
      this.touch();
    });
  }
}
