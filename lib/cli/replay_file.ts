/** Reading a file of messages line by line, into requests of bounded size. */
import { errorText, TamqError } from "../base/errors.ts";
import { type BadLine, parseReplayLine, type ReplayEntry } from "../model/replay.ts";
import type { CliContext } from "./context.ts";

/** An exported line has at most some 30 KiB; escapes of another program may make it longer. */
const MAX_LINE_BYTES = 256 * 1024;
/** Of one request; under the socket's limit of 64 KiB, with room for what surrounds the entries. */
const PACK_BYTES = 60 * 1024;
const PACK_ENTRIES = 256;

/** One line that is not blank, with its number from 1. */
export type ReplayLine =
  | { readonly line: number; readonly entry: ReplayEntry }
  | { readonly line: number; readonly bad: BadLine };

export interface Pack {
  readonly lines: readonly ReplayLine[];
  readonly entries: readonly ReplayEntry[];
}

/** Packs in the order of the lines. With `strict` a pack ends with the first bad line, the last one. */
export async function* packs(
  chunks: AsyncIterable<Uint8Array>,
  strict: boolean,
): AsyncGenerator<Pack> {
  const encoder = new TextEncoder();
  let lines: ReplayLine[] = [];
  let entries: ReplayEntry[] = [];
  let bytes = 0;
  const take = (): Pack => {
    const pack = { lines, entries };
    [lines, entries, bytes] = [[], [], 0];
    return pack;
  };
  for await (const line of replayLines(chunks)) {
    if ("bad" in line) {
      lines.push(line);
      if (strict) return yield take();
    } else {
      const size = encoder.encode(JSON.stringify(line.entry)).length + 1;
      if (bytes + size > PACK_BYTES || entries.length === PACK_ENTRIES) yield take();
      lines.push(line);
      entries.push(line.entry);
      bytes += size;
    }
    // A file of nothing but bad lines fills no pack.
    if (lines.length >= 4 * PACK_ENTRIES) yield take();
  }
  if (lines.length > 0) yield take();
}

async function* replayLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ReplayLine> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for await (const { line, bytes } of byteLines(chunks)) {
    if (bytes === undefined) {
      const message = `longer than ${MAX_LINE_BYTES} bytes`;
      yield { line, bad: { reason: "line_too_long", message } };
      continue;
    }
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      yield { line, bad: { reason: "line_not_utf8", message: "not valid UTF-8" } };
      continue;
    }
    if (text.trim() === "") continue;
    const parsed = parseReplayLine(text);
    yield parsed.ok ? { line, entry: parsed.value } : { line, bad: parsed.error };
  }
}

/** `bytes` is undefined for a line that is too long to be held. */
async function* byteLines(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ line: number; bytes: Uint8Array | undefined }> {
  let line = 1;
  let parts: Uint8Array[] = [];
  let length = 0;
  const add = (part: Uint8Array) => {
    length += part.length;
    if (length <= MAX_LINE_BYTES) parts.push(part);
    else parts = [];
  };
  const end = () => {
    const bytes = length > MAX_LINE_BYTES ? undefined : joined(parts, length);
    parts = [];
    length = 0;
    return { line: line++, bytes };
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, at));
      from = at + 1;
      yield end();
    }
    // Copied: whoever reads may use its buffer again.
    if (from < chunk.length) add(chunk.slice(from));
  }
  if (length > 0) yield end();
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The bytes of a file, or of standard input for `-`. Throws `file_unreadable`. */
export async function* fileChunks(context: CliContext, path: string): AsyncGenerator<Uint8Array> {
  if (path === "-") {
    yield* context.stdinChunks();
    return;
  }
  try {
    using file = await Deno.open(path);
    const buffer = new Uint8Array(64 * 1024);
    for (let count; (count = await file.read(buffer)) !== null;) yield buffer.subarray(0, count);
  } catch (cause) {
    const missing = cause instanceof Deno.errors.NotFound;
    throw new TamqError(
      missing ? "NOT_FOUND" : "INVALID_ARGUMENT",
      "file_unreadable",
      missing ? `there is no file ${path}` : `cannot read ${path}: ${errorText(cause)}`,
      { hint: "check the path and its permissions", cause },
    );
  }
}
