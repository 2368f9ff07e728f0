/** Parts of a broker's composition that stand by themselves; see `broker.ts`. */
import { errorText } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import { identify } from "./base/proc.ts";
import { endpointId } from "./model/endpoint.ts";
import { nearest } from "./model/nearest.ts";
import type { Place, Registry } from "./model/ports.ts";
import { REFUSAL_TEXTS } from "./pty/notice_texts.ts";
import type { Relay } from "./pty/relay.ts";

/** Undefined when the tmux server is gone already. */
export function placeOf(tmux: {
  readonly server_pid: number;
  readonly session: string;
  readonly session_id?: string;
}): Place | undefined {
  const server = identify(tmux.server_pid);
  if (server === undefined) return undefined;
  return {
    endpointId: endpointId(server.pid),
    generation: server.start,
    session: tmux.session_id ?? tmux.session,
  };
}

/** An error of ours outside the relay loop is logged; it must not end the terminal. */
export function guard(log: Log): () => void {
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    log.error("broker.unexpected", { reason: errorText(event.reason) });
  };
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    log.error("broker.unexpected", { reason: errorText(event.error) });
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  globalThis.addEventListener("error", onError);
  return () => {
    globalThis.removeEventListener("unhandledrejection", onRejection);
    globalThis.removeEventListener("error", onError);
  };
}

/** The registry's names; none, and one notice, while it cannot be read. */
export function knownNames(
  registry: Registry,
  notice: (text: string) => void,
): () => readonly string[] {
  let told = false;
  return () => {
    try {
      const names = registry.names();
      told = false;
      return names;
    } catch (error) {
      if (!told) notice(`no message can be addressed: ${errorText(error)}`);
      told = true;
      return [];
    }
  };
}

export function refusalText(target: string, reason: string, names: readonly string[]): string {
  if (reason !== "unknown_target") {
    return `message to ${target} NOT sent: ${REFUSAL_TEXTS[reason] ?? reason}`;
  }
  const like = nearest(target, names);
  const hint = like.length > 0 ? `; did you mean ${like.join(", ")}?` : "";
  return `message NOT sent: no repository "${target}" is registered${hint}`;
}

/** Runs the relay with the signals that concern a terminal's owner. */
export async function relayUntilExit(relay: Relay): Promise<number> {
  const resize = () => relay.resize();
  const gone = () => relay.hangUp(true);
  const stop = () => relay.hangUp(false);
  const handlers: [Deno.Signal, () => void][] = [
    ["SIGWINCH", resize],
    ["SIGHUP", gone],
    ["SIGTERM", stop],
    ["SIGINT", stop],
  ];
  for (const [signal, handler] of handlers) Deno.addSignalListener(signal, handler);
  try {
    relay.resize(); // it may have changed since the size was read
    return (await relay.run()).code;
  } finally {
    for (const [signal, handler] of handlers) Deno.removeSignalListener(signal, handler);
  }
}
