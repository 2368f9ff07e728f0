/**
 * Reads the rows of an agent's screen as a transcript: whose words stand where, and which
 * addressed blocks (B-02, B-06) stand in the agent's own words. A row counts only between the
 * agent's mark and the next echo, tool output or frame: the second line of a delivered body is
 * painted exactly like the agent's words.
 */
import { parseAddress, unknownAddress } from "../../model/envelope.ts";
import type { Grammar } from "../profiles/schema.ts";
import type { ScreenRow } from "./model.ts";
import { type PaintedRow, type WrittenLine, writtenLines } from "./paragraph.ts";

export type RowKind = "blank" | "chrome" | "echo" | "tool" | "reply" | "further";

/** A block as it stands on the screen. */
export interface FoundBlock {
  /** The registered name; undefined when nobody of the written name is registered. */
  readonly target: string | undefined;
  /** The name as written. */
  readonly written: string;
  readonly body: string;
  /** The body without white space: what stays equal when it is wrapped otherwise. */
  readonly bare: string;
  /** Line of the buffer where it begins. */
  readonly line: number;
  /** The user text before it without white space; undefined when it is above the kept rows. */
  readonly prompt: string | undefined;
  /** Which block it is behind that user text, from 0. */
  readonly ordinal: number;
  /** Ended by an empty row, another address or a later item; false when cut by a frame. */
  closed: boolean;
  /** A later item of the agent began below it: its rows will not change any more. */
  final: boolean;
  /** Where it begins or ends cannot be told from a soft wrap. */
  uncertain: boolean;
}

/** One text of a user in the transcript, or the operator's line at the end. */
export interface Echo {
  /** Rows joined, without marks and indents. */
  text: string;
  readonly line: number;
}

export interface Transcript {
  readonly blocks: FoundBlock[];
  readonly echoes: Echo[];
}

export function classify(text: string, grammar: Grammar): { kind: RowKind; mark: string } {
  if (text.trim() === "") return { kind: "blank", mark: "" };
  const is = (patterns: readonly RegExp[]) => patterns.some((pattern) => pattern.test(text));
  if (is(grammar.tool)) return { kind: "tool", mark: "" };
  if (is(grammar.chrome)) return { kind: "chrome", mark: "" };
  const echo = grammar.echo?.exec(text);
  if (echo) return { kind: "echo", mark: echo[0] };
  const reply = grammar.reply?.exec(text);
  if (reply) {
    const rest = text.slice(reply[0].length);
    const tool = grammar.toolHeads.some((pattern) => pattern.test(rest));
    return { kind: tool ? "tool" : "reply", mark: reply[0] };
  }
  if (text.startsWith(" ".repeat(grammar.indent))) return { kind: "further", mark: "" };
  return { kind: "chrome", mark: "" };
}

export interface ReadOptions {
  readonly grammar: Grammar;
  readonly cols: number;
  readonly names: readonly string[];
  /** Whether text at this place is dim: thoughts and hints are, words of a reply are not. */
  readonly isDim?: (line: number, column: number) => boolean;
}

export function readTranscript(rows: readonly ScreenRow[], options: ReadOptions): Transcript {
  const reader = new Reader(options);
  for (const row of rows) reader.row(row);
  return reader.end();
}

class Reader {
  readonly #o: ReadOptions;
  readonly #blocks: FoundBlock[] = [];
  readonly #echoes: Echo[] = [];
  #region: "words" | "echo" | "none";
  #paragraph: PaintedRow[] = [];
  #prompt: string | undefined;
  /** Rows so far that were not empty. */
  #seen = 0;
  #echoCut = false;
  /** An empty row stood in the echo. */
  #echoPaused = false;
  #ordinal = 0;
  /** Blocks of items before this index are final. */
  #itemStart = 0;

  constructor(options: ReadOptions) {
    this.#o = options;
    this.#region = options.grammar.reply === undefined ? "words" : "none";
  }

  row(row: ScreenRow): void {
    const { grammar } = this.#o;
    const { kind, mark } = classify(row.text, grammar);
    if (kind !== "blank") this.#seen++;
    switch (kind) {
      case "blank":
        this.#echoPaused = true;
        return this.#endParagraph(true);
      case "reply":
        this.#newItem();
        this.#region = "words";
        this.#paragraph.push({ text: row.text.slice(mark.length), line: row.line });
        return;
      case "tool":
        this.#newItem();
        this.#region = "none";
        return;
      case "echo":
        return this.#echoRow(row, mark);
      case "further":
        return this.#furtherRow(row);
      case "chrome":
        this.#endParagraph(false);
        if (grammar.reply !== undefined) this.#region = "none";
    }
  }

