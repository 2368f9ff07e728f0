/** The failure table, and that clients cannot do what it forbids. */
import assert from "node:assert/strict";
import { FAILURE_CODES, type FailureCode, TamqError } from "../../../lib/base/errors.ts";
import {
  codeOfStatus,
  type FailedWith,
  FAILURES,
  fromFailure,
  isRepeatable,
  repeat,
  toFailure,
} from "../../../lib/fleet/failure.ts";
import {
  FailureCode as WireCode,
  ResultCode,
  RetryRule,
} from "../../../lib/fleet/gen/common_pb.ts";
import { fromStatus, toStatus } from "../../../lib/fleet/rpc.ts";

/** As the contract document lists them. */
const CONTRACT: Record<FailureCode, [status: number, rule: keyof typeof RetryRule]> = {
  INVALID_ARGUMENT: [3, "FIX_REQUEST"],
  UNAUTHENTICATED: [16, "REAUTHENTICATE"],
  PERMISSION_DENIED: [7, "STOP"],
  FAILED_PRECONDITION: [9, "REFRESH"],
  ABORTED: [10, "REREAD"],
  RESOURCE_EXHAUSTED: [8, "WAIT"],
  UNAVAILABLE: [14, "RECONCILE"],
  DEADLINE_EXCEEDED: [4, "QUERY"],
  NOT_FOUND: [5, "NO_SUBSTITUTE"],
  ALREADY_EXISTS: [6, "READ_EXISTING"],
};

Deno.test("[G-01] all ten codes: number, gRPC status, retry rule, there and back", () => {
  assert.deepEqual(Object.keys(FAILURES).sort(), [...FAILURE_CODES].sort());
  assert.equal(Object.keys(CONTRACT).length, 10);
  for (const code of FAILURE_CODES) {
    const [status, rule] = CONTRACT[code];
    assert.equal(FAILURES[code].status, status, code);
    assert.equal(WireCode[FAILURES[code].wire], code);
    assert.equal(RetryRule[FAILURES[code].rule], rule, code);
    assert.equal(codeOfStatus(status), code);
    const error = new TamqError(code, "some_reason", "what failed", { hint: "what next" });
    const failure = toFailure(error);
    assert.equal(failure.code, FAILURES[code].wire);
    assert.equal(failure.retryRule, FAILURES[code].rule);
    const back = fromStatus(toStatus(error));
    assert.deepEqual(
      [back.code, back.reason, back.message, back.hint],
      [code, "some_reason", "what failed", "what next"],
    );
    assert.equal(fromFailure(failure)?.code, code);
  }
});

Deno.test("[G-01] a status outside the table is taken as in doubt, one without details by its number", () => {
  for (const status of [1, 2, 13, 15, 99]) assert.equal(codeOfStatus(status), "UNAVAILABLE");
  assert.equal(codeOfStatus(12), "INVALID_ARGUMENT");
  assert.equal(fromStatus({ code: 10, details: "x" }).code, "ABORTED");
});

Deno.test("[G-03] a conflict says CONFLICT beside ABORTED", () => {
  const failure = toFailure(new TamqError("ABORTED", "idempotency_conflict", "other content"));
  assert.equal(failure.result, ResultCode.CONFLICT);
  assert.equal(
    toFailure(new TamqError("ABORTED", "stale_epoch", "old")).result,
    ResultCode.UNSPECIFIED,
  );
});

Deno.test("[G-01] what the table forbids does not compile, and does not run either", async () => {
  let sent = 0;
  const call = () => Promise.resolve(++sent);
  const failed = <C extends FailureCode>(code: C) => new TamqError(code, "r", "m") as FailedWith<C>;
  assert.equal(await repeat(failed("UNAVAILABLE"), "reconciled", call), 1);
  assert.equal(await repeat(failed("RESOURCE_EXHAUSTED"), "released", call), 2);
  assert.equal(await repeat(failed("FAILED_PRECONDITION"), "refreshed", call), 3);
  const refused = { reason: "retry_forbidden" };
  // @ts-expect-error: reconciling is what the table asks for
  await assert.rejects(repeat(failed("UNAVAILABLE"), "refreshed", call), refused);
  // @ts-expect-error: never
  await assert.rejects(repeat(failed("ABORTED"), "refreshed", call), refused);
  // @ts-expect-error: never
  await assert.rejects(repeat(failed("DEADLINE_EXCEEDED"), "reconciled", call), refused);
  // @ts-expect-error: never
  await assert.rejects(repeat(failed("NOT_FOUND"), "reconciled", call), refused);
  assert.equal(sent, 3);
  const may = FAILURE_CODES.filter((code) => isRepeatable(new TamqError(code, "r", "m")));
  assert.deepEqual(may, ["FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "UNAVAILABLE"]);
});
