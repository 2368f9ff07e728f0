/** What every command gets: streams, environment, clock. Tests put their own in its place. */
import type { CommandContext } from "@stricli/core";
import { type Clock, pause, systemClock } from "../base/clock.ts";
import { errorText, TamqError } from "../base/errors.ts";
import type { Env } from "../config.ts";

export interface CliContext extends CommandContext {
  readonly env: Env;
  readonly clock: Clock;
  /** For stricli alone: its streams (blank lines on its standard error are dropped), the exit status. */
  readonly process: {
    readonly stdout: { readonly write: (text: string) => void };
    readonly stderr: { readonly write: (text: string) => void };
    exitCode?: number | string | null;
  };
  /** One line on standard output. */
  out(line: string): void;
  /** One line on standard error. */
  err(line: string): void;
  /**
   * Standard output to the kernel now; commands that run on call it, others leave it to the end. With
   * `signal` a reader that does not read keeps nothing else waiting, and an abort gives the rest up.
   */
  flush(signal?: AbortSignal): Promise<void>;
  stdinIsTerminal(): boolean;
  stdoutIsTerminal(): boolean;
  stderrIsTerminal(): boolean;
  /** Columns of the terminal on standard output. */
  columns(): number;
  /** All of standard input, or `undefined` once it holds more than `limit` bytes. */
  readStdin(limit: number): Promise<Uint8Array | undefined>;
  /** Standard input as it comes, to its end. */
  stdinChunks(): AsyncIterable<Uint8Array>;
  /** Asks on standard error and returns the line that is typed; undefined at the end of input. */
  ask(question: string): Promise<string | undefined>;
  /** The same with blanks kept, for lines of a text. */
  askLine(question: string): Promise<string | undefined>;
}

/** Thrown by a write once the reader of standard output is gone; ends the command quietly. */
export class OutputClosed extends Error {}

/** The context of a real process. */
export function processContext(): CliContext {
  const encoder = new TextEncoder();
  let pending: string[] = [];
  const stderr = (text: string) => {
    try {
      writeAll(Deno.stderr, encoder.encode(text));
    } catch {
      // Nobody is left to tell.
    }
  };
  return {
    env: Deno.env.get,
    clock: systemClock,
    process: {
      stdout: { write: (text) => void pending.push(text) },
      stderr: { write: (text) => void (text.trim() !== "" && stderr(text)) },
    },
    out: (line) => void pending.push(line + "\n"),
    err: (line) => stderr(line + "\n"),
    async flush(signal) {
      const bytes = encoder.encode(pending.join(""));
      pending = [];
      await writeOut(bytes, signal);
    },
    stdinIsTerminal: () => Deno.stdin.isTerminal(),
    stdoutIsTerminal: () => Deno.stdout.isTerminal(),
    stderrIsTerminal: () => Deno.stderr.isTerminal(),
    columns: terminalColumns,
    readStdin: (limit) => readAtMost(Deno.stdin, limit),
    stdinChunks: () => Deno.stdin.readable,
    ask: async (question) => (await askTerminal(question, stderr))?.trim(),
    askLine: async (question) => (await askTerminal(question, stderr))?.replace(/\r?\n$/, ""),
  };
}

/** A terminal gives a line at a time, of at most 4096 bytes. */
async function askTerminal(
  question: string,
  stderr: (text: string) => void,
): Promise<string | undefined> {
  stderr(question);
  const bytes = new Uint8Array(4096);
  const count = await Deno.stdin.read(bytes);
  return count === null ? undefined : new TextDecoder().decode(bytes.subarray(0, count));
}

/** A size that is not known (a serial line) or makes no sense counts as the usual one. */
function terminalColumns(): number {
  try {
    const { columns } = Deno.consoleSize();
    return columns >= 20 ? columns : 80;
  } catch {
    return 80;
  }
}

async function writeOut(bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
  for (let at = 0; at < bytes.length && signal?.aborted !== true;) {
    try {
      const rest = bytes.subarray(at);
      at += signal === undefined
        ? Deno.stdout.writeSync(rest)
        : await unlessAborted(Deno.stdout.write(rest), signal);
    } catch (error) {
      if (error instanceof Deno.errors.BrokenPipe) throw new OutputClosed();
      // A terminal that another program left in non-blocking mode: wait until it has drained a bit.
      if (!(error instanceof Deno.errors.WouldBlock)) throw outputFailed(error);
      await pause(systemClock, 2);
    }
  }
}

/** The result of `write`, or 0 as soon as `signal` aborts. */
async function unlessAborted(write: Promise<number>, signal: AbortSignal): Promise<number> {
  let stop = () => {};
  const aborted = new Promise<number>((resolve) => stop = () => resolve(0));
  signal.addEventListener("abort", stop);
  try {
    return await Promise.race([write, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function outputFailed(cause: unknown): TamqError {
  return new TamqError(
    "FAILED_PRECONDITION",
    "output_failed",
    `cannot write standard output: ${errorText(cause)}`,
    { hint: "free some space, or write somewhere else", cause },
  );
}

function writeAll(to: { writeSync(bytes: Uint8Array): number }, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += to.writeSync(bytes.subarray(at));
}

/** Everything `from` holds, or `undefined` once that is more than `limit` bytes. */
export async function readAtMost(
  from: { read(into: Uint8Array): Promise<number | null> },
  limit: number,
): Promise<Uint8Array | undefined> {
  const bytes = new Uint8Array(limit + 1);
  let length = 0;
  while (length <= limit) {
    const count = await from.read(bytes.subarray(length));
    if (count === null) return bytes.subarray(0, length);
    length += count;
  }
  return undefined;
}
