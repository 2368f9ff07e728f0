/**
 * What the fake agent terminals share: a raw terminal, a log of every byte received, a log of what
 * was submitted, and the input side of an agent's line editor with its measured traps.
 *
 * Each fake is started as `deno run -A tests/agents/fake_NAME.ts LOG [--option[=value]]…` and
 * writes LOG (the bytes, unchanged) and LOG.events (one JSON object a line: `{"event", "text"}`).
 */
export interface FakeOptions {
  readonly log: string;
  /** `--name` or `--name=value`. */
  readonly flag: (name: string) => string | undefined;
  readonly number: (name: string, otherwise: number) => number;
}

export function fakeOptions(args: readonly string[] = Deno.args): FakeOptions {
  const [log, ...rest] = args;
  if (log === undefined) throw new Error("usage: fake_NAME.ts LOG [--option[=value]]…");
  // Options given first win, so that a test overrides what a script adds.
  const flags = new Map(
    rest.toReversed().map((arg) => {
      const [name, value = ""] = arg.replace(/^--/, "").split(/=(.*)/s);
      return [name!, value];
    }),
  );
  return {
    log,
    flag: (name) => flags.get(name),
    number: (name, otherwise) => Number(flags.get(name) ?? otherwise),
  };
}

export class ByteLog {
  readonly #bytes: Deno.FsFile;
  readonly #events: Deno.FsFile;

  constructor(path: string) {
    const options = { write: true, create: true, truncate: true, mode: 0o600 };
    this.#bytes = Deno.openSync(path, options);
    this.#events = Deno.openSync(`${path}.events`, options);
  }
  received(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) at += this.#bytes.writeSync(bytes.subarray(at));
  }
  event(event: string, text = ""): void {
    const line = JSON.stringify({ event, text }) + "\n";
    this.#events.writeSync(new TextEncoder().encode(line));
  }
}

const encoder = new TextEncoder();

export function print(text: string): void {
  const bytes = encoder.encode(text);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

/** Chunks of input, each as one read gave it: what arrives together is one keypress to some UIs. */
export async function* chunks(log: ByteLog): AsyncGenerator<Uint8Array> {
  for await (const chunk of Deno.stdin.readable) {
    log.received(chunk);
    yield chunk;
  }
}

export function size(): { columns: number; rows: number } {
  try {
    return Deno.consoleSize();
  } catch {
    return { columns: 80, rows: 24 };
  }
}

/** What a key or a paste means to the editor. */
export type Key =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "paste"; readonly text: string }
  | { readonly kind: "enter" | "tab" | "escape" | "backspace" | "clear" | "interrupt" };

/** Splits input into keys and paste frames; frames and characters may be split anywhere. */
export class KeyReader {
  readonly #decoder = new TextDecoder();
  #held = "";
  #paste: string | undefined;

  read(chunk: Uint8Array): Key[] {
    const keys: Key[] = [];
    let text = this.#held + this.#decoder.decode(chunk, { stream: true });
    this.#held = "";
    while (text !== "") {
      if (this.#paste !== undefined) {
        const end = text.indexOf("\x1b[201~");
        if (end < 0) {
          const cut = Math.max(0, text.length - 5); // the end may be split
          this.#paste += text.slice(0, cut);
          this.#held = text.slice(cut);
          break;
        }
        keys.push({ kind: "paste", text: this.#paste + text.slice(0, end) });
        this.#paste = undefined;
        text = text.slice(end + 6);
      } else if (text.startsWith("\x1b[200~")) {
        this.#paste = "";
        text = text.slice(6);
      } else if (text[0] === "\x1b") {
        if (text.length > 1 && "\x1b[200~".startsWith(text)) {
          this.#held = text;
          break;
        }
        // deno-lint-ignore no-control-regex
        const sequence = /^\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|O.)/.exec(
          text,
        );
        if (sequence === null) keys.push({ kind: "escape" });
        text = text.slice(sequence?.[0].length ?? 1);
      } else {
        keys.push(key(text[0]!, text));
        const last = keys.at(-1)!;
        text = text.slice(last.kind === "text" ? last.text.length : 1);
      }
    }
    return keys;
  }
}

function key(char: string, text: string): Key {
  switch (char) {
    case "\r":
    case "\n":
      return { kind: "enter" };
    case "\t":
      return { kind: "tab" };
    case "\x7f":
    case "\b":
      return { kind: "backspace" };
    case "\x15":
      return { kind: "clear" };
    case "\x03":
    case "\x04":
      return { kind: "interrupt" };
  }
  // deno-lint-ignore no-control-regex
  return { kind: "text", text: /^[^\x00-\x1f\x7f]+/.exec(text)?.[0] ?? char };
}

/** Breaks a text at blanks to `width`, with `first` before the first row and `rest` before others. */
export function wrapped(text: string, width: number, first: string, rest: string): string[] {
  const rows: string[] = [];
  for (const line of text.split("\n")) {
    let row: string | undefined;
    for (const word of line.split(" ")) {
      if (row === undefined) row = word;
      else if (row.length + 1 + word.length <= width - rest.length) row += ` ${word}`;
      else {
        rows.push(row);
        row = word;
      }
    }
    rows.push(row ?? "");
  }
  return rows.map((row, i) => row === "" ? "" : (i === 0 ? first : rest) + row);
}
