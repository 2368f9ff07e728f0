/** States of an agent's door, kept and on the wire. */
import { TamqError } from "../base/errors.ts";
import { AdmissionState } from "./gen/agent_pb.ts";
import type { Admission } from "./records.ts";

export const ADMISSIONS: Readonly<Record<Admission, AdmissionState>> = {
  open: AdmissionState.OPEN,
  draining: AdmissionState.DRAINING,
  closed: AdmissionState.CLOSED,
};

/** Throws `admission_unnamed` for a state that this side does not know. */
export function admissionOf(state: AdmissionState): Admission {
  const found = (Object.keys(ADMISSIONS) as Admission[]).find((one) => ADMISSIONS[one] === state);
  if (found !== undefined) return found;
  throw new TamqError("INVALID_ARGUMENT", "admission_unnamed", "no such admission state", {
    hint: "OPEN, DRAINING or CLOSED",
  });
}
