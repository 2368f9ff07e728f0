/** Bounded reading of answers that a State Hub – perhaps a hostile one – gives. */
import { TamqError } from "../base/errors.ts";
import { errorBody } from "../hub/errors.ts";
import * as z from "zod/mini";

/** Nested deeper than any record of the interface; a reader must not recurse further. */
const MAX_DEPTH = 32;

/** What the hub said is not what the interface allows; its content is not quoted. */
export function answerInvalid(why: string, cause?: unknown): TamqError {
  return new TamqError("UNAVAILABLE", "answer_invalid", `the State Hub's answer ${why}`, {
    hint: "check what answers at the State Hub's address",
    cause,
  });
}

/**
 * A reader that `signal` ends: its reads then say "done". The signal given to `fetch` is not enough:
 * once the response object has been collected as garbage, the runtime does not pass it on.
 */
export function readerUntil(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const end = () => void reader.cancel().catch(() => {}); // broken off already
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return reader;
}

/**
 * All of the body, or `answer_too_large` once it passes `limit` bytes. Throws the signal's reason
 * when that ends it.
 */
export async function readBounded(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  limit: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  if (body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = readerUntil(body, signal);
  for (;;) {
    const { done, value } = await reader.read();
    signal.throwIfAborted();
    if (done) break;
    length += value.length;
    if (length > limit) {
      await reader.cancel().catch(() => {});
      throw new TamqError(
        "RESOURCE_EXHAUSTED",
        "answer_too_large",
        `the State Hub's answer has more than ${limit} bytes`,
        { hint: "ask for smaller pages, or check what answers at that address" },
      );
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw answerInvalid("is not UTF-8");
  }
  return parseText(text);
}

export function parseText(text: string): unknown {
  if (tooDeep(text)) throw answerInvalid("is nested too deeply");
  try {
    return JSON.parse(text);
  } catch {
    throw answerInvalid("is not JSON");
  }
}

function tooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++; // a backslash: the next one is no quote
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > MAX_DEPTH) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return false;
}

/** `value` as `schema` has it; throws `answer_invalid` with the place, never the content. */
export function checkAnswer<T extends z.ZodMiniType>(schema: T, value: unknown): z.infer<T> {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  // A key may be the sender's text, too: only names of our own interface are repeated.
  const path = result.error.issues[0]?.path.map((part) =>
    typeof part === "number" ? String(part) : String(part).replace(/[^\w]/g, "?").slice(0, 40)
  ).join(".");
  throw answerInvalid(path ? `is wrong at ${path}` : "has a wrong form");
}

/** The failure that an answer with an error status tells of. */
export function failureOf(status: number, bytes: Uint8Array): TamqError {
  let value: unknown;
  try {
    value = parseJson(bytes);
  } catch {
    return answerInvalid(`has status ${status} and no error that is understood`);
  }
  const result = z.safeParse(errorBody, value);
  if (!result.success) {
    return answerInvalid(`has status ${status} and no error that is understood`);
  }
  const { code, reason, message, hint } = result.data.error;
  return new TamqError(code, reason, message, { hint, foreign: true });
}
