/**
 * Everything between one worker's bytes and its messages: observes output and keys, decides the
 * gate, injects. Knows nothing of the service; its owner takes the blocks and hands in envelopes.
 */
import { type Envelope, parseAddress, unknownAddress } from "../model/envelope.ts";
import {
  flushInput,
  foregroundGroup,
  getTermios,
  type TerminalSize,
  unreadInput,
} from "../pty_ffi.ts";
import type { Agent, OperatorLine } from "./agent.ts";
import type { AgentInjector } from "./agent_injector.ts";
import { BlockWatch } from "./block_watch.ts";
import { ExpectedEchoes } from "./echo.ts";
import { type Foreground, foreground } from "./foreground.ts";
import { Gate } from "./gate.ts";
import { InputHold } from "./hold.ts";
import { type InjectionOutcome, Injector, safeLines } from "./injector.ts";
import { KeyTokens, type Token } from "./keys.ts";
import { LinesObserver } from "./lines.ts";
import { ModeTracker } from "./modes.ts";
import { Operator } from "./operator.ts";
import { PromptRow } from "./prompt_row.ts";
import { Reader } from "./reader.ts";
import { redrawPrompt, repaintScreen } from "./repaint.ts";
import type { Relay, RelayHooks } from "./relay.ts";
import type { ScreenNotice } from "./screen.ts";
import { ShellOutput } from "./shell_output.ts";
import type { WindowOptions } from "./window_options.ts";

/** How long a delivery waits for the gate that closed after the service looked, milliseconds. */
const GATE_WAIT_MS = 10_000;
/** A foreground of the same group is taken for the same programs for so long, milliseconds. */
const FOREGROUND_MS = 500;
/** After lost output an agent is asked to paint anew this often at most: painting may lose more. */
const REPAINT_MS = 10_000;
/** How long after a message the program is looked at, milliseconds; a reader has taken it by then. */
const TAKEN_MS = 20;
/** An ESC with nothing behind it for so long is the key; terminals write a sequence at once. */
const ESCAPE_MS = 100;

/** What another process goes on from; its agent part is restored where the agent is opened. */
export type KeptWindow = ReturnType<WorkerWindow["save"]>;

export class WorkerWindow implements RelayHooks {
  readonly #o: WindowOptions;
  readonly #echoes: ExpectedEchoes;
  readonly #modes = new ModeTracker();
  readonly #keys = new KeyTokens();
  readonly #hold = new InputHold(this.#keys);
  readonly #lines: LinesObserver;
  readonly #operator: Operator;
  readonly #injector: Injector;
  readonly #agent: Agent | undefined;
  readonly #agentInjector: AgentInjector | undefined;
  readonly gate: Gate;
  readonly #row = new PromptRow();
  #tokens: Token[] = [];
  #relay: Relay | undefined;
  #broken = false;
  readonly #shell: ShellOutput;
  readonly #watch: BlockWatch;
  #nextOutput: PromiseWithResolvers<boolean> | undefined;
  #front: { readonly at: number; readonly seen: Foreground } | undefined;
  #repaintedAt = -Infinity;
  #cancelEscape = () => {};
  readonly #reader: Reader;

