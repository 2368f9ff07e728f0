/** How verbs reach the service. */
import { call, findSocket } from "../../client.ts";
import { briefClock } from "../../base/brief_clock.ts";
import { loadSettings } from "../../config.ts";
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
  options: { readonly timeoutMs?: number } = {},
): Promise<ResponseOf<K>> {
  const settings = await loadSettings(context.env);
  return await call(findSocket(settings), op, request, { ...options, clock: briefClock });
}

/** The id of the message that `given` names: an id, or the beginning of one. */
export async function messageIdOf(context: CliContext, given: string): Promise<string> {
  const { isBeginning, wholeId } = await late("cli/message_ids");
  if (!isBeginning(given)) return given;
  return await wholeId(given, (filters) => ask(context, "history", filters));
}
