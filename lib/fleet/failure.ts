/**
 * The failure contract as data (G-01): code, gRPC status, retry rule. Server mapping, what clients
 * may do, and the documentation are made from this one table.
 */
import { create } from "@bufbuild/protobuf";
import { FAILURE_CODES, type FailureCode, TamqError } from "../base/errors.ts";
import {
  type Failure,
  FailureCode as WireCode,
  FailureSchema,
  ResultCode,
  RetryRule,
} from "./gen/common_pb.ts";

export interface FailureRule {
  readonly wire: WireCode;
  /** Number and name of the gRPC status. */
  readonly status: number;
  readonly statusName: string;
  readonly rule: RetryRule;
  /**
   * What must be in hand before the very same request may be sent again; `never` where no evidence
   * makes that right.
   */
  readonly repeat: "never" | "refreshed" | "released" | "reconciled";
  readonly words: string;
}

export const FAILURES = {
  INVALID_ARGUMENT: {
    wire: WireCode.INVALID_ARGUMENT,
    status: 3,
    statusName: "INVALID_ARGUMENT",
    rule: RetryRule.FIX_REQUEST,
    repeat: "never",
    words: "Fix the request; never retry it unchanged",
  },
  UNAUTHENTICATED: {
    wire: WireCode.UNAUTHENTICATED,
    status: 16,
    statusName: "UNAUTHENTICATED",
    rule: RetryRule.REAUTHENTICATE,
    repeat: "never",
    words: "Establish mTLS and the session again; do not replay business work",
  },
  PERMISSION_DENIED: {
    wire: WireCode.PERMISSION_DENIED,
    status: 7,
    statusName: "PERMISSION_DENIED",
    rule: RetryRule.STOP,
    repeat: "never",
    words: "Stop; a new authorization is required",
  },
  FAILED_PRECONDITION: {
    wire: WireCode.FAILED_PRECONDITION,
    status: 9,
    statusName: "FAILED_PRECONDITION",
    rule: RetryRule.REFRESH,
    repeat: "refreshed",
    words: "Refresh state or barrier, then use the original operation id, only if that is allowed",
  },
  ABORTED: {
    wire: WireCode.ABORTED,
    status: 10,
    statusName: "ABORTED",
    rule: RetryRule.REREAD,
    repeat: "never",
    words: "Read the revision again; do not assume that the operation applied",
  },
  RESOURCE_EXHAUSTED: {
    wire: WireCode.RESOURCE_EXHAUSTED,
    status: 8,
    statusName: "RESOURCE_EXHAUSTED",
    rule: RetryRule.WAIT,
    repeat: "released",
    words: "Wait until durable quota or the resource is released",
  },
  UNAVAILABLE: {
    wire: WireCode.UNAVAILABLE,
    status: 14,
    statusName: "UNAVAILABLE",
    rule: RetryRule.RECONCILE,
    repeat: "reconciled",
    words: "Reconnect and reconcile the original operation before any retry",
  },
  DEADLINE_EXCEEDED: {
    wire: WireCode.DEADLINE_EXCEEDED,
    status: 4,
    statusName: "DEADLINE_EXCEEDED",
    rule: RetryRule.QUERY,
    repeat: "never",
    words: "The result is unknown unless a durable receipt exists: query",
  },
  NOT_FOUND: {
    wire: WireCode.NOT_FOUND,
    status: 5,
    statusName: "NOT_FOUND",
    rule: RetryRule.NO_SUBSTITUTE,
    repeat: "never",
    words: "Do not create a substitute execution",
  },
  ALREADY_EXISTS: {
    wire: WireCode.ALREADY_EXISTS,
    status: 6,
    statusName: "ALREADY_EXISTS",
    rule: RetryRule.READ_EXISTING,
    repeat: "never",
    words: "Read the existing operation or result; do not create a second one",
  },
} as const satisfies Record<FailureCode, FailureRule>;

type Table = typeof FAILURES;

/** Codes after which the very same request may go out again, once the evidence is there. */
export type RepeatableCode = {
  [C in FailureCode]: Table[C]["repeat"] extends "never" ? never : C;
}[FailureCode];

/** What the caller must have done before it repeats a request that failed with `C`. */
export type Evidence<C extends RepeatableCode> = Table[C]["repeat"];

/** A failure whose code is known to the compiler. */
export type FailedWith<C extends FailureCode> = TamqError & { readonly code: C };

/**
 * Sends the same request again after a failure that allows it. Codes that forbid it do not compile
 * here (G-01); neither does evidence that the table does not ask for.
 */
export async function repeat<C extends RepeatableCode, T>(
  failure: FailedWith<C>,
  evidence: Evidence<C>,
  call: () => Promise<T>,
): Promise<T> {
  // For callers without the compiler's help.
  if (FAILURES[failure.code].repeat !== evidence) {
    throw new TamqError(
      "FAILED_PRECONDITION",
      "retry_forbidden",
      `after ${failure.code} the request must not be repeated: ${FAILURES[failure.code].words}`,
      { cause: failure },
    );
  }
  return await call();
}

/** Narrows a failure for {@link repeat}. */
export function isRepeatable(failure: TamqError): failure is FailedWith<RepeatableCode> {
  return FAILURES[failure.code].repeat !== "never";
}

/** Reasons that mean: an identity was reused with other content (G-03). */
const CONFLICTS: ReadonlySet<string> = new Set(["idempotency_conflict", "fact_conflict"]);

/** The failure as responses and status details carry it. */
export function toFailure(error: TamqError): Failure {
  const { wire, rule } = FAILURES[error.code];
  return create(FailureSchema, {
    code: wire,
    message: error.message,
    retryRule: rule,
    reason: error.reason,
    hint: error.hint ?? "",
    result: CONFLICTS.has(error.reason) ? ResultCode.CONFLICT : ResultCode.UNSPECIFIED,
  });
}

/** The other way round; undefined for a code of a newer contract. */
export function fromFailure(failure: Failure): TamqError | undefined {
  const code = FAILURE_CODES.find((one) => FAILURES[one].wire === failure.code);
  if (code === undefined) return undefined;
  const hint = failure.hint === "" ? undefined : failure.hint;
  return new TamqError(code, failure.reason || "unnamed", failure.message, { hint });
}

/** Statuses that the contract does not list, as the code whose rule is safe for them. */
const UNLISTED: Readonly<Record<number, FailureCode>> = {
  11: "INVALID_ARGUMENT", // OUT_OF_RANGE
  12: "INVALID_ARGUMENT", // UNIMPLEMENTED
};

/** The code of a gRPC status; of an unlisted one the result is in doubt: reconcile first. */
export function codeOfStatus(status: number): FailureCode {
  return FAILURE_CODES.find((code) => FAILURES[code].status === status) ?? UNLISTED[status] ??
    "UNAVAILABLE";
}
