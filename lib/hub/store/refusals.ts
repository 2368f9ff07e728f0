/** Rules that were broken, as errors for the client. */
import { TamqError } from "../../base/errors.ts";
import type { MoveRefusal } from "../rules.ts";

export function refusedMove(what: string, refusal: MoveRefusal): TamqError {
  if (refusal.reason === "dependencies_unsatisfied") {
    return new TamqError(
      "FAILED_PRECONDITION",
      refusal.reason,
      `${what} cannot become ${refusal.to}: it depends on tasks that are not done`,
      { hint: "finish those first, or take them out of its dependencies" },
    );
  }
  return new TamqError(
    "FAILED_PRECONDITION",
    refusal.reason,
    `${what} is ${refusal.from} and cannot become ${refusal.to}`,
    { hint: `from ${refusal.from} it can become ${refusal.allowed.join(", ")}` },
  );
}
