/** Exit statuses (C-07): one exhaustive record over the failure codes that socket and library share. */
import type { FailureCode } from "../base/errors.ts";

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  unavailable: 3,
  conflict: 4,
  refused: 5,
} as const;
export type ExitStatus = typeof EXIT[keyof typeof EXIT];

export const EXIT_OF: Readonly<Record<FailureCode, ExitStatus>> = {
  INVALID_ARGUMENT: EXIT.usage,
  UNAUTHENTICATED: EXIT.refused,
  PERMISSION_DENIED: EXIT.refused,
  FAILED_PRECONDITION: EXIT.failure,
  ABORTED: EXIT.conflict,
  RESOURCE_EXHAUSTED: EXIT.refused,
  UNAVAILABLE: EXIT.unavailable,
  DEADLINE_EXCEEDED: EXIT.unavailable,
  NOT_FOUND: EXIT.failure,
  ALREADY_EXISTS: EXIT.conflict,
};

/** What each status means, in order; `tamq help exit-codes` prints it. */
export const EXIT_MEANINGS: readonly (readonly [ExitStatus, string])[] = [
  [EXIT.ok, "success"],
  [EXIT.failure, "failure: what was asked for does not exist, or cannot be done in this state"],
  [EXIT.usage, "usage: a wrong option, argument, message body or configuration"],
  [EXIT.unavailable, "unavailable: service, endpoint or registry cannot be reached"],
  [EXIT.conflict, "conflict: the key, name or window is already taken by something else"],
  [EXIT.refused, "refused: by a limit, a policy or a check of identity"],
];
