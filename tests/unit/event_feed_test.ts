/** The ring of events: order, cursors, gaps, and what a commit that fails leaves. */
import assert from "node:assert/strict";
import { EventFeed, type Happening } from "../../lib/event_feed.ts";
import type { WatchFrame } from "../../lib/protocol/events.ts";
import type { Channel, Reply } from "../../lib/socket.ts";
import { FakeClock } from "../helpers/clock.ts";

function gate(repo: string, reason: string): Happening {
  const time = Date.parse("2030-01-01T00:00:00.000Z");
  return { type: "gate", change: "closed", time, repo, endpoint_id: "e", reason };
}

/** A reader of its own pace: a frame is taken only when it asks for one. */
class Reader {
  readonly frames: WatchFrame[] = [];
  readonly done: Promise<void>;
  #closed = false;
  #end = Promise.withResolvers<void>();
  #slot = Promise.withResolvers<void>();
  #arrived = Promise.withResolvers<void>();

  constructor(readonly reply: Reply) {
    const closed = () => this.#closed;
    const ended = this.#end.promise;
    this.done = reply.stream!({
      get closed() {
        return closed();
      },
      send: async (frame: unknown) => {
        await this.#slot.promise;
        this.#slot = Promise.withResolvers();
        this.frames.push(frame as WatchFrame);
        this.#arrived.resolve();
      },
      // deno-lint-ignore require-yield
      async *frames() {
        await ended;
      },
      close: () => {
        this.#closed = true;
        this.#end.resolve();
      },
    } as unknown as Channel);
  }

  async next(): Promise<WatchFrame> {
    this.#arrived = Promise.withResolvers();
    const count = this.frames.length;
    this.#slot.resolve();
    await this.#arrived.promise;
    return this.frames[count]!;
  }

  async leave(): Promise<void> {
    this.#end.resolve();
    this.#slot.resolve();
    await this.done;
  }
}

const reasonOf = (frame: WatchFrame) => frame.type === "gate" ? frame.reason : frame.type;

Deno.test("[T-25] events come in order, by cursor without a gap or a repetition, and only those of the repositories asked for", async () => {
  const feed = new EventFeed("s1", new FakeClock());
  feed.add(gate("alpha", "before"));
  const all = new Reader(feed.watch({}));
  const beta = new Reader(feed.watch({ repos: ["beta"] }));
  feed.add(gate("alpha", "1"));
  feed.add(gate("beta", "2"));
  feed.add({ type: "control", change: "pause", time: 0, sender_repo: null, target_repo: null });
  const first = await all.next();
  assert.deepEqual([reasonOf(first), reasonOf(await all.next())], ["1", "2"]);
  assert.deepEqual([reasonOf(await beta.next()), (await beta.next()).type], ["2", "control"]);
  assert.ok("cursor" in first);
  const again = new Reader(feed.watch({ cursor: first.cursor }));
  assert.equal(reasonOf(await again.next()), "2");
  for (const reader of [all, beta, again]) await reader.leave();
});

Deno.test("[T-25] a reader that is too slow meets a gap with the number it missed, and costs a bounded number of events", async () => {
  const feed = new EventFeed("s1", new FakeClock(), 4);
  const slow = new Reader(feed.watch({}));
  for (let i = 0; i < 100; i++) feed.add(gate("alpha", String(i)));
  const gap = await slow.next();
  assert.ok(gap.type === "gap" && gap.change === "overflow" && gap.missed !== null);
  assert.ok(gap.missed >= 92 && gap.missed <= 96, String(gap.missed));
  assert.equal(reasonOf(await slow.next()), String(gap.missed));
  const resumed = new Reader(feed.watch({ cursor: gap.cursor }));
  assert.equal(reasonOf(await resumed.next()), String(gap.missed));
  for (const reader of [slow, resumed]) await reader.leave();
});

Deno.test("[Q-03] what a commit adds is told when the commit is done, never when it failed or its work threw", async () => {
  const feed = new EventFeed("s1", new FakeClock());
  const reader = new Reader(feed.watch({}));
  const commit = Promise.withResolvers<void>();
  const done = feed.inside(async (work) => {
    const result = work();
    await commit.promise;
    return result;
  }, () => feed.add(gate("alpha", "durable")));
  feed.add(gate("alpha", "memory"));
  const broken = feed.inside((work) => {
    work();
    return Promise.reject(new Error("disk full"));
  }, () => feed.add(gate("alpha", "lost")));
  await assert.rejects(broken, /disk full/);
  const threw = feed.inside((work) => new Promise((resolve) => resolve(work())), () => {
    feed.add(gate("alpha", "undone"));
    throw new Error("refused");
  });
  await assert.rejects(threw, /refused/);
  commit.resolve();
  await done;
  feed.close();
  const seen = [await reader.next(), await reader.next(), await reader.next()];
  assert.deepEqual(seen.map(reasonOf), ["memory", "durable", "closing"]);
  await reader.done;
});

Deno.test("[T-25] the cursor of the service before holds when it said its last word; otherwise there is a gap", async () => {
  const before = new EventFeed("s1", new FakeClock());
  before.add(gate("alpha", "1"));
  let words: { service_id?: unknown; events?: unknown } = {};
  await before.inside((work) => Promise.resolve(work()), () => {
    words = before.lastWords();
    before.add({ type: "service", change: "stopping", time: 0, service_id: "s1" });
  });
  assert.deepEqual(words, { service_id: "s1", events: 2 });

  const after = new EventFeed("s2", new FakeClock());
  after.predecessor = { serviceId: "s1", events: 2 };
  after.add(gate("alpha", "3"));
  const first = async (cursor: string) => {
    const reader = new Reader(after.watch({ cursor }));
    const frame = await reader.next();
    await reader.leave();
    return frame;
  };
  assert.equal(reasonOf(await first("s1.2")), "3");
  const missed = async (cursor: string) => {
    const frame = await first(cursor);
    assert.ok(frame.type === "gap" && frame.change === "restarted", JSON.stringify(frame));
    return frame.missed;
  };
  assert.equal(await missed("s1.1"), 1);
  assert.equal(await missed("s0.7"), null);
  for (const wrong of ["", "s2", "s2.x", "s2.2", "S2.1", "s2.-1", "s2.1.2"]) {
    assert.throws(() => after.watch({ cursor: wrong }), { reason: "invalid_cursor" }, wrong);
  }
});
