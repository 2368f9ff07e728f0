/** Times as people write them on a command line. */
import { isDay, rfc3339 } from "../base/clock.ts";
import { usageError } from "./errors.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/**
 * RFC 3339 in UTC for `text`: RFC 3339 itself, a local date or date and time, or an age such as `2h`.
 * `option` names where it was given, for the complaint.
 */
export function parseTime(text: string, now: number, option: string): string {
  const age = /^(\d{1,6})([smhdw])$/.exec(text);
  if (age) return rfc3339(now - Number(age[1]) * UNIT_MS[age[2]!]!);
  const moment =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/
      .exec(text);
  if (moment !== null && isDay(moment[1]!)) {
    // Without a zone the runtime reads date and time as local, as meant.
    const parsed = Date.parse(`${moment[1]}T${moment[2] ?? "00:00"}${moment[3] ?? ""}`);
    if (!Number.isNaN(parsed)) return rfc3339(parsed);
  }
  throw usageError(
    `${option} "${text}" is no time`,
    'write 2030-01-31T09:00:00Z, 2030-01-31, "2030-01-31 09:00", or an age: 90s, 15m, 2h, 3d, 1w',
  );
}
