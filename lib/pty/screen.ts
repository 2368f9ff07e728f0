/**
 * The `screen` observer (B-06): reads the addressed blocks of an agent from a terminal model.
 * Relay first, observe behind: it takes copies of bytes that were relayed already, is bounded in
 * memory and delays nothing. Blocks are taken when a turn ends and the screen stands still; what
 * might be a repaint is withheld with a notice, never sent.
 */
import type { Clock } from "../base/clock.ts";
import { probe } from "../base/probe.ts";
import { checkBody } from "../model/body.ts";
import type { TerminalSize } from "../pty_ffi.ts";
import type { ExpectedEchoes } from "./echo.ts";
import type { Block, BlockRefusal } from "./lines.ts";
import type { AgentProfile } from "./profiles/schema.ts";
import { Feed } from "./screen/feed.ts";
import { fingerprintOf, isOutgrown, Ledger } from "./screen/ledger.ts";
import { loadModel, ScreenModel, type ScreenRow } from "./screen/model.ts";
import { ReportScanner } from "./screen/reports.ts";
import { atFirst, type Standing } from "./screen/standing.ts";
import {
  FRAME_MS,
  LATE_MS,
  MOVING_MS,
  readInterval,
  RETRY_MS,
  SETTLE_MS,
} from "./screen/timing.ts";
import {
  type Echo,
  type FoundBlock,
  readTranscript,
  type Transcript,
} from "./screen/transcript.ts";
import { AgentStatus, type ScreenSource } from "./status.ts";

/** Why a text that may be a block was not sent, or that some may have been missed. */
export type ScreenNotice =
  | BlockRefusal
  /** Perhaps new, perhaps a repaint or a soft wrap: `tamq send` is the certain way. */
  | {
    readonly kind: "ambiguous";
    readonly target: string;
    readonly reason: "observation_ambiguous";
  }
  /** So many bytes of output came too fast to be read. */
  | { readonly kind: "gap"; readonly bytes: number; readonly reason: "observation_gap" }
  /** The agent took the alternate screen, which has no history. Told once. */
  | { readonly kind: "alternate"; readonly reason: "alternate_screen" };

export type ScreenSize = TerminalSize;

export interface ScreenOptions {
  readonly profile: AgentProfile;
  readonly clock: Clock;
  readonly size: ScreenSize;
  /** Every registered name; read again at each commit. */
  readonly names: () => readonly string[];
  /**
   * Rows that come back because they were typed or injected. Asked only where the profile knows no
   * echo mark: with one, an answer that repeats a piece of the operator's words is still an answer.
   */
  readonly echoes?: ExpectedEchoes;
  readonly onBlock: (block: Block) => void;
  readonly onNotice: (notice: ScreenNotice) => void;
  /** The agent's state may have changed: ask `status`. */
  readonly onStatus?: () => void;
  /**
   * The program asked whether this terminal knows OSC 7501. `answer` is what to write into its
   * input; only to the profile's own foreground process, since anything else would read it as keys.
   * Called within `push`: the agent asks for the terminal's attributes right behind, and takes
   * their answer, which the terminal gives at once, for a no if ours has not come before.
   */
  readonly onStatusQuery?: (answer: Uint8Array<ArrayBuffer>) => void;
}

/** What another observer goes on from. */
export type KeptScreen = ReturnType<ScreenObserver["save"]>;

const STATUS_ANSWER = new TextEncoder().encode("\x1b]7501;?\x1b\\");

export class ScreenObserver implements ScreenSource {
  readonly status: AgentStatus;
  readonly #o: ScreenOptions;
  readonly #model: ScreenModel;
  readonly #feed: Feed;
  readonly #ledger = new Ledger();
  readonly #queries: ReportScanner | undefined;
  readonly #dropped = new ReportScanner((code, text) => this.#report(code, text));
  #cancelCheck: (() => void) | undefined;
  #frameSince: number | undefined;
  /** No sign of work is known: every change at rest may be new words. */
  readonly #signless: boolean;
  readonly #is: Standing = atFirst();
  #last = { fingerprint: "", at: -Infinity };
  #restSince = -Infinity;
  #outputAt = -Infinity;
  #ended = false;

  /** Loads the terminal model; await it before the worker is spawned. */
  static async open(options: ScreenOptions, kept?: KeptScreen): Promise<ScreenObserver> {
    const observer = new ScreenObserver(options, await loadModel());
    if (kept !== undefined) await observer.#restore(kept);
    return observer;
  }

