/**
 * An agent's chat UI as Ink draws it, by hand and quick to start: finished rows go to the
 * scrollback, a dynamic part below them (answer under way, status row, composer) is erased row by
 * row and drawn again, within synchronised output. Glyphs and titles are those of the `gemini`
 * profile; `--osc` reports the state by OSC 7501 as well.
 *
 * What it does is in the submitted text: `say<…>` answers that (`\n` is a line break, `To.:` an
 * address that was meant), `work<ms>`
 * works so long before it answers, `ask<cmd>` opens a dialog in which Enter means yes.
 *
 * Options: --start-ms=N (discards all input for so long), --deaf-ms=N (a CR within N ms of other
 * input is a line break), --swallow-enter=N (the first N Enters are lost), --queue (Enter while it
 * works queues), --no-echo (shows neither composer nor echo), --spinner-ms=N (redraws this often),
 * --exit-to-shell (ends after the first answer), --first=TEXT (submitted by itself at the start),
 * --ask-on-paste=CMD (the first paste is followed by a dialog), --query-on-paste (shows a paste only
 * once the terminal has told the cursor's place), --query-status (asks for OSC 7501 at the start).
 * Options given first win.
 */
import {
  ByteLog,
  chunks,
  type FakeOptions,
  fakeOptions,
  type Key,
  KeyReader,
  print,
  size,
  wrapped,
} from "./fake_terminal.ts";

const SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧";

export class FakeChat {
  readonly #o: FakeOptions;
  readonly #log: ByteLog;
  #composer = "";
  #drawn = 0;
  #queue: string[] = [];
  #work: { answer: string; until: number; shown: string } | undefined;
  #dialog: string | undefined;
  #lastInput = -Infinity;
  #swallow: number;
  #spin = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  #listening = false;
  #asked = false;
  #unshown = "";

  constructor(options: FakeOptions) {
    this.#o = options;
    this.#log = new ByteLog(options.log);
    this.#swallow = options.number("swallow-enter", 0);
  }

  async run(): Promise<void> {
    Deno.stdin.setRaw(true);
    const startMs = this.#o.number("start-ms", 0);
    print(`\x1b[?2004h\x1b[?25l`);
    if (startMs > 0) {
      print("starting …\r\n");
      setTimeout(() => this.#begin(), startMs);
    } else this.#begin();
    Deno.addSignalListener("SIGWINCH", () => {
      this.#log.event("resized", String(size().rows));
      this.#draw([]);
    });
    if (this.#o.flag("query-status") !== undefined) print("\x1b]7501;?\x07");
    const reader = new KeyReader();
    for await (const chunk of chunks(this.#log)) {
      const keys = reader.read(chunk);
      // deno-lint-ignore no-control-regex
      if (/\x1b\[\d+;\d+R/.test(new TextDecoder().decode(chunk))) this.#told();
      if (!this.#listening) continue; // discards what comes while it starts
      for (const key of keys) if (this.#key(key, chunk.length)) return this.#leave();
    }
  }

  #begin(): void {
    this.#listening = true;
    this.#state("idle");
    this.#draw(["", " Fake chat v1.0", ""]);
    this.#log.event("ready");
    const first = this.#o.flag("first");
    if (first !== undefined) this.#take(first);
  }

  #leave(): void {
    clearInterval(this.#timer);
    print("\x1b[?2004l\x1b[?25h\r\n");
    Deno.stdin.setRaw(false);
    Deno.exit(0);
  }

  /** True when the program ends. */
  #key(key: Key, chunkLength: number): boolean {
    const now = performance.now();
    const sinceInput = now - this.#lastInput;
    if (key.kind !== "enter") this.#lastInput = now;
    if (key.kind === "interrupt") return true;
    if (this.#dialog !== undefined) {
      this.#dialogKey(key);
      return false;
    }
    switch (key.kind) {
      case "paste":
        this.#paste(key.text);
        break;
      case "text":
        this.#composer += key.text;
        break;
      case "backspace":
        this.#composer = this.#composer.slice(0, -1);
        break;
      case "clear":
        this.#composer = "";
        break;
      case "escape":
        if (this.#work !== undefined) {
          this.#log.event("interrupted", this.#work.answer);
          this.#finish("interrupted.");
        }
        break;
      case "tab":
      case "enter":
        // Many editors take a CR that comes with, or right behind, other input for a line break.
        if (key.kind === "enter" && (sinceInput < this.#o.number("deaf-ms", 0))) {
          this.#composer += "\n";
        } else if (key.kind === "enter" && this.#swallow > 0) {
          this.#swallow--;
          this.#log.event("swallowed", String(chunkLength));
        } else this.#submit();
    }
    this.#draw([]);
    return false;
  }

  #paste(text: string): void {
    const ask = this.#o.flag("ask-on-paste");
    if (ask !== undefined && !this.#asked) {
      this.#asked = true;
      setTimeout(() => {
        this.#dialog = ask;
        this.#state("blocked");
        this.#draw([]);
      }, 60);
    }
    if (this.#o.flag("query-on-paste") === undefined) this.#composer += text;
    else {
      this.#unshown += text;
      print("\x1b[6n");
    }
  }

  /** The terminal told where the cursor is. */
  #told(): void {
    this.#log.event("told");
    this.#composer += this.#unshown;
    this.#unshown = "";
    this.#draw([]);
  }

  #dialogKey(key: Key): void {
    // Pasted text is dropped; letters are hotkeys; Enter takes what is selected: yes.
    const yes = key.kind === "enter" || (key.kind === "text" && key.text.includes("y"));
    const no = key.kind === "escape" || (key.kind === "text" && key.text.includes("n"));
    if (!yes && !no) return;
    const command = this.#dialog!;
    this.#dialog = undefined;
    this.#log.event(yes ? "approved" : "denied", command);
    this.#answer(yes ? `ran ${command}` : `did not run ${command}`, 0);
  }

  #submit(): void {
    const text = this.#composer.trimEnd();
    if (text === "") return;
    this.#composer = "";
    if (this.#work !== undefined) {
      if (this.#o.flag("queue") !== undefined) {
        this.#queue.push(text);
        this.#log.event("queued", text);
        return;
      }
      // As measured on one agent: Enter interrupts, and what was answered so far is gone.
      this.#log.event("interrupted", this.#work.answer);
      this.#work = undefined;
      clearInterval(this.#timer);
    }
    this.#take(text);
  }

  #take(text: string): void {
    this.#log.event("submitted", text);
    if (this.#o.flag("no-echo") === undefined) {
      this.#draw([...wrapped(text, size().columns, " > ", "   "), ""]);
    }
    const ask = /ask<(.*?)>/s.exec(text)?.[1];
    if (ask !== undefined) {
      this.#dialog = ask;
      this.#state("blocked");
      this.#draw([]);
      return;
    }
    const say = /say<(.*)>/s.exec(text)?.[1]?.replaceAll("To.:", "To:").replaceAll("\\n", "\n");
    this.#answer(say ?? `ok ${text.length}.`, Number(/work<(\d+)>/.exec(text)?.[1] ?? 0));
  }

  #answer(answer: string, workMs: number): void {
    this.#work = { answer, until: performance.now() + workMs, shown: "" };
    this.#state("working");
    // The answer is painted bit by bit, as a model streams it.
    const step = Math.max(1, Math.ceil(answer.length / 8));
    this.#timer = setInterval(() => {
      const work = this.#work!;
      this.#spin++;
      if (performance.now() >= work.until) {
        if (work.shown === work.answer) return this.#finish(work.answer);
        work.shown = work.answer.slice(0, work.shown.length + step);
      }
      this.#draw([]);
    }, this.#o.number("spinner-ms", 15));
  }

