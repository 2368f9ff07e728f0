/**
 * Stands in for the fleet's verbs in the one-file form: gRPC and certificates would nearly double
 * that file, which every command reads whole. The executable has them in a part of their own.
 */
import { TamqError } from "../../lib/base/errors.ts";

function absent(): never {
  throw new TamqError(
    "FAILED_PRECONDITION",
    "fleet_not_bundled",
    "the one-file form of tamq has no fleet commands",
    { hint: "use the executable, or tamq from a checkout" },
  );
}

export {
  absent as agent,
  absent as agents,
  absent as approve,
  absent as dispatcher,
  absent as drain,
  absent as executions,
  absent as explain,
  absent as init,
  absent as issue,
  absent as release,
  absent as resume,
  absent as revoke,
  absent as run,
  absent as status,
};
