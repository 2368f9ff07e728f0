/** How a failure reaches the person or program that called (C-01): one line, one hint, one status. */
import { errorText, TamqError } from "../base/errors.ts";
import { displaySafe } from "../base/display.ts";
import { EXIT, EXIT_OF } from "./exit_codes.ts";
import { type CliContext, OutputClosed } from "./context.ts";

/** A wrong command line; exit status 2. */
export function usageError(message: string, hint?: string): TamqError {
  return new TamqError("INVALID_ARGUMENT", "usage", message, { hint });
}

/**
 * Prints `tamq: what failed` and `hint: the way out` on standard error – with `json`, the error
 * object of the socket protocol – and returns the exit status.
 */
export function report(context: Pick<CliContext, "err">, error: unknown, json: boolean): number {
  if (error instanceof OutputClosed) return EXIT.ok; // `tamq history | head`: the reader has enough
  // What nobody foresaw still has one of the ten codes and a documented status.
  const known = error instanceof TamqError
    ? error
    : new TamqError("FAILED_PRECONDITION", "internal", errorText(error));
  if (json) {
    context.err(JSON.stringify(known.toWire()));
  } else {
    context.err(`tamq: ${displaySafe(known.message)}`);
    if (known.hint !== undefined) context.err(`hint: ${displaySafe(known.hint)}`);
  }
  return EXIT_OF[known.code];
}
