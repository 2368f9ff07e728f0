/** What the operator may change while the service runs: allow, unblock, pause, release. */
import { rfc3339 } from "../base/clock.ts";
import { TamqError } from "../base/errors.ts";
import type { Pair } from "../model/controls.ts";
import { nearest } from "../model/nearest.ts";
import type { RequestOf, ResponseOf } from "../protocol/operations.ts";
import type { Context } from "./context.ts";
import type { StormGuard } from "./guard.ts";
import { pairText } from "./routing.ts";

/** What was changed, and for whom: for receipt and log. */
type OperatorChange = Readonly<Record<string, string | boolean>>;

export class OperatorControls {
  readonly #ctx: Context;
  readonly #guard: StormGuard | undefined;
  readonly #pump: (repo?: string) => void;

  constructor(ctx: Context, guard: StormGuard | undefined, pump: (repo?: string) => void) {
    this.#ctx = ctx;
    this.#guard = guard;
    this.#pump = pump;
  }

  /** Allows a pair, or takes that back (B-18). Throws `unknown_repository`. */
  async allow(request: RequestOf<"allow">): Promise<ResponseOf<"allow">> {
    const { sender_repo: sender, target_repo: target, both = false, remove = false } = request;
    for (const name of [sender, target]) this.#mustBeRegistered(name);
    const pairs: Pair[] = [{ sender, target }, ...both ? [{ sender: target, target: sender }] : []];
    const { store, clock, steady } = this.#ctx;
    const released = await this.#commit({ op: "allow", sender, target, both, remove }, () => {
      let count = 0;
      for (const pair of pairs) {
        if (remove) store.controls.disallow(pair);
        else {
          store.controls.allow(pair, clock.now());
          count += store.controls.letGo(pair, steady.now());
        }
      }
      return count;
    });
    for (const pair of pairs) this.#pump(pair.target);
    return { pairs: pairs.map(wirePair), released };
  }

  /** Lifts a block of the storm guard (B-14). Throws `not_blocked`. */
  async unblock(request: RequestOf<"unblock">): Promise<ResponseOf<"unblock">> {
    const pair = { sender: request.sender_repo, target: request.target_repo };
    const { store } = this.#ctx;
    const refused = await this.#commit({ op: "unblock", ...pair }, () => {
      const blocked = store.controls.blocked();
      const found = blocked.find((one) => one.sender === pair.sender && one.target === pair.target);
      if (found === undefined) {
        throw new TamqError("NOT_FOUND", "not_blocked", `${pairText(pair)} is not blocked`, {
          hint: blocked.length === 0
            ? "no pair is blocked"
            : `blocked: ${blocked.map(pairText).join(", ")}`,
        });
      }
      store.controls.unblock(pair);
      return found.refused;
    });
    this.#guard?.reset(pair);
    return { ...wirePair(pair), refused };
  }

  /** Nothing is delivered until `resume`, also after a restart of the service. */
  async pause(): Promise<ResponseOf<"pause">> {
    const { store, clock, valve } = this.#ctx;
    const since = await this.#commit({ op: "pause" }, () => {
      store.controls.setPaused(clock.now());
      // In the commit: a claim of the same commit that stands behind it must see it.
      valve.paused = true;
      return store.controls.pausedAt()!;
    }).catch((error) => {
      valve.paused = store.controls.pausedAt() !== undefined;
      throw error;
    });
    return { paused_at: rfc3339(since) };
  }

  async resume(): Promise<ResponseOf<"resume">> {
    const { store, steady, valve } = this.#ctx;
    const resumed = await this.#commit({ op: "resume" }, () => {
      const was = store.controls.pausedAt() !== undefined;
      store.controls.setPaused(undefined);
      if (was) store.controls.restartWaits(steady.now());
      return was;
    });
    valve.paused = false;
    this.#pump();
    return { resumed };
  }

  /** Lets go what windows of `repo` hold back (B-11). Throws `unknown_repository`. */
  async release({ repo }: RequestOf<"release">): Promise<ResponseOf<"release">> {
    this.#mustBeRegistered(repo);
    const { store, steady } = this.#ctx;
    const released = await this.#commit(
      { op: "release", repo },
      () => store.controls.release(repo, steady.now()),
    );
    this.#pump(repo);
    return { released };
  }

  /** For `status`. */
  summary(): ResponseOf<"status">["controls"] {
    const { store, routing } = this.#ctx;
    const { controls } = store;
    const paused = controls.pausedAt();
    const blocked = controls.blocked().map((pair) => ({
      ...wirePair(pair),
      since: rfc3339(pair.since),
      refused: pair.refused,
    }));
    const held = controls.held().map((pair) => ({ ...wirePair(pair), messages: pair.messages }));
    const parts = [
      ...paused === undefined ? [] : ["everything is paused"],
      ...blocked.length === 0 ? [] : [`${count(blocked.length, "pair")} blocked`],
      ...held.length === 0 ? [] : [`${count(held.length, "pair")} held`],
    ];
    return {
      // Somebody has to look at a blocked pair; the others are as the operator wanted them.
      ok: blocked.length === 0,
      detail: parts.length === 0 ? "nothing is held back" : parts.join(", "),
      paused_at: paused === undefined ? null : rfc3339(paused),
      open: routing.open,
      together: routing.together,
      allowed: [...routing.allow, ...controls.allowed()].map(wirePair),
      held,
      blocked,
    };
  }

  #commit<T>(data: OperatorChange, work: () => T): Promise<T> {
    const { commit, store, clock, log } = this.#ctx;
    return commit.run(() => {
      const result = work();
      store.receipts.add("operator", clock.now(), data);
      log.info("operator.changed", data);
      return result;
    });
  }

  #mustBeRegistered(name: string): void {
    const { registry } = this.#ctx;
    if (registry.find(name) !== "unknown") return;
    const like = nearest(name, registry.names()).map((near) => `"${near}"`);
    throw new TamqError(
      "NOT_FOUND",
      "unknown_repository",
      `"${name}" is not a registered repository`,
      {
        hint: like.length > 0 ? `did you mean ${like.join(" or ")}?` : "see the names: gita ls",
      },
    );
  }
}

function wirePair({ sender, target }: Pair) {
  return { sender_repo: sender, target_repo: target };
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}
