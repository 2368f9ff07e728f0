/** How verbs reach the service. */
import { call, findSocket } from "../../client.ts";
import { briefClock } from "../../base/brief_clock.ts";
import { loadSettings } from "../../config.ts";
import type { OperationName, RequestOf, ResponseOf } from "../../protocol/operations.ts";
import type { CliContext } from "../context.ts";

export interface JsonFlag {
  readonly json?: boolean;
}

/** Performs one operation at the configured service. */
export async function ask<K extends OperationName>(
  context: CliContext,
  op: K,
  request: RequestOf<K>,
): Promise<ResponseOf<K>> {
  const settings = await loadSettings(context.env);
  return await call(findSocket(settings), op, request, { clock: briefClock });
}
