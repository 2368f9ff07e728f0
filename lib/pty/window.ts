/**
 * Everything between one worker's bytes and its messages: observes output and keys, decides the
 * gate, injects. Knows nothing of the service; its owner takes the blocks and hands in envelopes.
 */
import { type Clock, within } from "../base/clock.ts";
import type { Mode } from "../model/endpoint.ts";
import { type Envelope, parseAddress, unknownAddress } from "../model/envelope.ts";
import type { Provenance } from "../model/message.ts";
import { getSize, getTermios } from "../pty_ffi.ts";
import { ExpectedEchoes } from "./echo.ts";
import { type Foreground, foreground } from "./foreground.ts";
import { Gate, type GateState } from "./gate.ts";
import { InputHold } from "./hold.ts";
import { type InjectionOutcome, Injector } from "./injector.ts";
import { KeyTokens, type Token } from "./keys.ts";
import { LinesObserver } from "./lines.ts";
import { ModeTracker } from "./modes.ts";
import { Operator } from "./operator.ts";
import { PromptRow } from "./prompt_row.ts";
import type { Profile } from "./profiles/plain.ts";
import type { Relay, RelayHooks } from "./relay.ts";
import type { Session } from "./session.ts";

export interface WindowOptions {
  readonly clock: Clock;
  readonly profile: Profile;
  readonly mode: Mode;
  readonly session: Session;
  /** Registered names as they are now; empty when the registry cannot be read. */
  readonly names: () => readonly string[];
  /** A complete message that the worker or the operator addressed. */
  readonly onMessage: (target: string, body: string, provenance: Provenance) => void;
  /** An addressed text that is not sent, and why. */
  readonly onRefusal: (target: string, reason: string) => void;
  readonly onGate: (state: GateState) => void;
}

/** How long a delivery waits for the gate that closed after the service looked, milliseconds. */
const GATE_WAIT_MS = 10_000;
/** How long a shell may take to notice a window change, milliseconds; usually it takes one. */
const REDRAW_MS = 50;

export class WorkerWindow implements RelayHooks {
  readonly #o: WindowOptions;
  readonly #echoes = new ExpectedEchoes();
  readonly #modes = new ModeTracker();
  readonly #keys = new KeyTokens();
  readonly #hold = new InputHold(this.#keys);
  readonly #lines: LinesObserver;
  readonly #operator: Operator;
  readonly #injector: Injector;
  readonly gate: Gate;
  readonly #row = new PromptRow();
  #tokens: Token[] = [];
  #relay: Relay | undefined;
  #broken = false;
  #nextOutput: PromiseWithResolvers<boolean> | undefined;

  constructor(options: WindowOptions) {
    this.#o = options;
    const { clock, session, profile, mode } = options;
    const now = () => clock.monotonic();
    const front = () => this.#foreground();
    this.#operator = new Operator({
      now,
      hidden: () => this.#modes.alternateScreen,
      secret: () => readsSecret(session.master),
      onLine: (line) => this.#operatorLine(line),
      onUncertainAddress: () => this.#echoes.expectUnknownAddress(now()),
      onEnter: () => {
        // At a shell, the next command's output belongs to no block of the one before.
        if (this.#lines.open && front().kind === "shell") this.#lines.closeBlock();
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
      onBlock: ({ target, body }) => options.onMessage(target, body, "worker"),
      onRefusal: ({ target, reason }) => options.onRefusal(target, reason),
    });
    const operator = this.#operator, keys = this.#keys;
    this.gate = new Gate({
      clock,
      profile,
      mode,
      alternateScreen: () => this.#modes.alternateScreen,
      operator: {
        get dirty() {
          return operator.dirty || !keys.boundary;
        },
        get lastKey() {
          return operator.lastKey;
        },
      },
      foreground: front,
      onChange: options.onGate,
    });
    this.#injector = new Injector({
      clock,
      profile,
      mode,
      modes: this.#modes,
      echoes: this.#echoes,
      hold: this.#hold,
      foreground: front,
      termios: () => getTermios(session.master),
      sendWorker: (bytes, ms, tail) => this.#relay!.sendWorker(bytes, ms, tail),
      pushWorker: (bytes) => this.#relay!.pushWorker(bytes),
      sendTerminal: (bytes, ms) => this.#relay!.sendTerminal(bytes, ms),
      redraw: () => this.#redraw(),
    });
  }

  /** Call once, before anything is injected. */
  bind(relay: Relay): void {
    this.#relay = relay;
  }

  output(chunk: Uint8Array): void {
    const hidden = this.#modes.alternateScreen;
    this.#nextOutput?.resolve(true);
    this.#row.feed(chunk);
    this.#lines.feed(chunk);
    if (this.gate.starting) this.gate.output();
    else if (hidden !== this.#modes.alternateScreen) this.gate.touch();
  }

  input(chunk: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.#tokens = this.#keys.feed(chunk);
    return this.#hold.filter(chunk, this.#tokens);
  }

  inputRelayed(): void {
    this.#operator.feed(this.#tokens);
    this.#tokens = [];
    this.gate.touch();
  }

  /** One attempt to put a message into the terminal; waits, bounded, for the gate. */
  async deliver(envelope: Envelope): Promise<InjectionOutcome> {
    if (this.#broken || this.#relay === undefined) {
      return { outcome: "failed", reason: "broker_degraded", scope: "target" };
    }
    const gate = this.gate.state.open ? this.gate.state : await this.gate.whenOpen(GATE_WAIT_MS);
    if (!gate.open) return { outcome: "failed", reason: gate.reason!, scope: "target" };
    return await this.#injector.inject(envelope);
  }

  /** The worker ended: its block is complete, and nothing is injected any more (B-12). */
  end(): void {
    if (!this.#broken) this.#lines.end();
    this.gate.end();
  }

  /** After an error of our own: no observation, no injection; held keys are let go. */
  degrade(): void {
    this.#broken = true;
    this.gate.end();
    if (this.#hold.active) this.#relay?.pushWorker(this.#hold.end());
  }

  close(): void {
    this.gate.close();
  }

  #foreground(): Foreground {
    return foreground(this.#o.session.master, this.#o.session.pid);
  }

  /**
   * Most shells paint their prompt again when their window changed – readline only when the size
   * really did, so a signal alone is not enough: one row less, then the true size. For a shell that
   * does not, its row is painted again as it was.
   */
  async #redraw(): Promise<void> {
    const { session, clock } = this.#o;
    const size = getSize(session.master);
    if (size === undefined) return;
    const row = this.#row.bytes();
    const output = this.#nextOutput = Promise.withResolvers<boolean>();
    session.resize({ ...size, rows: size.rows > 1 ? size.rows - 1 : 2 });
    const painted = await within(clock, REDRAW_MS, output.promise, () => false);
    this.#nextOutput = undefined;
    this.#relay!.resize();
    if (painted || row === undefined || !this.#modes.settled) return;
    this.#modes.lineStart = false;
    await this.#relay!.sendTerminal(row, REDRAW_MS);
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

/** A gathered line without echo: a password prompt. */
function readsSecret(master: number): boolean {
  const termios = getTermios(master);
  return termios !== undefined && termios.canonical && !termios.echo;
}
