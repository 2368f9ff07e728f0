/** How failures cross HTTP: one body, the codes of the message socket, one status each (K-19). */
import * as z from "zod/mini";
import { FAILURE_CODES, type FailureCode, type TamqError } from "../base/errors.ts";

/** Reasons that any route may give. */
export const COMMON_REASONS = [
  "request_invalid",
  "request_not_json",
  "request_too_large",
  "request_timeout",
  "unknown_route",
  "method_not_allowed",
  "peer_refused",
  "host_refused",
  "origin_refused",
  "token_required",
  "token_wrong",
  "worker_refused",
  "operator_only",
  "other_repository",
  "sender_refused",
  "revision_required",
  "too_many_requests",
  "shutting_down",
  "internal_error",
] as const;

/** The HTTP status of each failure code; a few reasons have a closer one. */
export const HTTP_STATUS: Readonly<Record<FailureCode, number>> = {
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  FAILED_PRECONDITION: 409,
  ABORTED: 409,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
};
export const REASON_STATUS: Readonly<Record<string, number>> = {
  revision_mismatch: 412,
  revision_required: 428,
  request_too_large: 413,
  request_timeout: 408,
  method_not_allowed: 405,
};

/** Every answer that is not a success has this body; the codes are those of the message socket. */
export const errorBody = z.object({
  error: z.object({
    code: z.enum(FAILURE_CODES),
    reason: z.string().check(z.regex(/^[a-z][a-z0-9_]{0,63}$/)),
    message: z.string().check(z.maxLength(2000)),
    hint: z.optional(z.string().check(z.maxLength(2000))),
    retry: z.optional(z.string().check(z.maxLength(32))),
  }),
});

/** The HTTP status of a failure. */
export function statusOf(error: TamqError): number {
  return REASON_STATUS[error.reason] ?? HTTP_STATUS[error.code];
}