  /** @param kept what the program before this one observed (B-17). */
  constructor(options: WindowOptions, kept?: KeptWindow) {
    this.#o = options;
    const agent = this.#agent = options.agent?.agent;
    this.#echoes = agent?.echoes ?? new ExpectedEchoes();
    const { clock, session, profile, mode } = options;
    this.#watch = new BlockWatch(clock, (target) => options.onLongBlock(target));
    const now = () => clock.monotonic();
    const front = () => this.#foreground();
    const reader = this.#reader = new Reader({
      now,
      terminal: Deno.readLinkSync(`/proc/self/fd/${session.slave}`),
      termios: () => getTermios(session.master),
      modes: this.#modes,
      unread: () => unreadInput(session.slave),
    });
    this.#shell = new ShellOutput({
      foreground: front,
      recent: (ms) => this.#recentForeground(ms),
      canonical: () => getTermios(session.master)?.canonical ?? true,
    });
    this.#operator = new Operator({
      now,
      hidden: () => this.#modes.alternateScreen && agent?.status.promptEmpty() === undefined,
      secret: () => readsSecret(session.master),
      onLine: (line) => this.#operatorLine(line),
      onUncertainAddress: () => this.#echoes.expectUnknownAddress(now()),
      onEnter: (typed, certain) => {
        if (!certain) this.#lines.operatorEntered();
        if (!this.#shell.atPrompt) return;
        // The next command's output belongs to no block of the one before.
        this.#lines.closeBlock();
        this.#watch.look(undefined);
        this.#shell.entered(typed, certain, () => this.#row.text());
      },
    });
    this.#lines = new LinesObserver({
      modes: this.#modes,
      echoes: this.#echoes,
      names: options.names,
      now,
      promptEndsBlock: () => {
        const { kind, windowShell } = front();
        return windowShell || kind === "shell";
      },
      onBlock: ({ target, body }) => this.#block(target, body),
      onRefusal: ({ target, reason }) => {
        if (options.observe !== false) options.onRefusal(target, reason);
      },
    });
    const operator = this.#operator, keys = this.#keys;
    const line: OperatorLine = {
      get dirty() {
        return operator.dirty;
      },
      get cut() {
        return !keys.boundary;
      },
      get lastKey() {
        return operator.lastKey;
      },
    };
    this.gate = new Gate({
      clock,
      profile,
      mode,
      alternateScreen: () => this.#modes.alternateScreen,
      operator: line,
      foreground: () => this.#recentForeground(),
      unready: (front) => reader.unready(front),
      onChange: options.onGate,
      ...(agent === undefined ? {} : { agent }),
    });
    this.#injector = new Injector({
      clock,
      profile,
      mode,
      modes: this.#modes,
      echoes: this.#echoes,
      hold: this.#hold,
      foreground: front,
      readiness: (front) => reader.readiness(front),
      onTyped: (wait) => reader.typed(wait),
      flush: () => flushInput(session.slave),
      termios: () => getTermios(session.master),
      sendWorker: (bytes, ms, tail) => this.#relay!.sendWorker(bytes, ms, tail),
      pushWorker: (bytes) => this.#relay!.pushWorker(bytes),
      sendTerminal: (bytes, ms) => this.#relay!.sendTerminal(bytes, ms),
      redraw: () => this.#redraw(),
    });
    this.#agentInjector = options.agent?.injector({
      clock,
      mode,
      hold: this.#hold,
      operator: line,
      foreground: front,
      sendWorker: (bytes, ms, tail) => this.#relay!.sendWorker(bytes, ms, tail),
      pushWorker: (bytes) => this.#relay!.pushWorker(bytes),
    });
    agent?.bind({
      onBlock: ({ target, body }) => this.#block(target, body),
      onNotice: (notice) => this.#notice(notice),
      onStatus: () => this.gate.touch(),
      answer: (bytes) => this.#relay?.pushWorker(bytes),
      foreground: front,
    });
    if (kept !== undefined) this.#restore(kept);
  }

  /** Why nobody can take over right now (B-17). */
  get unfinished(): string | undefined {
    if (this.#hold.active) return "delivery_in_progress";
    if (this.#broken || this.#agent === undefined) return undefined;
    return this.#modes.settled ? this.#agent.observer.unfinished : "screen_unsettled";
  }
  /** For who takes over. */
  save() {
    return {
      broken: this.#broken,
      started: !this.gate.starting,
      modes: this.#modes.save(),
      keys: this.#keys.save(),
      operator: this.#operator.save(),
      echoes: this.#echoes.save(this.#o.clock.monotonic()),
      lines: this.#lines.save(),
      row: this.#row.save(),
      shell: this.#shell.save(),
      watch: this.#watch.save(),
      reader: this.#reader.save(),
      agent: this.#broken ? null : this.#agent?.save() ?? null,
    };
  }

  #restore(kept: KeptWindow): void {
    this.#modes.restore(kept.modes);
    this.#keys.restore(kept.keys);
    this.#operator.restore(kept.operator);
    this.#echoes.restore(kept.echoes, this.#o.clock.monotonic());
    this.#lines.restore(kept.lines);
    this.#row.restore(kept.row);
    this.#shell.restore(kept.shell);
    this.#watch.restore(this.#lines.open, kept.watch);
    this.#reader.restore(kept.reader);
    if (kept.started) this.gate.skipStart();
    this.#awaitEscape();
    if (kept.broken) this.degrade();
  }

  /** Call once, before anything is injected. */
  bind(relay: Relay): void {
    this.#relay = relay;
  }
  output(chunk: Uint8Array): void {
    const hidden = this.#modes.alternateScreen;
    this.#nextOutput?.resolve(true);
    this.#row.feed(chunk);
    if (this.#agent === undefined) {
      this.#lines.feed(chunk);
      const { open } = this.#lines;
      this.#watch.look(open);
      if (open !== undefined) this.#shell.printed();
    } else {
      this.#modes.feed(chunk);
      this.#agent.observer.push(chunk);
    }
    if (!this.gate.starting && hidden !== this.#modes.alternateScreen) this.gate.touch();
    else if (this.gate.starting || this.#agent === undefined) this.gate.output();
  }

  input(chunk: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.#tokens = this.#keys.feed(chunk);
    if (this.#agent === undefined) this.#shell.beforeKeys(this.#tokens);
    return this.#hold.filter(chunk, this.#tokens);
  }

  inputRelayed(): void {
    this.#operator.feed(this.#tokens);
    this.#tokens = [];
    this.gate.touch();
    this.#awaitEscape();
  }

  #awaitEscape(): void {
    this.#cancelEscape();
    if (!this.#keys.pendingEscape) return;
    // Held keys keep it as it is: what follows it then tells.
    this.#cancelEscape = this.#o.clock.after(ESCAPE_MS, () => {
      if (this.#hold.active) return;
      this.#operator.feed(this.#keys.settleEscape());
      this.gate.touch();
    });
  }

  resized(size: TerminalSize): void {
    this.#agent?.observer.resize(size);
  }

  /**
   * After an attempt: a draft stands in the line until the operator submits or clears it; a second
   * one would run into it (B-11).
   */
  attempted({ outcome }: InjectionOutcome): void {
    if (this.#o.mode !== "draft" || outcome !== "written" || this.#agent !== undefined) return;
    this.#operator.drafted();
    this.gate.touch();
  }

  /** One attempt to put a message into the terminal; waits, bounded, for the gate. */
  async deliver(envelope: Envelope): Promise<InjectionOutcome> {
    if (this.#broken || this.#relay === undefined) {
      return { outcome: "failed", reason: "broker_degraded", scope: "target" };
    }
    const open = this.#agent !== undefined && this.gate.state.open;
    const gate = open ? this.gate.state : await this.gate.whenOpen(GATE_WAIT_MS);
    if (!gate.open) return { outcome: "failed", reason: gate.reason!, scope: "target" };
    if (this.#agent === undefined) return await this.#injectPlain(envelope);
    const front = this.#foreground();
    if (this.#agent.atTerminal(front)) {
      const lines = safeLines(envelope);
      if (lines === undefined) {
        return { outcome: "failed", reason: "body_binary", scope: "message" };
      }
      try {
        return await this.#agentInjector!.inject(envelope.message_id, lines);
      } finally {
        this.gate.touch(); // whose the text in the line is, if any, may have changed
      }
    }
    // A shell, that the agent was started from or ended to, is shown the message (B-16).
    if (front.kind === "shell" || front.windowShell) return await this.#injector.inject(envelope);
    return { outcome: "failed", reason: "other_program", scope: "target" };
  }

  async #injectPlain(envelope: Envelope): Promise<InjectionOutcome> {
    try {
      return await this.#injector.inject(envelope);
    } finally {
      // It reads again soon, or thinks now: the service is to know before the next message.
      this.gate.soon(TAKEN_MS);
    }
  }

  /** The worker ended: its block is complete, and nothing is injected any more (B-12). */
  async end(): Promise<void> {
    this.gate.end();
    if (this.#broken) return;
    if (this.#agent === undefined) this.#lines.end(!this.#operator.dirty);
    else await this.#agent.end();
    this.#watch.look(undefined);
  }

  /** After an error of our own: no observation, no injection; held keys are let go. */
  degrade(): void {
    this.#broken = true;
    this.gate.end();
    void this.#agent?.close();
    if (this.#hold.active) this.#relay?.pushWorker(this.#hold.end());
  }

  async close(): Promise<void> {
    this.#watch.look(undefined);
    this.#cancelEscape();
    this.gate.close();
    await this.#agent?.close();
  }

  #block(target: string, body: string): void {
    if (this.#o.observe === false) return;
    const refusal = this.#agent === undefined ? this.#shell.refusal() : undefined;
    if (refusal !== undefined) this.#o.onRefusal(target, refusal);
    else this.#o.onMessage(target, body, "worker");
  }

  #notice(notice: ScreenNotice): void {
    if ("target" in notice) {
      if (this.#o.observe !== false) this.#o.onRefusal(notice.target, notice.reason);
      return;
    }
    this.#o.onNotice(notice);
    if (notice.kind === "gap") void this.#repaint();
  }

  /** For the gate, which looks often: the walk over the processes is remembered for a moment. */
  #recentForeground(ms = FOREGROUND_MS): Foreground {
    const now = this.#o.clock.monotonic();
    const group = foregroundGroup(this.#o.session.master);
    const front = this.#front;
    if (front !== undefined && front.seen.group === group && now - front.at < ms) return front.seen;
    this.#front = { at: now, seen: this.#foreground() };
    return this.#front.seen;
  }

  /** Output was lost: an agent is asked to paint its screen whole. */
  async #repaint(): Promise<void> {
    const { session, clock } = this.#o;
    const now = clock.monotonic();
    if (this.#relay === undefined || now - this.#repaintedAt < REPAINT_MS) return;
    if (!this.#agent!.atTerminal(this.#foreground())) return;
    this.#repaintedAt = now;
    await repaintScreen(session, clock, this.#relay, (size) => this.resized(size));
  }

  #foreground(): Foreground {
    return foreground(this.#o.session.master, this.#o.session.pid);
  }

  async #redraw(): Promise<void> {
    const { session, clock } = this.#o;
    this.#nextOutput = Promise.withResolvers<boolean>();
    const [relay, row, modes] = [this.#relay!, this.#row, this.#modes];
    const output = this.#nextOutput.promise;
    await redrawPrompt({ session, clock, relay, row, modes, output });
    this.#nextOutput = undefined;
  }

  #operatorLine(line: string): void {
    // Whatever becomes of it, the line comes back as an echo and is not the worker's.
    this.#echoes.expect([line], this.#o.clock.monotonic());
    const found = parseAddress(line, this.#o.names());
    if (found !== undefined) return this.#o.onMessage(found.target, found.text, "operator");
    const unknown = unknownAddress(line);
    if (unknown !== undefined) this.#o.onRefusal(unknown, "unknown_target");
  }
}

function readsSecret(master: number): boolean {
  return getTermios(master)?.hidden === true;
}
