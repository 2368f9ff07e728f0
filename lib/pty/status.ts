/**
 * What an agent is doing (B-08): ready for a message, busy, blocked by a dialog, or unknown. Blocked
 * or busy from any one source wins; ready needs every source that the profile names.
 */
import type { AgentProfile, Signs } from "./profiles/schema.ts";
import type { ScreenRow } from "./screen/model.ts";
import { classify, type Echo, withoutSpace } from "./screen/transcript.ts";

export type AgentState = "ready" | "busy" | "blocked" | "unknown";

export interface StatusReading {
  readonly state: AgentState;
  /**
   * For `tamq status` and `waiting_reason`: `reported_working`, `title_busy`, `screen_busy`,
   * `flood`, `reported_blocked`, `title_dialog`, `screen_dialog`, `no_report`, `report_not_idle`,
   * `no_ready_title`, `no_ready_row`, `no_prompt_row`, `screen_unsettled`, `ready`.
   */
  readonly reason: string;
}

/** How a text stands in the operator's line. */
export type ComposerHold =
  /** Every character of it. */
  | "whole"
  /** Rows of it; the rest is scrolled out of sight. */
  | "part"
  /** What the agent shows in place of a long paste. */
  | "placeholder"
  | "no";

/** How it is known that a text was submitted; from strong to weak. */
export type Submission =
  /** It stands in the transcript as the user's text, once more than before. */
  | "echo"
  /** The agent began to work. */
  | "working"
  /** It is shown among the texts that wait until the agent is free. */
  | "queued"
  /** It was in the operator's line, which is empty now. */
  | "emptied"
  | "no";

/** What the status needs of the screen; implemented by the observer. */
export interface ScreenSource {
  /** False while output waits to be parsed or a synchronised frame is under way. */
  readonly settled: boolean;
  /** Output is being dropped. */
  readonly flooded: boolean;
  /** Rows of the screen, without the scrollback. */
  screenRows(): readonly ScreenRow[];
  /** User texts in the whole transcript, the operator's line included. */
  echoes(): readonly Echo[];
  isDim(line: number, column: number): boolean;
}

/** State words of OSC 7501. */
type Reported = "idle" | "done" | "working" | "blocked";

interface Watch {
  readonly text: string;
  readonly echoes: number;
  readonly turns: number;
  held: boolean;
}

export class AgentStatus {
  readonly #profile: AgentProfile;
  readonly #source: ScreenSource;
  #reported: Reported | undefined;
  #title = "";
  #turns = 0;
  #watch: Watch | undefined;
  /** The screen as last read, and whether it changed since. */
  #rows: readonly ScreenRow[] | undefined;
  #stale = true;

  constructor(profile: AgentProfile, source: ScreenSource) {
    this.#profile = profile;
    this.#source = source;
  }

  /** The last state reported by OSC 7501. */
  get reported(): Reported | undefined {
    return this.#reported;
  }
  /** How many times the agent began to work. */
  get turns(): number {
    return this.#turns;
  }
  get title(): string {
    return this.#title;
  }

  /** Takes an OSC 7501 payload; true when it changed the state. A query changes nothing. */
  report(payload: string): boolean {
    const state = /(?:^|;|:)state=([a-z]+)/.exec(payload)?.[1];
    if (state !== "idle" && state !== "done" && state !== "working" && state !== "blocked") {
      return false;
    }
    const changed = state !== this.#reported;
    if (changed && state === "working") this.#turns++;
    this.#reported = state;
    return changed;
  }

