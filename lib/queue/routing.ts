/** Who may write to whom (B-18): decided at admission, let go by whoever changes the answer. */
import { isRouted, type Pair } from "../model/controls.ts";
import type { Provenance } from "../model/message.ts";
import type { Place, Window } from "../model/ports.ts";
import type { Context, Origin } from "./context.ts";

/** Where a message comes from and goes to. */
interface Way {
  readonly source: number | null;
  readonly bound: number | null;
  /** From the spool of a broker that is gone. */
  readonly adopted: Origin["adopted"];
}

/** Inside a commit: whether a new message has to wait for the operator. */
export function mustHold(
  ctx: Pick<Context, "store" | "routing" | "attachments">,
  provenance: Provenance,
  pair: Pair,
  way: Way,
): boolean {
  if (!isRouted(provenance, pair) || isAllowed(ctx, pair)) return false;
  const { routing, store } = ctx;
  if (!routing.together) return true;
  const { adopted } = way;
  if (adopted?.place !== undefined && standsBeside(ctx, adopted.place, pair.target)) return false;
  // In which tmux server such a broker ran may not be known.
  const refs = adopted === undefined ? [way.source, way.bound] : "any";
  return !store.controls.wereTogether(pair.sender, pair.target, refs);
}

/** A window that closed before it was ever attached stood beside those of its session all the same. */
function standsBeside(
  { attachments, store }: Pick<Context, "store" | "attachments">,
  place: Place,
  target: string,
): boolean {
  return attachments.byRepo(target).some(({ window }) =>
    window.endpointId === place.endpointId && window.session === place.session &&
    store.endpoints.get(window.endpointRef)?.generation === place.generation
  );
}

/** By the operator's word, wherever the windows are. */
export function isAllowed({ store, routing }: Pick<Context, "store" | "routing">, pair: Pair) {
  return routing.open ||
    routing.allow.some(({ sender, target }) => sender === pair.sender && target === pair.target) ||
    store.controls.isAllowed(pair);
}

/**
 * Inside the commit of an attach: the window stands beside others of its tmux session now, which
 * opens the way between their repositories. Returns the number of messages that were let go.
 */
export function openedBeside(
  ctx: Pick<Context, "store" | "routing" | "attachments" | "clock" | "steady">,
  window: Window,
): number {
  const { store, routing, attachments, clock, steady } = ctx;
  if (!routing.together || window.session === undefined) return 0;
  let count = 0;
  for (const { window: other } of attachments.all()) {
    if (other.endpointRef !== window.endpointRef || other.session !== window.session) continue;
    if (other.repo === window.repo) continue;
    const { endpointRef: ref, repo } = window;
    if (!store.controls.openedTogether(ref, repo, other.repo, clock.now())) continue;
    for (const [sender, target] of [[repo, other.repo], [other.repo, repo]] as const) {
      count += store.controls.letGo({ sender, target }, steady.now(), ref);
    }
  }
  return count;
}

/** Inside the first commit of a service: what a changed configuration allows by now. */
export function letConfiguredGo(ctx: Pick<Context, "store" | "routing" | "steady">): void {
  for (const pair of ctx.store.controls.held()) {
    if (isAllowed(ctx, pair)) ctx.store.controls.letGo(pair, ctx.steady.now());
  }
}

/** `alpha → beta`. */
export function pairText({ sender, target }: Pair): string {
  return `${sender} → ${target}`;
}

/** The two names as words of a command line. */
export function pairWords({ sender, target }: Pair): string {
  return [sender, target].map(shellWord).join(" ");
}

function shellWord(name: string): string {
  return /^[\w%+,./:@][\w%+,./:@-]*$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`;
}
