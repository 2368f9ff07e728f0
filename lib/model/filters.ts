/** Values of filters as they cross the socket. */
import { isDay } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Milliseconds of an RFC 3339 time; throws `invalid_time`, which names the field. */
export function parseTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = RFC3339.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text.toUpperCase()) : NaN;
  if (Number.isNaN(ms)) {
    throw new TamqError("INVALID_ARGUMENT", "invalid_time", `"${name}" is not an RFC 3339 time`, {
      hint: "write it like 2030-01-31T12:00:00Z",
    });
  }
  return ms;
}

/** A sequence number that we gave out as text; throws `invalid_cursor`. */
export function parseCursor(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    throw new TamqError("INVALID_ARGUMENT", "invalid_cursor", `"${name}" is not one of ours`, {
      hint: "pass what the answer before said, unchanged",
    });
  }
  return Number(text);
}
