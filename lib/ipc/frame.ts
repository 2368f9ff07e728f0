/** One line of bytes to one JSON object and back; nothing here knows an operation (T-22). */
import { TamqError, type WireError } from "../base/errors.ts";
import type { NoLine } from "./lines.ts";

export type Json = Record<string, unknown>;

// Strict: a byte that is not UTF-8 is an error, never a replacement character in somebody's text.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The object on the line; throws `request_not_utf8`, `request_not_json` or `request_not_object`. */
export function decodeObject(line: Uint8Array): Json {
  let text: string;
  try {
    text = decoder.decode(line);
  } catch {
    throw new TamqError("INVALID_ARGUMENT", "request_not_utf8", "the request is not valid UTF-8");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own words quote the input, which may be a body: they stay out.
    throw new TamqError("INVALID_ARGUMENT", "request_not_json", "the request is not valid JSON", {
      hint: "send one JSON object on one line",
    });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw new TamqError(
    "INVALID_ARGUMENT",
    "request_not_object",
    "the request is not a JSON object",
    { hint: 'send one JSON object on one line, for example {"op":"ping","protocol":"0.1"}' },
  );
}

/** Why there was no line, as the error to answer; undefined when the client just went away. */
export function lineFailure(what: NoLine, limit: number): TamqError | undefined {
  switch (what) {
    case "end":
      return undefined;
    case "incomplete":
      return new TamqError(
        "INVALID_ARGUMENT",
        "request_incomplete",
        "the connection ended inside a request",
        { hint: "end the request with a line feed" },
      );
    case "too_large":
      return new TamqError(
        "INVALID_ARGUMENT",
        "request_too_large",
        `the request has more than ${limit} bytes`,
        { hint: "put long text in a file and send its path" },
      );
  }
}

export type Answer = { ok: true; result: unknown } | { ok: false; error: WireError };

/** What a client is told; anything that is no {@link TamqError} is ours, and its text stays here. */
export function failure(error: unknown): Answer {
  const known = error instanceof TamqError ? error : new TamqError(
    "UNAVAILABLE",
    "internal_error",
    "the service failed to do this",
    { hint: "the service's log says more; the same idempotency key may be sent again" },
  );
  return { ok: false, error: known.toWire() };
}
