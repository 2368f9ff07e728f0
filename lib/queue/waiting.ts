/** Why a pending message is not being delivered: worked out when asked, never stored. */
import type { Window } from "../model/ports.ts";
import type { MessageRecord } from "../model/records.ts";
import type { Context } from "./context.ts";

/** A window opened with `--mode hold` takes only what was released (B-11). */
export function heldBack(
  ctx: Pick<Context, "store">,
  window: Pick<Window, "mode" | "repo">,
  message: Pick<MessageRecord, "seq">,
): boolean {
  return window.mode === "hold" && message.seq > ctx.store.controls.releasedThrough(window.repo);
}

/**
 * `paused`, `held: …`, `backoff`, `not_attached`, `ambiguous_endpoint`, `gate: <reason>`, `broker_silent`, `queued`; null
 * when it does not wait. Computed from memory: storing it would cost a write to the disk for every
 * gate that opens or closes.
 */
export function waitingReason(ctx: Context, message: MessageRecord): string | null {
  if (message.state !== "pending" || message.leaseToken !== null) return null;
  if (message.held === 1) return "held: not allowed";
  if (ctx.valve.paused) return "paused";
  const now = ctx.steady.now();
  if (message.nextAttemptAt !== null && message.nextAttemptAt > now) return "backoff";
  const live = ctx.attachments.byRepo(message.targetRepo);
  const at = (ref: number | null) => live.find((attached) => attached.window.endpointRef === ref);
  const bound = message.endpointRef !== null;
  if (live.length === 0 || (bound && at(message.endpointRef) === undefined)) return "not_attached";
  const attached = bound
    ? at(message.endpointRef)
    : live.length === 1
    ? live[0]
    : at(message.lastRef) ?? at(message.sourceRef);
  if (attached === undefined) return "ambiguous_endpoint";
  if (heldBack(ctx, attached.window, message)) return "held: the window takes what is released";
  if (attached.silent) return "broker_silent";
  if (!attached.gate.open) return `gate: ${attached.gate.reason ?? "not open yet"}`;
  const until = ctx.store.endpoints.backoffUntil(attached.window.endpointRef, message.targetRepo);
  if (until !== undefined && until > now) return "backoff";
  return "queued";
}
