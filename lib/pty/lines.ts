/**
 * The `lines` observer (B-02): finds blocks in the output of programs that write plain lines. It
 * works on bytes, in bounded memory, without a terminal model, and looks at every byte only while
 * a block is open or a row begins like an address; all other output is only searched.
 *
 * Rules. A row ends at LF; CR LF is one line end. Escape sequences are skipped. A CR with nothing
 * visible before it is skipped (shells print one before a command's output). A row with a CR after
 * visible text was redrawn by a line editor: never an address, since the editor's own wrapping
 * could make a delivered text begin a row; inside a block it counts from behind its last CR. Also
 * never an address: a row on which the cursor was moved sideways before any text.
 */
import { checkBody, MAX_BODY_BYTES } from "../model/body.ts";
import { parseAddress, unknownAddress } from "../model/envelope.ts";
import { ESC, EscapeParser } from "./escapes.ts";
import type { ModeTracker } from "./modes.ts";
import type { ExpectedEchoes } from "./echo.ts";

/** A complete block of the worker. */
export interface Block {
  readonly target: string;
  readonly body: string;
}

/** Why an addressed text was not sent; for the operator. */
export interface BlockRefusal {
  readonly kind: "unknown_target" | "body" | "echo";
  /** The name as written. */
  readonly target: string;
  /** Reason of the body's refusal (`body_too_large`, …), or `unknown_target`. */
  readonly reason: string;
}

export interface LinesOptions {
  readonly modes: ModeTracker;
  readonly echoes: ExpectedEchoes;
  /** Every registered name; read again for each row that begins like an address. */
  readonly names: () => readonly string[];
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Whether the shell's prompt ends a block, asked when bracketed paste is announced. */
  readonly promptEndsBlock: () => boolean;
  readonly onBlock: (block: Block) => void;
  readonly onRefusal: (refusal: BlockRefusal) => void;
}

const LF = 0x0a, CR = 0x0d, BS = 0x08, TAB = 0x09, T = 0x54, O = 0x6f, COLON = 0x3a;
const ADDRESS = [T, O, COLON];
/** Bytes of one row that are kept: a whole body and its address. */
const MAX_ROW = MAX_BODY_BYTES + 1024;

/**
 * `start`: nothing visible yet, or a part of `To:`. `skip`: the row can be no address and belongs to
 * no block. `collect`: it may be an address, or a block is open.
 */
type RowState = "start" | "skip" | "collect";

interface OpenBlock {
  readonly target: string;
  readonly rows: string[];
  /** Bytes of the rows, a line break each. */
  bytes: number;
  /** Reason why it will not be sent. */
  bad?: string;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

export class LinesObserver {
  readonly #o: LinesOptions;
  readonly #escape = new EscapeParser();
  readonly #row = new Uint8Array(MAX_ROW);
  #block: OpenBlock | undefined;
  // The row under way.
  #state: RowState = "start";
  #length = 0;
  #overlong = false;
  /** A CR came last, behind visible text. */
  #pendingCr = false;
  #sawCr = false;
  /** Something else than plain printing made this row: never an address. */
  #redrawn = false;
  /** How much of `To:` a row in `start` has shown, 0 to 2. */
  #matched = 0;

  constructor(options: LinesOptions) {
    this.#o = options;
  }

  /** The open block, the same object until it ends; undefined when none is open or can be sent. */
  get open(): { readonly target: string } | undefined {
    return this.#block?.bad === undefined ? this.#block : undefined;
  }

