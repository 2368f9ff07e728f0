/**
 * Whose words a shell's window shows (B-02): not all that is printed there is said by the worker.
 * What shows files is known by the command line, or by its process; what paints its rows itself, by
 * the terminal's mode.
 */
import { isShower, mentionsShower, showsFiles } from "./file_dump.ts";
import type { Foreground } from "./foreground.ts";
import type { Token } from "./keys.ts";

export interface ShellOutputOptions {
  readonly foreground: () => Foreground;
  /** The same, at most so many milliseconds old. */
  readonly recent: (ms?: number) => Foreground;
  /** False while the program in front takes keys one by one. */
  readonly canonical: () => boolean;
}

/** A foreground may be this old for an Enter, milliseconds: a paste has many. */
const ENTER_MS = 5;

export class ShellOutput {
  readonly #o: ShellOutputOptions;
  /** The command last entered shows what files hold. */
  #showsFiles = false;
  /** A program that paints its rows itself printed of the open block. */
  #painted = false;
  /** The keys that are just passed on hold an Enter, for a shell's prompt. */
  atPrompt = false;

  constructor(options: ShellOutputOptions) {
    this.#o = options;
  }

  /** For who takes over (B-17). */
  save() {
    return { showsFiles: this.#showsFiles, painted: this.#painted };
  }
  restore(kept: ReturnType<ShellOutput["save"]>): void {
    this.#showsFiles = kept.showsFiles;
    this.#painted = kept.painted;
  }

  /** Call before keys are passed on: a moment later a shell has started the command already. */
  beforeKeys(tokens: readonly Token[]): void {
    this.atPrompt = tokens.some(isEnter) && this.#o.recent().windowShell &&
      this.#o.recent(ENTER_MS).kind === "shell";
  }

  /** A command was entered at the prompt; `row` is what the terminal shows of it. */
  entered(typed: string, certain: boolean, row: () => string): void {
    this.#showsFiles = showsFiles(typed) || (!certain && mentionsShower(row()));
  }

  /** Something was printed while a block is open. */
  printed(): void {
    this.#painted ||= this.#paints();
  }

  /** Why the block that ended just now is not sent; undefined when it is the worker's. */
  refusal(): "file_dump" | "painted" | undefined {
    const painted = this.#painted || this.#paints();
    this.#painted = false;
    if (this.#showsFiles) return "file_dump";
    const { kind, windowShell, members } = this.#o.foreground();
    if (windowShell && kind !== "shell" && members.some(({ argv }) => isShower(argv))) {
      return "file_dump";
    }
    return painted ? "painted" : undefined;
  }

  /** A pager without the alternate screen, say, which paints anew whenever it scrolls back. */
  #paints(): boolean {
    if (this.#o.canonical()) return false;
    const { kind, windowShell } = this.#o.recent();
    return windowShell && kind !== "shell";
  }
}

function isEnter(token: Token): boolean {
  return token.type === "control" && (token.byte === 0x0d || token.byte === 0x0a);
}
