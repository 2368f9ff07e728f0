/** What `tamq doctor` says of one part of the set-up. */
import { errorText, TamqError } from "../../base/errors.ts";

/**
 * `problem`: messages cannot work until it is mended. `warning`: works, but somebody should look.
 * `hint`: a convenience that is not set up.
 */
export type Level = "ok" | "hint" | "warning" | "problem";

export interface Finding {
  readonly check: string;
  readonly level: Level;
  readonly detail: string;
  /** How to mend it; null when there is nothing to mend. */
  readonly remedy: string | null;
}

export function ok(check: string, detail: string): Finding {
  return { check, level: "ok", detail, remedy: null };
}
export function hint(check: string, detail: string, remedy: string): Finding {
  return { check, level: "hint", detail, remedy };
}
export function warning(check: string, detail: string, remedy: string): Finding {
  return { check, level: "warning", detail, remedy };
}
export function problem(check: string, detail: string, remedy: string): Finding {
  return { check, level: "problem", detail, remedy };
}

/** A failure as a problem: its own hint is the remedy. */
export function failed(check: string, error: unknown, remedy = "see: tamq help"): Finding {
  const hinted = error instanceof TamqError ? error.hint : undefined;
  return problem(check, errorText(error), hinted ?? remedy);
}

/** A check that fails in a way it did not foresee hides no other. */
export async function guarded(
  check: string,
  work: () => Promise<Finding[]> | Finding[],
): Promise<Finding[]> {
  try {
    return await work();
  } catch (error) {
    return [failed(check, error)];
  }
}
