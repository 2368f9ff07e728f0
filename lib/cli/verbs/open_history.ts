/** The message database for reading, with the service running or not. */
import { TamqError } from "../../base/errors.ts";
import type { Settings } from "../../config.ts";
import type { CliContext } from "../context.ts";
import { late } from "../late.ts";

/** Undefined, with a word on standard error, when there is none yet: an empty history, no failure. */
export async function openHistory(context: CliContext, settings: Settings) {
  const { openForReading } = await late("store/store");
  try {
    return openForReading(settings.database, { busyTimeoutMs: settings.busyTimeoutMs });
  } catch (error) {
    if (!(error instanceof TamqError) || error.reason !== "store_missing") throw error;
    context.err("no messages yet: the service has never run");
    return undefined;
  }
}
