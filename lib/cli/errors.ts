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
  const known = error instanceof TamqError;
  if (json) {
    const wire = known
      ? error.toWire()
      : { code: null, reason: "internal", message: errorText(error), retry: "never" };
    context.err(JSON.stringify(wire));
  } else {
    context.err(`tamq: ${displaySafe(errorText(error))}`);
    if (known && error.hint !== undefined) context.err(`hint: ${displaySafe(error.hint)}`);
  }
  return known ? EXIT_OF[error.code] : EXIT.failure;
}
