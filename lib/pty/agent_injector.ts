/**
 * Puts one message into an agent's line and submits it: an ordered gate that fails closed (B-08,
 * B-09, B-11). Every step has a bound and a reason; what was seen is what is reported. The body is
 * written once an attempt, whatever happens.
 */
import { type Clock, pause } from "../base/clock.ts";
import type { Mode } from "../model/endpoint.ts";
import type { Agent, OperatorLine } from "./agent.ts";
import type { Foreground } from "./foreground.ts";
import type { InputHold } from "./hold.ts";
import type { InjectionOutcome } from "./injector.ts";
import { pastePieces } from "./paste.ts";
import type { AgentProfile } from "./profiles/schema.ts";
import type { Submission } from "./status.ts";
import type { WriteResult } from "./write_queue.ts";

export interface AgentInjectorOptions {
  readonly agent: Agent;
  readonly clock: Clock;
  readonly mode: Mode;
  readonly hold: InputHold;
  readonly operator: OperatorLine;
  readonly foreground: () => Foreground;
  readonly sendWorker: (
    bytes: Uint8Array<ArrayBuffer>,
    ms: number,
    tail?: Uint8Array<ArrayBuffer>,
  ) => Promise<WriteResult>;
  /** Without waiting: the operator's held keys. */
  readonly pushWorker: (bytes: Uint8Array<ArrayBuffer>) => void;
}

/** The gate was open a moment ago; a screen that is just being painted is waited for. */
const GATE_MS = 2000;
const WRITE_MS = 2000;
/** The operator's keys are held no longer than this. */
const HOLD_MS = 500;
/** For the text to appear in the agent's line, beyond the profile's own pause. */
const SHOWN_MS = 2000;
/** For the screen to stand still before the submit key. */
const STILL_MS = 500;
/** For a sign of the submission; then, if the text still stands there, one more key. */
const SEEN_MS = 1500;
/** Between two pastes of one message (measured: agents take them apart). */
const PIECE_MS = 10;

const PASTE_END = "\x1b[201~";
const encoder = new TextEncoder();

function failed(reason: string): InjectionOutcome {
  return { outcome: "failed", reason, scope: "target" };
}

function lost(result: WriteResult): InjectionOutcome {
  if (result === "stalled") return { outcome: "stalled", reason: "terminal_not_read" };
  return failed(result === "gone" ? "terminal_gone" : "terminal_not_read");
}

export class AgentInjector {
  readonly #o: AgentInjectorOptions;
  readonly #profile: AgentProfile;

  constructor(options: AgentInjectorOptions) {
    this.#o = options;
    this.#profile = options.agent.profile;
  }

  /** One attempt. `lines` hold no control characters; the agent was at the terminal just now. */
  async inject(messageId: string, lines: readonly string[]): Promise<InjectionOutcome> {
    const { agent } = this.#o;
    const { status } = agent;
    const bracketed = this.#profile.input.paste === "bracketed";
    const text = lines.join(bracketed ? "\n" : " ⏎ ");
    if (agent.left?.messageId === messageId && status.submissionSeen(text) === "echo") {
      // The operator submitted what an earlier attempt had left in the line.
      agent.left = undefined;
      return { outcome: "written", reason: "confirmed: echo, submitted by the operator" };
    }
    const closed = await this.#gate();
    if (closed !== undefined) return failed(closed);
    const standing = agent.left?.messageId === messageId && status.composerIs(text);
    // Plain typing is read key by key: `!` may open a shell, Enter may come with any line.
    if (bracketed && !agent.observer.bracketedPaste) return failed("paste_mode_off");
    return await new Attempt(this.#o, messageId, text, standing).run();
  }

  /** Waits, briefly, until nothing stands in the way; else what does. */
  async #gate(): Promise<string | undefined> {
    const { agent, operator } = this.#o;
    const look = () => agent.obstacle(operator)?.reason;
    let reason = look();
    await agent.until(() => (reason = look()) === undefined, GATE_MS);
    return reason;
  }
}

/** An emptied line alone is none: an agent was seen to put the text back. */
function strong(seen: Submission): boolean {
  return seen === "echo" || seen === "working" || seen === "queued";
}

class Attempt {
  readonly #o: AgentInjectorOptions;
  readonly #input: AgentProfile["input"];
  #interrupted = false;
  #begunAt = 0;
  #group: number | undefined;

  constructor(
    options: AgentInjectorOptions,
    readonly messageId: string,
    readonly text: string,
    /** The text of an earlier attempt stands in the line already. */
    readonly standing: boolean,
  ) {
    this.#o = options;
    this.#input = options.agent.profile.input;
  }

  async run(): Promise<InjectionOutcome> {
    const { hold, clock, agent, operator } = this.#o;
    hold.onBroken = (why) => this.#interrupted ||= why === "interrupt";
    if (!hold.begin()) return failed("operator_typing");
    this.#begunAt = operator.lastKey;
    const release = () => this.#o.pushWorker(hold.end());
    const cancelHold = clock.after(HOLD_MS, release);
    try {
      const front = this.#o.foreground();
      if (!agent.atTerminal(front)) return failed("other_program");
      this.#group = front.group;
      if (!this.standing) {
        const refusal = await this.#write();
        if (refusal !== undefined) return refusal;
      }
      if (this.#o.mode === "draft") {
        agent.left = undefined; // the operator's from here on
        return { outcome: "written", reason: "draft" };
      }
      const refusal = await this.#submit();
      if (refusal !== undefined) return refusal;
    } finally {
      cancelHold();
      release();
    }
    return await this.#confirm();
  }

