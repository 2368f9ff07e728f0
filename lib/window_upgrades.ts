/** Has attached brokers become a newer program, a few at a time, and tells what became of each (B-17). */
import type { Clock } from "./base/clock.ts";
import type { Processes, Window } from "./model/ports.ts";
import type { RequestOf, ResponseOf } from "./protocol/operations.ts";
import type { ServiceFrame } from "./protocol/schema.ts";

/** An attached window, and the way to its broker. */
export interface LiveWindow {
  readonly window: Window;
  /** Undefined: a broker older than upgrades. */
  readonly program: { readonly version: string; readonly upgrades: number } | undefined;
  readonly send: (frame: ServiceFrame) => unknown;
}

type Result = ResponseOf<"upgrade">["windows"][number];
type End = Pick<Result, "outcome" | "to" | "reason">;

/** Each tries the program first, which costs a processor some tenths of a second. */
const AT_ONCE = 4;
/** Beyond the time in which a broker waits: for trying, for starting, for attaching again. */
const SPARE_MS = 25_000;
/** Whether a broker that was asked still lives is looked at this often, milliseconds. */
const LOOK_MS = 500;

const keyOf = ({ broker }: Window) => `${broker.pid} ${broker.start}`;

export class WindowUpgrades {
  readonly #o: { readonly clock: Clock; readonly processes: Pick<Processes, "identify"> };
  readonly #live = new Map<string, LiveWindow>();
  /** Brokers that were asked; the process stays the same when it becomes another program. */
  readonly #asked = new Map<string, { readonly upgrades: number; end: (end: End) => void }>();

  constructor(options: { clock: Clock; processes: Pick<Processes, "identify"> }) {
    this.#o = options;
  }

  attached(live: LiveWindow): void {
    const key = keyOf(live.window);
    this.#live.set(key, live);
    const asked = this.#asked.get(key);
    if (asked === undefined || (live.program?.upgrades ?? 0) <= asked.upgrades) return;
    asked.end({ outcome: "upgraded", to: live.program!.version, reason: null });
  }

  detached(live: LiveWindow): void {
    const key = keyOf(live.window);
    if (this.#live.get(key) === live) this.#live.delete(key);
    if (this.#gone(live.window)) this.#asked.get(key)?.end(GONE);
  }

  refused(window: Window, reason: string): void {
    this.#asked.get(keyOf(window))?.end({ outcome: "unchanged", to: null, reason });
  }

  /** Answers when the last of them is done, in bounded time. */
  async run(fields: RequestOf<"upgrade">): Promise<ResponseOf<"upgrade">> {
    const wanted = [...this.#live.values()]
      .filter(({ window }) => fields.repos?.includes(window.repo) ?? true)
      .sort((a, b) => a.window.repo < b.window.repo ? -1 : 1);
    const windows: Result[] = [];
    const queue = wanted.entries();
    const work = async () => {
      for (const [i, live] of queue) windows[i] = await this.#one(live, fields);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return { windows };
  }

  async #one(live: LiveWindow, fields: RequestOf<"upgrade">): Promise<Result> {
    const { window, program } = live;
    const from = program?.version ?? null;
    const end = fields.dry_run
      ? { outcome: "planned" as const, to: null, reason: null }
      : await this.#ask(live, fields);
    return {
      repo: window.repo,
      endpoint_id: window.endpointId,
      window_id: window.windowId,
      broker_pid: window.broker.pid,
      from,
      ...end,
      to: end.to ?? (end.outcome === "unchanged" ? from : null),
    };
  }

  async #ask(live: LiveWindow, { program, wait_ms }: RequestOf<"upgrade">): Promise<End> {
    const { window } = live;
    const key = keyOf(window);
    const unchanged = (reason: string): End => ({ outcome: "unchanged", to: null, reason });
    if (live.program === undefined) {
      return unchanged("it was opened by a version that cannot: end its command, start it again");
    }
    if (this.#asked.has(key)) return unchanged("an upgrade is under way");
    const { promise, resolve } = Promise.withResolvers<End>();
    const { clock } = this.#o;
    const cancel = clock.after(wait_ms + SPARE_MS, () => {
      resolve(unchanged("its broker gave no answer"));
    });
    // One that ends before it attaches again ends without a word.
    let cancelLook = () => {};
    const look = () => {
      if (this.#gone(window)) resolve(GONE);
      else cancelLook = clock.after(LOOK_MS, look);
    };
    cancelLook = clock.after(LOOK_MS, look);
    this.#asked.set(key, { upgrades: live.program.upgrades, end: resolve });
    try {
      live.send({ type: "upgrade", program, wait_ms });
      return await promise;
    } finally {
      cancel();
      cancelLook();
      this.#asked.delete(key);
    }
  }

  #gone({ broker }: Window): boolean {
    return this.#o.processes.identify(broker.pid)?.start !== broker.start;
  }
}

const GONE: End = { outcome: "gone", to: null, reason: null };
