/**
 * Writes what an agent's inline UI writes, for observers: finished rows above, a dynamic part that
 * is erased and drawn again below. Marks of the `gemini` profile (no reports) or of `codex` (OSC
 * 7501, synchronised frames).
 */
import { wrapped } from "../agents/fake_terminal.ts";

export type Look = "gemini" | "codex";

export class Painter {
  readonly transcript: string[] = [];
  #dynamic = 0;

  constructor(readonly look: Look, public cols = 80) {}

  get #osc(): boolean {
    return this.look === "codex";
  }
  get #mark(): string {
    return this.#osc ? "• " : "✦ ";
  }

  state(state: "idle" | "working" | "done" | "blocked"): string {
    if (this.#osc) return `\x1b]7501;state=${state}:app=codex\x1b\\`;
    const titles = { working: "✦  Working…", blocked: "✋  Action Required" };
    return `\x1b]0;${state in titles ? titles[state as "working"] : "◇  Ready"} (x)\x07`;
  }

  start(): string {
    return this.state("idle") + this.frame(["", "  An agent", ""], []);
  }

  echoRows(text: string): string[] {
    const [first, rest] = this.#osc ? ["› ", "  "] : [" > ", "   "];
    return [...wrapped(text, this.cols, first!, rest!), ""];
  }
  replyRows(text: string): string[] {
    return [...wrapped(text, this.cols, this.#mark, "  "), ""];
  }

  /** A user's text is taken and the agent begins to work. */
  begin(prompt: string): string {
    return this.state("working") + this.frame(this.echoRows(prompt), [this.#busy]);
  }
  /** The answer so far, in the dynamic part. */
  partial(text: string): string {
    return this.frame([], [...this.replyRows(text), this.#busy]);
  }
  /** A whole item, for good, while work goes on. */
  item(text: string): string {
    return this.frame(this.replyRows(text), [this.#busy]);
  }
  finish(text: string): string {
    return this.frame(this.replyRows(text), []) + this.state("done");
  }
  turn(prompt: string, answer: string): string {
    return this.begin(prompt) + this.partial(answer.slice(0, answer.length / 2)) +
      this.finish(answer);
  }

  /** Screen and scrollback cleared, the whole transcript printed again, as on a resize. */
  reprint(): string {
    const rows = this.transcript.splice(0);
    this.#dynamic = 0;
    return "\x1b[2J\x1b[3J\x1b[H" + this.frame(rows, []);
  }
  /** The dynamic part drawn again. */
  repaint(): string {
    return this.frame([], []);
  }

  get #busy(): string {
    return this.#osc ? "• Working (1s • esc to interrupt)" : " ⠋ Thinking (esc to cancel, 1s)";
  }

  frame(finished: readonly string[], dynamic: readonly string[], composer = ""): string {
    this.transcript.push(...finished);
    const hint = this.#osc
      ? "\x1b[2mAsk Codex to do anything\x1b[22m"
      : "  Type your message or @path/to/file";
    const line = (this.#osc ? "› " : " > ") + (composer === "" ? hint : composer);
    const foot = this.#osc
      ? ["", line, "", "  model default · ~"]
      : ["─".repeat(this.cols), line, "", " ~/proj"];
    const below = [...dynamic, ...foot];
    const erase = "\x1b[2K" + "\x1b[1A\x1b[2K".repeat(this.#dynamic) + "\x1b[G";
    this.#dynamic = below.length - 1;
    const rows = [...finished, ...below].join("\r\n");
    return `\x1b[?2026h${erase}${rows}\x1b[?2026l`;
  }
}