  #finish(answer: string): void {
    clearInterval(this.#timer);
    this.#work = undefined;
    this.#draw([...this.#reply(answer), ""]);
    this.#state("idle");
    this.#log.event("answered", answer);
    if (this.#o.flag("exit-to-shell") !== undefined) this.#leave();
    const next = this.#queue.shift();
    if (next !== undefined) this.#take(next);
  }

  #reply(text: string): string[] {
    return wrapped(text, size().columns, "✦ ", "  ");
  }

  #state(state: "idle" | "working" | "blocked"): void {
    const title = { idle: "◇  Ready", working: "✦  Working…", blocked: "✋  Action Required" };
    print(`\x1b]0;${title[state]} (fake)\x07`);
    if (this.#o.flag("osc") !== undefined) print(`\x1b]7501;state=${state}:app=fake\x1b\\`);
  }

  /** Erases the dynamic part, prints `finished` rows for good, draws the dynamic part anew. */
  #draw(finished: readonly string[]): void {
    const { columns } = size();
    const dynamic: string[] = [];
    if (this.#work !== undefined) {
      if (this.#work.shown !== "") dynamic.push(...this.#reply(this.#work.shown), "");
      dynamic.push(` ${SPINNER[this.#spin % SPINNER.length]} Thinking (esc to cancel, 1s)`, "");
    }
    for (const text of this.#queue) dynamic.push(` waiting: ${text.split("\n", 1)[0]}`);
    if (this.#dialog !== undefined) {
      dynamic.push(
        `╭${"─".repeat(columns - 2)}╮`,
        `│ Allow execution of [Shell]? ${this.#dialog.slice(0, 40)}`,
        "│ ● 1. Allow once",
        "│   2. No (esc)",
        `╰${"─".repeat(columns - 2)}╯`,
      );
    } else {
      const echo = this.#o.flag("no-echo") === undefined;
      const text = echo && this.#composer !== ""
        ? wrapped(this.#composer, columns, " > ", "   ")
        : [" >   Type your message or @path/to/file"];
      dynamic.push("─".repeat(columns), ...text, "");
    }
    const erase = "\x1b[2K" + "\x1b[1A\x1b[2K".repeat(this.#drawn) + "\x1b[G";
    const rows = [...finished, ...dynamic];
    print(`\x1b[?2026h${erase}${rows.join("\r\n")}\x1b[?2026l`);
    this.#drawn = dynamic.length - 1;
  }
}

if (import.meta.main) await new FakeChat(fakeOptions()).run();
