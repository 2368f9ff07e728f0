/** How verbs reach the service. */
import { call, findSocket } from "../../client.ts";
import { briefClock } from "../../base/brief_clock.ts";
import { displaySafe } from "../../base/display.ts";
import { TamqError } from "../../base/errors.ts";
import { loadSettings, type Settings } from "../../config.ts";
import type { OperationName, RequestOf, ResponseOf } from "../../protocol/operations.ts";
import type { CliContext } from "../context.ts";
import { late } from "../late.ts";

export interface JsonFlag {
  readonly json?: boolean;
}

/** Performs one operation at the configured service. */
export async function ask<K extends OperationName>(
  context: CliContext,
  op: K,
  request: RequestOf<K>,
  options: { readonly timeoutMs?: number; readonly settings?: Settings } = {},
): Promise<ResponseOf<K>> {
  const { timeoutMs, settings = await loadSettings(context.env) } = options;
  return await call(findSocket(settings), op, request, { timeoutMs, clock: briefClock });
}

/**
 * Settings for looking whether a service lives, and for stopping it: a broken configuration file must
 * not make that impossible. Then the environment and the defaults say where it is.
 */
export async function settingsAtAnyRate(context: CliContext): Promise<Settings> {
  try {
    return await loadSettings(context.env);
  } catch (error) {
    const broken = error instanceof TamqError &&
      (error.reason === "config_invalid" || error.reason === "config_unreadable");
    if (!broken) throw error;
    context.err(`tamq: warning: the configuration is not used: ${displaySafe(error.message)}`);
    return await loadSettings(context.env, { ignoreFile: true });
  }
}

/** The id of the message that `given` names: an id, or the beginning of one. */
export async function messageIdOf(context: CliContext, given: string): Promise<string> {
  const { isBeginning, wholeId } = await late("cli/message_ids");
  if (!isBeginning(given)) return given;
  return await wholeId(given, (filters) => ask(context, "history", filters));
}