  private constructor(options: ScreenOptions, terminal: Awaited<ReturnType<typeof loadModel>>) {
    this.#o = options;
    const { busy, osc7501 } = options.profile.status;
    if (osc7501) {
      this.#queries = new ReportScanner((code, text) => {
        if (code === 7501 && text.startsWith("?")) options.onStatusQuery?.(STATUS_ANSWER.slice());
      });
    }
    this.#signless = !osc7501 && busy.titles.length === 0 && busy.rows.length === 0;
    this.status = new AgentStatus(options.profile, this);
    this.#model = new ScreenModel(terminal, {
      cols: options.size.columns,
      rows: options.size.rows,
    }, {
      onTitle: (title) => this.#report(2, title),
      onStatusReport: (payload) => this.#report(7501, payload),
      onRepaint: () => {
        this.#is.repainted = true;
        this.#is.repaintedSinceGap = true;
      },
      onLost: () => this.#resume(0),
    });
    this.#feed = new Feed(options.clock, {
      write: (bytes, done) => this.#model.write(bytes, done),
      onGap: () => this.#gap(),
      onDropped: (bytes) => this.#dropped.feed(bytes),
      onResume: (bytes) => this.#resume(bytes),
      onDrained: () => this.#parsed(),
    });
  }

  /** Takes output that was relayed; copies it, never waits, never throws. */
  push(bytes: Uint8Array): void {
    if (!this.#ended) this.#queries?.feed(bytes);
    this.#outputAt = this.#o.clock.monotonic();
    this.#feed.push(bytes);
  }

  /** The terminal's size changed; takes its place between the bytes before and after. */
  resize(size: ScreenSize): void {
    this.#feed.between(() => this.#model.resize(size.columns, size.rows));
    this.#parsed();
  }

  /** Resolves when all output so far is read, so that `status` speaks of the present. */
  drained(): Promise<void> {
    return this.#feed.drained();
  }

  /** The worker ended: its last words are complete (B-12). Nothing is observed afterwards. */
  async end(): Promise<void> {
    await this.#feed.drained();
    if (this.#ended) return;
    if (!this.#feed.dropping) this.#commit(this.#transcript(), this.#is.worked);
    await this.close();
  }

  /** Stops without a last commit; safe to call twice. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelCheck?.();
    await this.#feed.close();
    this.#model.dispose();
  }

  get bracketedPaste(): boolean {
    return this.#model.bracketedPaste;
  }
  get alternate(): boolean {
    return this.#model.alternate;
  }
  get flooded(): boolean {
    return this.#feed.dropping;
  }
  get settled(): boolean {
    return this.#feed.pending === 0 && !this.#feed.dropping && !this.#frameOpen();
  }
  screenRows(): readonly ScreenRow[] {
    return this.#ended ? [] : this.#model.snapshot(this.#model.screenTop);
  }
  echoes(): readonly Echo[] {
    return this.#ended ? [] : this.#transcript().echoes;
  }
  isDim(line: number, column: number): boolean {
    return this.#model.isDim(line, column);
  }

  /** Why nobody can take over right now: something is being read, or half painted. */
  get unfinished(): "output_flood" | "screen_unsettled" | undefined {
    if (this.#feed.dropping) return "output_flood";
    return this.settled ? undefined : "screen_unsettled";
  }

  /** For who takes over (B-17); only while nothing is {@link unfinished}. */
  save() {
    const { cols, rows } = this.#model;
    return {
      size: { columns: cols, rows },
      painting: this.#model.paint(),
      ledger: this.#ledger.save(),
      status: this.status.save(),
      is: this.#is,
      // Clocks differ; JSON knows no infinity.
      restMs: Number.isFinite(this.#restSince) ? this.#o.clock.monotonic() - this.#restSince : null,
    };
  }

  async #restore(kept: KeptScreen): Promise<void> {
    this.#model.resize(kept.size.columns, kept.size.rows);
    const painting = new TextEncoder().encode(kept.painting);
    await new Promise<void>((resolve) => this.#model.write(painting, resolve));
    this.#ledger.restore(kept.ledger, (line) => this.#model.mark(line));
    this.status.restore(kept.status);
    Object.assign(this.#is, kept.is);
    if (kept.restMs !== null) this.#restSince = this.#o.clock.monotonic() - kept.restMs;
    this.#checkAfter(SETTLE_MS / 2);
  }

  #report(code: number, text: string): void {
    if (code === 7501 && this.#o.profile.status.osc7501) {
      if (this.status.report(text)) {
        this.#setWorking(this.status.reported === "working");
        this.#o.onStatus?.();
      }
    } else if (code === 0 || code === 2) {
      this.status.setTitle(text);
      if (this.status.reported === undefined && this.status.busySign) this.#setWorking(true);
    }
  }

  #setWorking(working: boolean): void {
    if (working && !this.#is.working) {
      this.#is.worked = true;
      // A turn that began after a gap is painted whole, in the scrollback; on the alternate screen
      // agents paint differences only, so that a full repaint must come first.
      const whole = !this.#model.alternate || this.#is.repaintedSinceGap;
      if (!this.#feed.dropping && whole) this.#is.trusted = true;
    }
    if (working === this.#is.working) return;
    this.#is.working = working;
    this.#is.phase++;
    if (!working) this.#restSince = this.#o.clock.monotonic();
  }

  #gap(): void {
    probe("screen.gap");
    this.#is.trusted = false;
    this.#is.repaintedSinceGap = false;
    this.#ledger.lose();
    this.#dropped.reset();
    this.status.invalidate();
    this.#o.onStatus?.();
  }

  #resume(bytes: number): void {
    if (bytes === 0) this.#gap();
    this.#model.cancel();
    this.#feed.between(() => this.#model.reset());
    this.status.invalidate();
    this.#o.onNotice({ kind: "gap", bytes, reason: "observation_gap" });
    this.#o.onStatus?.();
  }

  #parsed(): void {
    if (this.#ended) return;
    this.status.invalidate();
    if (this.#model.alternate && !this.#is.alternateTold) {
      this.#is.alternateTold = true;
      this.#o.onNotice({ kind: "alternate", reason: "alternate_screen" });
    }
    this.#checkAfter(SETTLE_MS / 2);
    this.#o.onStatus?.();
  }

  #checkAfter(ms: number): void {
    this.#cancelCheck ??= this.#o.clock.after(ms, () => {
      this.#cancelCheck = undefined;
      this.#check();
    });
  }

  #frameOpen(): boolean {
    if (this.#ended || !this.#model.synchronised) {
      this.#frameSince = undefined;
      return false;
    }
    const now = this.#o.clock.monotonic();
    this.#frameSince ??= now;
    return now - this.#frameSince < FRAME_MS;
  }

  #check(): void {
    if (this.#ended || this.#feed.dropping) return;
    if (!this.settled) return this.#checkAfter(RETRY_MS);
    this.#readSigns();
    if (this.#is.working && (this.#is.repainted || this.#o.profile.screen.reply === undefined)) {
      return;
    }
    const now = this.#o.clock.monotonic();
    const moving = now - this.#outputAt < MOVING_MS;
    const interval = readInterval(this.#is.working, moving);
    const wait = this.#last.at + interval - now;
    // When the output pauses, it is looked at sooner.
    if (wait > 0) return this.#checkAfter(moving ? Math.min(wait, MOVING_MS) : wait);

    this.#expireTurn(now);
    const transcript = this.#transcript();
    // While the agent works, only items that a later one has closed are whole – unless the later
    // one is the same item again, painted further: then the turn's end is awaited.
    const whole = (block: FoundBlock) => block.final && !isOutgrown(block, transcript.blocks, true);
    const blocks = this.#is.working ? transcript.blocks.filter(whole) : transcript.blocks;
    const fingerprint = `${this.#is.phase} ${fingerprintOf(blocks)}`;
    const stable = fingerprint === this.#last.fingerprint;
    this.#last = { fingerprint, at: now };
    if (!stable) return this.#checkAfter(interval);
    if (fingerprint === this.#is.committed) return;
    this.#commit(transcript, this.#is.worked, this.#is.working ? whole : undefined);
    this.#is.committed = fingerprint;
  }

  /** Some time after its end a turn is over: what appears later is a repaint. */
  #expireTurn(now: number): void {
    if (this.#signless || this.#is.working || now - this.#restSince < LATE_MS) return;
    if (!this.#is.committed.startsWith(`${this.#is.phase} `)) return;
    this.#is.worked = false;
    this.#is.repainted = false;
  }

  /** Without reports, signs on title and screen tell when a turn begins and ends. */
  #readSigns(): void {
    if (this.status.reported !== undefined) return;
    if (this.#signless) {
      this.#is.worked = true;
      this.#is.trusted ||= this.#is.repaintedSinceGap;
      return;
    }
    const busy = this.status.busySign;
    if (busy && !this.#is.working) {
      this.status.noteTurn();
      this.#o.onStatus?.();
    }
    this.#setWorking(busy);
  }

  #transcript(): Transcript {
    return readTranscript(this.#model.snapshot(), {
      grammar: this.#o.profile.screen,
      cols: this.#model.cols,
      names: this.#o.names(),
      isDim: (line, column) => this.#model.isDim(line, column),
    });
  }

  #commit(
    transcript: Transcript,
    worked: boolean,
    whole?: (block: FoundBlock) => boolean,
  ): void {
    const blocks = transcript.blocks.map((block) => {
      // On a screen without history a frame below a block may hide the rest of it.
      if (this.#model.alternate && !block.closed) block.uncertain = true;
      return block;
    });
    const { fresh, ambiguous } = this.#ledger.commit(blocks, {
      send: worked && this.#is.trusted,
      repainted: this.#is.repainted,
      ...(whole === undefined ? {} : { whole }),
      mark: (line) => this.#model.mark(line),
    });
    for (const block of ambiguous) {
      const target = block.written;
      this.#o.onNotice({ kind: "ambiguous", target, reason: "observation_ambiguous" });
    }
    for (const block of fresh) this.#send(block);
    probe("screen.commit", { fresh: fresh.length });
  }

  #send(block: FoundBlock): void {
    const { target, written, body } = block;
    if (this.#o.profile.screen.echo === undefined) {
      const header = `To:${written}: ${body.split("\n", 1)[0]}`;
      if (this.#o.echoes?.addressKind(header, this.#o.clock.monotonic()) !== undefined) return;
    }
    if (target === undefined) {
      return this.#o.onNotice({
        kind: "unknown_target",
        target: written,
        reason: "unknown_target",
      });
    }
    const checked = checkBody(body);
    if (checked.ok) this.#o.onBlock({ target, body });
    else this.#o.onNotice({ kind: "body", target, reason: checked.error.reason });
  }
}