  /** For who takes over, also in the middle of a block, a row, a sequence or a character (B-17). */
  save() {
    return {
      escape: this.#escape.save(),
      row: [...this.#row.subarray(0, this.#length)],
      block: this.#block ?? null,
      state: this.#state,
      flags: [this.#overlong, this.#pendingCr, this.#sawCr, this.#redrawn],
      matched: this.#matched,
    };
  }
  restore(kept: ReturnType<LinesObserver["save"]>): void {
    this.#escape.restore(kept.escape);
    this.#row.set(kept.row);
    this.#length = kept.row.length;
    this.#block = kept.block ?? undefined;
    this.#state = kept.state;
    [
      this.#overlong = false,
      this.#pendingCr = false,
      this.#sawCr = false,
      this.#redrawn = false,
    ] = kept.flags;
    this.#matched = kept.matched;
  }

  /** Takes the next bytes of output. The chunk may be reused afterwards. */
  feed(chunk: Uint8Array): void {
    const modes = this.#o.modes;
    let hidden = modes.alternateScreen;
    let from = 0;
    for (const change of modes.feed(chunk)) {
      if (!hidden) this.#scan(chunk.subarray(from, change.end));
      from = change.end;
      if (change.mode === "alternateScreen") {
        if (hidden !== change.on) this.#newRow("skip");
        hidden = change.on;
      } else if (change.on && !hidden && this.#block !== undefined && this.#o.promptEndsBlock()) {
        this.#endAtPrompt();
      }
    }
    if (!hidden) this.#scan(chunk.subarray(from));
  }

  /**
   * The operator pressed Enter on a line that is not known for certain – recalled from a history,
   * completed, edited. A row that stands unfinished then is that line, painted by whoever edits it,
   * and no word of the worker (B-03).
   */
  operatorEntered(): void {
    if (this.#state === "collect" && this.#length > 0) this.#redrawn = true;
  }

  /**
   * The worker ended: what it printed of a body is complete (B-12). `quiet`: the operator has not
   * begun a line, so that an unfinished row that is an address is no echo of theirs but the
   * worker's last words.
   */
  end(quiet = false): void {
    const last = this.#row.subarray(0, this.#length);
    const address = this.#state === "collect" && ADDRESS.every((byte, i) => last[i] === byte);
    if (address && quiet && parseAddress(lenient.decode(last), this.#o.names()) !== undefined) {
      this.#endRow();
    } else if (this.#block !== undefined) this.#lastRow();
    this.closeBlock();
    this.#newRow("skip");
  }

  /** Ends the open block, if any, as an empty line would. */
  closeBlock(): void {
    const block = this.#block;
    if (block === undefined) return;
    this.#block = undefined;
    const body = block.rows.join("\n");
    const checked = checkBody(body);
    const reason = block.bad ?? (checked.ok ? undefined : checked.error.reason);
    if (reason === undefined) this.#o.onBlock({ target: block.target, body });
    else this.#o.onRefusal({ kind: "body", target: block.target, reason });
  }

  #endAtPrompt(): void {
    // A row without line end and without any CR is output of the command that ended (printf); one
    // with a CR is the shell's own marker and prompt.
    if (!this.#sawCr) this.#lastRow();
    this.closeBlock();
    this.#newRow("skip");
  }

  /** The unfinished row of a block that ends now; half an address is dropped, not made a body. */
  #lastRow(): void {
    if (this.#length === 0) return;
    const row = this.#row.subarray(0, this.#length);
    if (!lenient.decode(row).startsWith("To:")) this.#bodyRow();
  }

  #newRow(state: RowState): void {
    this.#escape.reset();
    this.#state = this.#block !== undefined && state === "start" ? "collect" : state;
    this.#length = 0;
    this.#overlong = false;
    this.#pendingCr = false;
    this.#sawCr = false;
    this.#redrawn = false;
    this.#matched = 0;
  }

  #scan(bytes: Uint8Array): void {
    let i = 0;
    while (i < bytes.length) {
      if (this.#state === "collect") this.#collect(bytes[i++]!);
      else if (this.#matched > 0 || !this.#escape.ground) this.#prefix(bytes[i++]!);
      else i = this.#search(bytes, i);
    }
  }

  /**
   * No block is open and no sequence is cut: finds the next row that may be an address, looking
   * closely only at what precedes it on its row. Returns where to go on.
   */
  #search(bytes: Uint8Array, from: number): number {
    let p = bytes.indexOf(T, from);
    while (p >= 0 && !(bytes[p + 1] === O && bytes[p + 2] === COLON)) p = bytes.indexOf(T, p + 1);
    const end = p < 0 ? bytes.length : p;
    const lineFeed = end > from ? bytes.lastIndexOf(LF, end - 1) : -1;
    let i = from;
    if (lineFeed >= from) {
      this.#newRow("start");
      i = lineFeed + 1;
    }
    while (i < end && this.#state === "start") this.#prefix(bytes[i++]!);
    if (p < 0) return end;
    if (this.#state !== "start") return p + 3;
    if (this.#escape.ground && this.#matched === 0) {
      this.#begin();
      return p + 3;
    }
    this.#prefix(T); // the end of an escape sequence, or inside one
    return p + 1;
  }

  #begin(): void {
    this.#state = "collect";
    for (const byte of ADDRESS) this.#append(byte);
  }

  /** One byte of a row that has shown nothing but perhaps a part of `To:`. */
  #prefix(byte: number): void {
    if (byte === LF) this.#newRow("start");
    else if (this.#state === "skip") this.#escape.reset();
    else if (!this.#escape.ground) {
      if (this.#escape.step(byte) !== undefined && this.#movedAside()) this.#skip();
    } else if (byte === ADDRESS[this.#matched]) {
      if (++this.#matched === 3) this.#begin();
    } else if (this.#matched > 0) this.#skip();
    else if (byte === ESC) this.#escape.begin();
    else if (byte === CR) this.#sawCr = true;
    else if (byte >= 0x20 || byte === TAB || byte === BS) this.#skip();
  }

  #skip(): void {
    this.#state = "skip";
    this.#matched = 0;
    this.#escape.reset();
  }

  /** Whether the sequence that just completed moved the cursor elsewhere than to a row's start. */
  #movedAside(): boolean {
    const { introducer, final } = this.#escape;
    if (introducer === "[") {
      if (final === "H" || final === "f") return !/^1?(?:;1?)?$/.test(this.#escape.params);
      if (final === "G" || final === "`") return !/^1?$/.test(this.#escape.params);
      return /^[ABCDEFadeu]$/.test(final);
    }
    return introducer === "8" || introducer === "M";
  }

  #append(byte: number): void {
    if (this.#length < MAX_ROW) this.#row[this.#length++] = byte;
    else this.#overlong = true;
  }

  #collect(byte: number): void {
    if (byte === LF) this.#endRow();
    else if (!this.#escape.ground) {
      if (this.#escape.step(byte) !== undefined && this.#movedAside()) this.#redrawn = true;
    } else if (byte === ESC) this.#escape.begin();
    else if (byte === CR) {
      this.#sawCr = true;
      this.#pendingCr = this.#length > 0;
    } else {
      if (this.#pendingCr) {
        this.#redrawn = true;
        this.#pendingCr = false;
        this.#length = 0;
        this.#overlong = false;
      }
      if (byte === BS) this.#redrawn = true;
      this.#append(byte);
    }
  }

  #endRow(): void {
    const row = this.#row.subarray(0, this.#length);
    // A block that cannot be sent any more still swallows its rows: nothing of them is decoded.
    const dead = this.#block?.bad !== undefined;
    if (!row.some((byte) => byte > 0x20)) this.closeBlock();
    else if (this.#redrawn || !ADDRESS.every((byte, i) => row[i] === byte)) {
      if (!dead) this.#bodyRow();
    } else if (!this.#address(lenient.decode(row)) && !dead) this.#bodyRow();
    this.#newRow("start");
  }

  /** A row that begins with `To:`; true when it was dealt with. */
  #address(text: string): boolean {
    const echo = this.#o.echoes.addressKind(text, this.#o.now());
    if (echo === "echo") return true;
    const found = parseAddress(text, this.#o.names());
    const unknown = found === undefined ? unknownAddress(text) : undefined;
    if (found === undefined && unknown === undefined) return false;
    this.closeBlock(); // also before an unknown name: the text behind it was meant for somebody else
    if (echo === "part") {
      // Sent, it could be a delivered text that routes itself; dropped in silence, it could be the
      // very answer that was asked for (B-05, B-06).
      const target = found?.target ?? unknown!;
      this.#o.onRefusal({ kind: "echo", target, reason: "repeats_delivery" });
      return true;
    }
    if (found !== undefined) {
      this.#block = { target: found.target, rows: [found.text], bytes: 0 };
      this.#account(this.#block);
    } else {
      this.#o.onRefusal({ kind: "unknown_target", target: unknown!, reason: "unknown_target" });
    }
    return true;
  }

  #bodyRow(): void {
    const block = this.#block;
    if (block === undefined) return;
    const text = lenient.decode(this.#row.subarray(0, this.#length));
    if (this.#o.echoes.takesRow(text, this.#o.now())) return;
    block.rows.push(text);
    this.#account(block);
  }

  /** Counts the row that was just added; drops the rows of a block that cannot be sent. */
  #account(block: OpenBlock): void {
    block.bytes += this.#length + 1;
    const row = this.#row.subarray(0, this.#length);
    if (this.#overlong || block.bytes > MAX_ROW) block.bad ??= "body_too_large";
    try {
      strict.decode(row);
    } catch {
      block.bad ??= "body_not_utf8";
    }
    if (block.bad !== undefined) block.rows.length = 0;
  }
}
