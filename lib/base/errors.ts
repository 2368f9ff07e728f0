/**
 * The one vocabulary of failure that socket, command line and library share (T-22).
 *
 * `code` is coarse and decides what a caller may do next (the retry rule, the exit status);
 * `reason` is fine, stable and meant for programs; `message` and `hint` are meant for people.
 */

/** The ten failure codes of the agent contract (T-22, G-01). */
export const FAILURE_CODES = [
  "INVALID_ARGUMENT",
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "RESOURCE_EXHAUSTED",
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
] as const;
export type FailureCode = typeof FAILURE_CODES[number];

/** What a caller may do after a failure; sent as `error.retry` so that clients need no table. */
export type RetryRule =
  | "never" // fix the request; the same one fails again
  | "reauthenticate"
  | "stop" // needs a new authorisation
  | "refresh" // read the state again, then decide
  | "reread" // compare-and-set lost: do not assume it applied
  | "wait" // until the resource is released
  | "reconcile" // the same idempotency key may be sent again
  | "query" // the result is unknown: ask for it first
  | "read_existing";

export const RETRY_RULES: Readonly<Record<FailureCode, RetryRule>> = {
  INVALID_ARGUMENT: "never",
  UNAUTHENTICATED: "reauthenticate",
  PERMISSION_DENIED: "stop",
  FAILED_PRECONDITION: "refresh",
  ABORTED: "reread",
  RESOURCE_EXHAUSTED: "wait",
  UNAVAILABLE: "reconcile",
  DEADLINE_EXCEEDED: "query",
  NOT_FOUND: "never",
  ALREADY_EXISTS: "read_existing",
};

/** The error object of a wire response (T-22). */
export interface WireError {
  code: FailureCode;
  reason: string;
  message: string;
  hint?: string;
  retry: RetryRule;
}

/** An operational failure: says what failed, on what, and what to do next. */
export class TamqError extends Error {
  override readonly name = "TamqError";
  readonly code: FailureCode;
  /** Stable machine-readable detail, e.g. `idempotency_conflict`. */
  readonly reason: string;
  readonly hint?: string;
  /** Message and hint are the words of another program: for people, never for logs (C-05). */
  readonly foreign: boolean;

  constructor(
    code: FailureCode,
    reason: string,
    message: string,
    options: { hint?: string; cause?: unknown; foreign?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.reason = reason;
    this.foreign = options.foreign === true;
    if (options.hint !== undefined) this.hint = options.hint;
  }

  /** The form that crosses the socket; the cause stays at home (it may hold local detail). */
  toWire(): WireError {
    const wire: WireError = {
      code: this.code,
      reason: this.reason,
      message: this.message,
      retry: RETRY_RULES[this.code],
    };
    if (this.hint !== undefined) wire.hint = this.hint;
    return wire;
  }

  static fromWire(wire: WireError): TamqError {
    return new TamqError(wire.code, wire.reason, wire.message, { hint: wire.hint });
  }
}

/**
 * Anything thrown, as text for a person or a log; of what another program said the reason alone.
 * Never throws itself.
 */
export function errorText(error: unknown): string {
  if (error instanceof TamqError && error.foreign) return `refused: ${error.reason}`;
  if (error instanceof Error) return error.message || error.name;
  try {
    return String(error);
  } catch {
    return "unknown error";
  }
}
