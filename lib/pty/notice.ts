/** Short notices to the operator, in the status line of their own tmux window. */
import { displaySafe } from "../base/display.ts";
import type { Log } from "../base/log.ts";

export interface NoticeOptions {
  /** tmux id of the pane, `%3`; none: notices go to the log alone. */
  readonly pane: string | undefined;
  readonly log: Log;
  /** The window's repository: with ten windows a notice must say which it is about. */
  readonly repo?: string;
  /** Runs tmux with these arguments; failures are the caller's to swallow. */
  readonly tmux?: (args: readonly string[]) => Promise<void>;
}

/** Shown for this long, milliseconds. */
const SHOWN_MS = 5000;
/** More at once are counted, not shown: a storm must not start a storm of processes. */
const MAX_WAITING = 8;
const MAX_CHARS = 400;

export class Notices {
  readonly #o: NoticeOptions;
  #waiting: string[] = [];
  #dropped = 0;
  #running: Promise<void> | undefined;
  #repeated = { said: "", times: 0 };

  constructor(options: NoticeOptions) {
    this.#o = options;
  }

  /**
   * One line; never throws, never waits. `logged` stands for it in the log wherever the text holds
   * something that the terminal showed (C-05).
   */
  show(text: string, logged = text): void {
    this.#logOnce(logged);
    if (this.#o.pane === undefined || !/^%\d+$/.test(this.#o.pane)) return;
    if (this.#waiting.length >= MAX_WAITING) this.#dropped++;
    else this.#waiting.push(text);
    this.#running ??= this.#drain().finally(() => this.#running = undefined);
  }

  /** The same again and again – a worker can print without end – is logged at 1, 10, 100, … */
  #logOnce(said: string): void {
    if (this.#repeated.said !== said) this.#repeated = { said, times: 0 };
    const times = ++this.#repeated.times;
    if (/^10*$/.test(String(times))) {
      this.#o.log.info("notice", { text: said, times: times === 1 ? undefined : times });
    }
  }

  /** Something is being shown, by a process of its own. */
  get busy(): boolean {
    return this.#running !== undefined;
  }

  /** Resolves when nothing waits to be shown. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #drain(): Promise<void> {
    const run = this.#o.tmux ?? runTmux;
    while (this.#waiting.length > 0) {
      const text = this.#waiting.shift()!;
      const more = this.#dropped > 0 ? ` (and ${this.#dropped} more; see the log)` : "";
      this.#dropped = 0;
      try {
        const from = this.#o.repo === undefined ? "tamq" : `tamq ${this.#o.repo}`;
        await run(displayArguments(this.#o.pane!, `${from}: ${text}${more}`));
      } catch {
        // no tmux, no client: the log has it
      }
    }
  }
}

/**
 * `display-message` takes a format and a time format: `#` and `%` are doubled, so that nothing of a
 * name or an error text is ever expanded.
 */
export function displayArguments(pane: string, text: string): string[] {
  const safe = displaySafe(text).slice(0, MAX_CHARS).replaceAll("#", "##").replaceAll("%", "%%");
  return ["display-message", "-d", String(SHOWN_MS), "-t", pane, safe];
}

async function runTmux(args: readonly string[]): Promise<void> {
  const command = new Deno.Command("tmux", {
    args: [...args],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  });
  await command.output();
}
