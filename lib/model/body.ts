/** What a message may carry (T-08). */
import { ok, type Outcome, refused } from "../base/outcome.ts";

export const MAX_BODY_BYTES = 8192;
export const MAX_METADATA_BYTES = 4096;

export interface BodyRefusal {
  readonly reason: "body_empty" | "body_too_large" | "body_binary" | "body_not_utf8";
  readonly message: string;
  readonly hint: string;
}

const encoder = new TextEncoder();

// Control characters other than line feed and tab could drive the target's terminal: ESC, CR, NUL,
// DEL and the C1 block among them. Unpaired surrogates have no UTF-8 form.
// deno-lint-ignore no-control-regex
const BINARY = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

/** The body unchanged, byte for byte, or why it is refused. Sizes count UTF-8 bytes. */
export function checkBody(body: string): Outcome<string, BodyRefusal> {
  if (body.length === 0) {
    return refused({
      reason: "body_empty",
      message: "the message body is empty",
      hint: "give at least one character of text",
    });
  }
  if (!body.isWellFormed()) {
    return refused({
      reason: "body_not_utf8",
      message: "the message body is not valid Unicode text",
      hint: "send UTF-8 text; put binary data in a file and send its path",
    });
  }
  const bytes = body.length * 3 > MAX_BODY_BYTES ? encoder.encode(body).length : body.length;
  if (bytes > MAX_BODY_BYTES) {
    return refused({
      reason: "body_too_large",
      message: `the message body has ${bytes} bytes; at most ${MAX_BODY_BYTES} are allowed`,
      hint: "put the long text in a file and send its path",
    });
  }
  const bad = BINARY.exec(body);
  if (bad) {
    const point = bad[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    const line = body.slice(0, bad.index).split("\n").length;
    if (body.startsWith("\r\n", bad.index)) {
      return refused({
        reason: "body_binary",
        message:
          `the message body has Windows line ends (CRLF, control character U+000D) in line ${line}`,
        hint: "convert them: dos2unix FILE, or: tr -d '\\r' < FILE | tamq send ...",
      });
    }
    return refused({
      reason: "body_binary",
      message: `the message body holds the control character U+${point} in line ${line}`,
      hint: "only line feeds and tabs are allowed; remove colours and other control sequences",
    });
  }
  return ok(body);
}

/** Decodes bytes from a file or standard input; refuses anything that is not UTF-8. */
export function decodeBody(bytes: Uint8Array): Outcome<string, BodyRefusal> {
  try {
    return ok(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return refused({
      reason: "body_not_utf8",
      message: "the message body is not valid UTF-8",
      hint: "convert the text to UTF-8, or put binary data in a file and send its path",
    });
  }
}