  /** Text into the line; seen there, or not submitted. */
  async #write(): Promise<InjectionOutcome | undefined> {
    const { agent, clock } = this.#o;
    agent.left = undefined;
    agent.status.expectSubmission(this.text);
    if (agent.profile.screen.echo === undefined) {
      agent.echoes.expect(this.text.split("\n"), clock.monotonic());
    }
    const text = this.#input.trailingSpace ? `${this.text} ` : this.text;
    const bracketed = this.#input.paste === "bracketed";
    const pieces = bracketed ? pastePieces(text, this.#input.chunk) : [text];
    for (const [i, piece] of pieces.entries()) {
      if (i > 0) {
        await pause(clock, PIECE_MS);
        // A key that came in between would stand in the middle of the message.
        const spoilt = this.#spoilt();
        if (spoilt !== undefined) return failed(spoilt);
      }
      const bytes = encoder.encode(bracketed ? `\x1b[200~${piece}${PASTE_END}` : piece);
      const tail = bracketed ? encoder.encode(PASTE_END) : undefined;
      const result = await this.#o.sendWorker(bytes, WRITE_MS, tail);
      if (result !== "written") return lost(result);
    }
    agent.left = { messageId: this.messageId, text: this.text };
    const { pasteEnterMs, typedEnterMs } = agent.profile;
    await pause(clock, bracketed ? pasteEnterMs : typedEnterMs);
    if (agent.profile.screen.prompt === undefined) return undefined; // its line cannot be seen
    const { status } = agent;
    const blocked = () => status.reading().state === "blocked";
    const shown = () => status.composerHolds(this.text) !== "no";
    await agent.until(() => shown() || blocked() || this.#interrupted, SHOWN_MS);
    if (this.#interrupted) return failed("operator_interrupt");
    if (blocked()) return failed("dialog_opened");
    return shown() ? undefined : failed("not_shown");
  }

  /** The key, alone, if everything is still as it was. */
  async #submit(): Promise<InjectionOutcome | undefined> {
    const reason = await this.#clear();
    if (reason !== undefined) return failed(reason);
    this.#o.agent.submitting();
    const result = await this.#o.sendWorker(encoder.encode(this.#key()), WRITE_MS);
    return result === "written" ? undefined : lost(result);
  }

  /** Why the submit key may not be pressed now. */
  async #clear(): Promise<string | undefined> {
    const { agent } = this.#o;
    await agent.until(() => agent.observer.settled, STILL_MS);
    const spoilt = this.#spoilt();
    if (spoilt !== undefined) return spoilt;
    const front = this.#o.foreground();
    if (!agent.atTerminal(front) || front.group !== this.#group) return "foreground_changed";
    // In a dialog the key would approve something; an unsettled screen may hide one.
    return agent.status.dialogOpen() ? "dialog_opened" : undefined;
  }

  #spoilt(): string | undefined {
    if (this.#interrupted) return "operator_interrupt";
    const { hold, operator } = this.#o;
    // Held keys come after the message; keys after the hold ran out stand behind the text already.
    const typed = !hold.active && operator.lastKey !== this.#begunAt;
    return typed ? "operator_typed_behind" : undefined;
  }

  /** While it may be working, the key that does not interrupt it. */
  #key(): string {
    const { submit, busySubmit } = this.#input;
    const ready = this.#o.agent.status.reading().state === "ready";
    return ready ? submit : busySubmit ?? submit;
  }

  async #confirm(): Promise<InjectionOutcome> {
    const { agent, operator } = this.#o;
    const { status } = agent;
    const seen = () => status.submissionSeen(this.text);
    // A dialog takes the place of the line: what looks like it then is the submitted text above.
    const asks = () => status.reading().state === "blocked";
    const stands = () => !asks() && status.composerHolds(this.text) !== "no";
    const done = (how: string): InjectionOutcome => {
      agent.left = undefined;
      return { outcome: "written", reason: how };
    };
    if (await agent.until(() => strong(seen()), SEEN_MS)) return done(`confirmed: ${seen()}`);
    // A key of the operator's may have changed the line: nothing more is pressed then.
    const untouched = operator.lastKey === this.#begunAt;
    if (untouched && stands() && await this.#clear() === undefined) {
      const again = await this.#o.sendWorker(encoder.encode(this.#key()), WRITE_MS);
      if (again !== "written") return lost(again);
      if (await agent.until(() => strong(seen()), SEEN_MS)) {
        return done(`confirmed: ${seen()}, second key`);
      }
    }
    if (asks()) return done("unconfirmed: dialog");
    if (!stands() && seen() === "emptied") return done("unconfirmed: emptied");
    return stands() ? failed("not_submitted") : done("unconfirmed");
  }
}
