import assert from "node:assert/strict";
import { FAILURE_CODES, TamqError } from "../../../lib/base/errors.ts";
import { OutputClosed } from "../../../lib/cli/context.ts";
import { report } from "../../../lib/cli/errors.ts";
import { EXIT_MEANINGS, EXIT_OF } from "../../../lib/cli/exit_codes.ts";

Deno.test("[C-07, T-22] every failure code has its documented exit status", () => {
  assert.deepEqual(EXIT_OF, {
    INVALID_ARGUMENT: 2,
    UNAUTHENTICATED: 5,
    PERMISSION_DENIED: 5,
    FAILED_PRECONDITION: 1,
    ABORTED: 4,
    RESOURCE_EXHAUSTED: 5,
    UNAVAILABLE: 3,
    DEADLINE_EXCEEDED: 3,
    NOT_FOUND: 1,
    ALREADY_EXISTS: 4,
  });
  assert.deepEqual(Object.keys(EXIT_OF).sort(), [...FAILURE_CODES].sort());
  assert.deepEqual(EXIT_MEANINGS.map(([status]) => status), [0, 1, 2, 3, 4, 5]);
});

Deno.test("[C-01, T-22] a failure is one line and a hint, or with --json the wire error", () => {
  const lines: string[] = [];
  const context = { err: (line: string) => void lines.push(line) };
  const error = new TamqError("ABORTED", "idempotency_conflict", "key \u001b[2Jtaken\nby another", {
    hint: "use another",
    cause: new Error("secret"),
  });
  assert.equal(report(context, error, false), 4);
  assert.deepEqual(lines, ["tamq: key \\x1b[2Jtaken\\nby another", "hint: use another"]);

  lines.length = 0;
  assert.equal(report(context, error, true), 4);
  assert.equal(lines.length, 1);
  assert.deepEqual(JSON.parse(lines[0]!), {
    code: "ABORTED",
    reason: "idempotency_conflict",
    message: "key \u001b[2Jtaken\nby another",
    hint: "use another",
    retry: "reread",
  });

  lines.length = 0;
  assert.equal(report(context, new Error("unforeseen"), false), 1);
  assert.deepEqual(lines, ["tamq: unforeseen"]);
  lines.length = 0;
  assert.equal(report(context, new OutputClosed(), false), 0);
  assert.deepEqual(lines, []);
});
