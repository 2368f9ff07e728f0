/** Calls to the engine, over the same line protocol as the message service. */
import { TamqError } from "../base/errors.ts";
import { type CallOptions, callRaw } from "../client.ts";
import type { EngineOperation, EngineRequest } from "./operations.ts";

/** Errors as {@link callRaw}; `engine_unavailable` when nobody listens. */
export async function callEngine<K extends EngineOperation>(
  socket: string,
  op: K,
  request: EngineRequest<K>,
  options: CallOptions = {},
): Promise<Record<string, unknown>> {
  try {
    return await callRaw(socket, op, request, options) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof TamqError && error.reason === "service_unavailable") {
      throw new TamqError(
        "UNAVAILABLE",
        "engine_unavailable",
        `no coordination engine listens on ${socket}`,
        { hint: "start it with: tamq coord serve --detach", cause: error },
      );
    }
    throw error;
  }
}