  end(): Transcript {
    this.#endParagraph(false);
    return { blocks: this.#blocks, echoes: this.#echoes };
  }

  #furtherRow(row: ScreenRow): void {
    const text = row.text.slice(this.#o.grammar.indent);
    if (this.#region === "words") this.#paragraph.push({ text, line: row.line });
    else if (this.#region === "echo") this.#echoText(text);
  }

  #echoRow(row: ScreenRow, mark: string): void {
    const continued = this.#o.grammar.echoEveryRow && this.#region === "echo";
    this.#endParagraph(true);
    const text = row.text.slice(mark.length);
    // At the very top the beginning of the user's text may be out of sight.
    if (this.#o.grammar.echoEveryRow && this.#seen === 1) this.#echoCut = true;
    if (continued) this.#echoText(text);
    else {
      if (this.#seen > 1) this.#echoCut = false;
      this.#echoes.push({ text, line: row.line });
      this.#prompt = this.#echoCut ? undefined : withoutSpace(text);
      this.#ordinal = 0;
      this.#echoPaused = false;
    }
    this.#region = "echo";
  }

  #echoText(text: string): void {
    const last = this.#echoes.at(-1)!;
    // Bounded: an echo is at most a message, but a whole screen could follow a stray mark.
    if (last.text.length < 32_768) last.text += "\n" + text;
    // The first paragraph identifies it; what follows might be a passing hint below the echo.
    if (!this.#echoPaused && !this.#echoCut) this.#prompt = withoutSpace(last.text);
  }

  #newItem(): void {
    this.#endParagraph(true);
    for (; this.#itemStart < this.#blocks.length; this.#itemStart++) {
      this.#blocks[this.#itemStart]!.final = true;
    }
  }

  #endParagraph(closed: boolean): void {
    // Where every row of an echo is marked, the first other row is the agent's again.
    if (this.#region === "echo" && this.#o.grammar.echoEveryRow) this.#region = "words";
    if (this.#paragraph.length === 0) return;
    const { grammar, cols } = this.#o;
    const rule = {
      width: cols - grammar.indent - grammar.wrapMargin,
      wideAnywhere: grammar.wrapsWideAnywhere,
      breakAfter: grammar.breakAfter,
    };
    const lines = writtenLines(this.#paragraph, rule, (text) => this.#address(text) !== undefined);
    this.#paragraph = [];
    let open: { block: FoundBlock; rows: string[] } | undefined;
    const close = (how: boolean) => {
      if (open === undefined) return;
      const { block, rows } = open;
      const body = rows.join("\n");
      this.#blocks.push({ ...block, body, bare: withoutSpace(body), closed: how });
      open = undefined;
    };
    for (const line of lines) {
      const found = this.#header(line);
      if (found !== undefined) {
        if (open !== undefined && line.uncertain) open.block.uncertain = true;
        close(true);
        open = { block: this.#begin(found, line), rows: [found.text] };
      } else open?.rows.push(line.text);
    }
    close(closed);
  }

  #begin(found: { target: string | undefined; written: string }, line: WrittenLine): FoundBlock {
    return {
      target: found.target,
      written: found.written,
      body: "",
      bare: "",
      line: line.line,
      prompt: this.#prompt,
      ordinal: this.#ordinal++,
      closed: false,
      final: false,
      uncertain: line.uncertain,
    };
  }

  /** An address at the start of a row, or behind up to three more blanks than the indent. */
  #header(line: WrittenLine) {
    const text = line.text.replace(/^ {1,3}/, "");
    const found = this.#address(text);
    if (found === undefined) return undefined;
    const column = line.text.length - text.length + this.#o.grammar.indent;
    return this.#o.isDim?.(line.line, column) ? undefined : found;
  }

  #address(
    text: string,
  ): { target: string | undefined; written: string; text: string } | undefined {
    if (!text.startsWith("To:")) return undefined;
    const found = parseAddress(text, this.#o.names);
    if (found !== undefined) return { ...found, written: found.target };
    const unknown = unknownAddress(text);
    if (unknown === undefined) return undefined;
    const rest = text.slice(3 + unknown.length + 1).replace(/^[ \t]/, "");
    return { target: undefined, written: unknown, text: rest };
  }
}

/** A text as it is compared: wrapping and indents change only white space. */
export function withoutSpace(text: string): string {
  return text.replace(/\s+/gu, "");
}