  setTitle(title: string): void {
    const before = this.#titleBusy();
    this.#title = title;
    if (this.#reported === undefined && !before && this.#titleBusy()) this.#turns++;
  }

  /** The observer's reading of busy signs on the screen, where nothing is reported. */
  noteTurn(): void {
    this.#turns++;
  }

  /** The screen changed: readings are taken anew. */
  invalidate(): void {
    this.#stale = true;
  }

  /** For who takes over (B-17). */
  save() {
    return { reported: this.#reported ?? null, title: this.#title, turns: this.#turns };
  }
  restore(kept: ReturnType<AgentStatus["save"]>): void {
    this.#reported = kept.reported ?? undefined;
    this.#title = kept.title;
    this.#turns = kept.turns;
    this.#stale = true;
  }

  /** Whether a busy sign of title or screen shows. */
  get busySign(): boolean {
    return this.#titleBusy() || this.#onScreen(this.#profile.status.busy);
  }

  reading(): StatusReading {
    const { status, screen } = this.#profile;
    const say = (state: AgentState, reason: string): StatusReading => ({ state, reason });
    if (this.#reported === "blocked") return say("blocked", "reported_blocked");
    if (matches(status.dialog.titles, this.#title)) return say("blocked", "title_dialog");
    if (this.#onScreen(status.dialog, true)) return say("blocked", "screen_dialog");
    if (this.#source.flooded) return say("busy", "flood");
    if (this.#reported === "working") return say("busy", "reported_working");
    if (this.#titleBusy()) return say("busy", "title_busy");
    if (this.#onScreen(status.busy)) return say("busy", "screen_busy");
    if (!this.#source.settled) return say("unknown", "screen_unsettled");
    if (status.osc7501 && this.#reported === undefined) return say("unknown", "no_report");
    if (status.ready.titles.length > 0 && !matches(status.ready.titles, this.#title)) {
      return say("unknown", "no_ready_title");
    }
    if (status.ready.rows.length > 0 && !this.#onScreen(status.ready, true)) {
      return say("unknown", "no_ready_row");
    }
    if (screen.prompt !== undefined && this.#composer() === undefined) {
      return say("unknown", "no_prompt_row");
    }
    return say("ready", "ready");
  }

  /**
   * Whether a dialog is, or may be, open, in which Enter would approve something. True while the
   * screen cannot be read: settle first, then ask.
   */
  dialogOpen(): boolean {
    return !this.#source.settled || this.reading().state === "blocked";
  }

  /** Whether the operator's line is empty; undefined when it cannot be seen. */
  promptEmpty(): boolean | undefined {
    const composer = this.#source.settled ? this.#composer() : undefined;
    return composer?.empty;
  }

  /** How `text` stands in the operator's line. */
  composerHolds(text: string): ComposerHold {
    const composer = this.#composer();
    const wanted = withoutSpace(text);
    if (composer === undefined || composer.empty || wanted === "") return "no";
    const held = withoutSpace(composer.rows.join(""));
    if (held.includes(wanted)) return this.#hold("whole");
    if (matches(this.#profile.screen.pasted, composer.rows.join("\n"))) {
      return this.#hold("placeholder");
    }
    // Short rows could be part of anything.
    const seen = composer.rows.map(withoutSpace).filter((row) => row.length >= 8);
    return seen.some((row) => wanted.includes(row)) ? this.#hold("part") : "no";
  }

  /** Whether the operator's line holds `text` and nothing else. */
  composerIs(text: string): boolean {
    const composer = this.#source.settled ? this.#composer() : undefined;
    if (composer === undefined || composer.empty) return false;
    return withoutSpace(composer.rows.join("")) === withoutSpace(text);
  }

  /** Call before injecting `text`: from here on `submissionSeen` tells what is new. */
  expectSubmission(text: string): void {
    const wanted = withoutSpace(text);
    this.#watch = { text: wanted, echoes: this.#echoed(wanted), turns: this.#turns, held: false };
  }

  /** Whether `text`, announced by `expectSubmission`, was submitted since. */
  submissionSeen(text: string): Submission {
    const watch = this.#watch;
    if (watch === undefined || watch.text !== withoutSpace(text)) return "no";
    if (this.#echoed(watch.text) > watch.echoes) return "echo";
    if (this.#turns > watch.turns) return "working";
    if (this.#queued(watch.text)) return "queued";
    const composer = this.#source.settled ? this.#composer() : undefined;
    return watch.held && composer?.empty === true ? "emptied" : "no";
  }

  #hold(how: ComposerHold): ComposerHold {
    if (this.#watch !== undefined) this.#watch.held = true;
    return how;
  }

  /** How often a text stands in the transcript as the user's, the operator's line left out. */
  #echoed(wanted: string): number {
    const composer = this.#composer();
    let count = 0;
    for (const echo of this.#source.echoes()) {
      if (echo.line === composer?.line) continue;
      const text = withoutSpace(echo.text);
      // A long text may be shown cut, or with a hint behind it.
      if (text.startsWith(wanted) || (text.length >= 60 && wanted.startsWith(text))) count++;
    }
    return count;
  }

  #queued(wanted: string): boolean {
    const { queued } = this.#profile.screen;
    if (queued === undefined) return false;
    return this.#screen().some((row) => {
      const mark = queued.exec(row.text);
      // Cut to one row, perhaps with an ellipsis.
      const text = withoutSpace(row.text.slice(mark?.[0].length ?? 0)).replace(/…$/u, "");
      return mark !== null && text.length >= 8 && wanted.startsWith(text);
    });
  }

  #titleBusy(): boolean {
    return matches(this.#profile.status.busy.titles, this.#title);
  }

  /**
   * Signs stand below the last item of the transcript; above it they may be ghosts of an older
   * frame, left behind by a resize. Rows of the agent's own words count only for dialogs, which
   * may follow them without a mark: a reply that speaks of a busy sign is none.
   */
  #onScreen(signs: Signs, words = false): boolean {
    if (signs.rows.length === 0) return false;
    const { screen } = this.#profile;
    const rows = this.#screen();
    const composer = this.#composer()?.line;
    let from = 0;
    let inWords = screen.reply === undefined;
    const own: boolean[] = [];
    for (const [i, row] of rows.entries()) {
      const { kind } = classify(row.text, screen);
      const echo = kind === "echo" && (composer === undefined || row.line < composer);
      if (kind === "reply" || echo) {
        from = i;
        inWords = true;
      } else if (kind === "tool" || kind === "chrome" || kind === "echo") inWords = false;
      own.push(inWords && kind !== "blank");
    }
    return rows.some((row, i) => i >= from && (words || !own[i]) && matches(signs.rows, row.text));
  }

  #screen(): readonly ScreenRow[] {
    // Within a frame the last whole screen counts.
    if (this.#rows === undefined || (this.#stale && this.#source.settled)) {
      this.#rows = this.#source.screenRows();
      this.#stale = false;
    }
    return this.#rows;
  }

  /** The operator's line: the last prompt with no item of the agent below it. */
  #composer(): { line: number; rows: string[]; empty: boolean } | undefined {
    const { screen } = this.#profile;
    const { prompt } = screen;
    if (prompt === undefined) return undefined;
    const rows = this.#screen();
    for (let i = rows.length - 1; i >= 0; i--) {
      const row = rows[i]!;
      const mark = prompt.exec(row.text) ?? prompt.exec(row.text + " ");
      const { kind } = classify(row.text, screen);
      if (mark === null || (screen.echoEveryRow && kind === "chrome")) {
        if (kind === "reply" || kind === "tool") return undefined;
        continue;
      }
      if (screen.echoEveryRow) return this.#framedComposer(rows, i, prompt);
      const first = row.text.slice(mark[0].length);
      const texts = [first];
      let further = false;
      for (const next of rows.slice(i + 1)) {
        const { kind } = classify(next.text, screen);
        if (kind === "chrome") break;
        if (kind === "further" && texts.length === 1) further = true;
        texts.push(next.text);
      }
      const text = first.trim();
      const hint = text !== "" &&
        (matches(screen.placeholders, text) || this.#source.isDim(row.line, mark[0].length));
      return { line: row.line, rows: texts, empty: (text === "" || hint) && !further };
    }
    return undefined;
  }

  /** Where each row of it is marked, the operator's line is the last run of marked rows. */
  #framedComposer(rows: readonly ScreenRow[], last: number, prompt: RegExp) {
    const texts: string[] = [];
    let empty = true;
    let line = rows[last]!.line;
    for (let i = last; i >= 0; i--) {
      const row = rows[i]!;
      const mark = prompt.exec(row.text) ?? prompt.exec(row.text + " ");
      if (mark === null || classify(row.text, this.#profile.screen).kind === "chrome") break;
      const text = row.text.slice(mark[0].length).trim();
      const hint = matches(this.#profile.screen.placeholders, text) ||
        this.#source.isDim(row.line, mark[0].length);
      if (text !== "" && !hint) empty = false;
      texts.unshift(text);
      line = row.line;
    }
    return { line, rows: texts, empty };
  }
}

function matches(patterns: readonly RegExp[], text: string): boolean {
  return patterns.some((pattern) => pattern.test(text));
}
