/**
 * A State Hub that answers as no State Hub should, and one that is away for longer than every
 * time-out. While it does and after it, the same holds as after a kill: one message a lease, none
 * shown twice, no ready task forgotten, no gated one woken – and the engine lives, in bounded memory.
 */
import assert from "node:assert/strict";
import { pause, systemClock } from "../../lib/base/clock.ts";
import { callEngine } from "../../lib/coord/client.ts";
import { CoordProcesses } from "../helpers/coord_processes.ts";
import { type Asked, HubProxy, type Tamper } from "../helpers/hub_proxy.ts";

// deno-lint-ignore no-explicit-any
type Any = any;
const json = (value: unknown) => Response.json(value);
const raw = (text: string) =>
  new Response(text, { headers: { "content-type": "application/json" } });
const isFeed = ({ path }: Asked) => path === "/v1/changes";
const isRecord = ({ path, method }: Asked) => method === "GET" && path.startsWith("/v1/tasks/");
const isEvents = ({ path }: Asked) => path === "/v1/changes/events";

/** What `change` makes of each page of the feed. */
function pages(change: (page: Any) => unknown): Tamper {
  return (asked) => {
    if (!isFeed(asked)) return undefined;
    return (async () => {
      const answer = await asked.forward();
      return answer.status === 200 ? json(change(await answer.json())) : answer;
    })();
  };
}
/** As {@link pages}, for each task in them. */
const tasks = (change: (task: Any) => void) =>
  pages((page) => {
    for (const one of page.changes) if (one.kind === "task") change(one.record);
    return page;
  });

/** Bytes without end, as fast as they are taken. */
function endless(text: string, type = "application/json"): Response {
  const bytes = new TextEncoder().encode(text.repeat(Math.ceil(65536 / text.length)));
  const body = new ReadableStream({ pull: (controller) => controller.enqueue(bytes) });
  return new Response(body, { headers: { "content-type": type } });
}
function events(text: string): Response {
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}

const HOSTILE: Record<string, Tamper> = {
  "huge answers without end": (asked) => isEvents(asked) ? undefined : endless("[1,"),
  "deeply nested answers": () => raw("[".repeat(100_000) + "]".repeat(100_000)),
  "deeply nested records": tasks((task) => {
    task.notes = JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`);
  }),
  "no JSON, and half of an answer": (asked) => isFeed(asked) ? raw(`{"changes":[`) : raw("<html>"),
  "wrong types": tasks((task) => {
    task.needs_human = "false";
    task.revision = "1";
    task.unsatisfied = null;
  }),
  "prototype keys": pages((page) =>
    JSON.parse(`{"__proto__":{"changes":[]},${JSON.stringify(page).slice(1)}`)
  ),
  "status without error": () => new Response("no", { status: 418 }),
  "redirects": () =>
    new Response(null, { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
  "not modified, unasked": () => new Response(null, { status: 304 }),
  "records under other ids": pages((page) => {
    for (const one of page.changes) one.source_id = "gated0";
    return page;
  }),
  "revisions of the past": tasks((task) => {
    task.revision = task.wake.revision = 1;
  }),
  "revisions of the future": tasks((task) => {
    task.revision += 1000;
    task.wake.revision += 1000;
  }),
  "wake revisions ahead of their record": tasks((task) => task.wake.revision += 5),
  "cycles of dependencies": tasks((task) => {
    task.dependencies = task.unsatisfied = [task.task_id];
  }),
  "an unregistered repository": tasks((task) => task.repo = "nowhere"),
  "a repository with a path in its name": tasks((task) => task.repo = "../../etc"),
  "a feed that promises more and stays": pages((page) => ({ ...page, has_more: true })),
  "a feed that forgets every place": (asked) =>
    isFeed(asked) && asked.search.includes("cursor=")
      ? Response.json({
        error: { code: "FAILED_PRECONDITION", reason: "cursor_expired", message: "gone" },
      }, { status: 409 })
      : undefined,
  "every change twice, and backwards": pages((page) => ({
    ...page,
    changes: [...page.changes, ...page.changes].reverse(),
  })),
  "records that cannot be had": (asked) =>
    isRecord(asked)
      ? Response.json({ error: { code: "NOT_FOUND", reason: "unknown_task", message: "no" } }, {
        status: 404,
      })
      : undefined,
  "records of another task": (asked) =>
    isRecord(asked)
      ? asked.forward().then(async (answer) => json({ ...await answer.json(), task_id: "other" }))
      : undefined,
  "events that are none": (asked) =>
    isEvents(asked) ? events('event: change\ndata: {"kind":1}\n\n') : undefined,
  "events without end of line": (asked) =>
    isEvents(asked) ? endless("data: x", "text/event-stream") : undefined,
  "a stream that ends at once": (asked) => isEvents(asked) ? events(": hello\n\n") : undefined,
  "silence": (asked) =>
    isEvents(asked)
      ? undefined
      : new Promise((resolve) => setTimeout(resolve, 1500)).then(() =>
        new Response(null, { status: 500 })
      ),
};

/** Resident memory of a process, MiB. */
function memory(pid: number): number {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]) / 1024;
}

Deno.test(`[K-01][K-02][K-04][K-06] ${Object.keys(HOSTILE).length} kinds of hostile State Hub: the engine lives, and afterwards no task is forgotten, woken twice or past its gate`, async () => {
  let proxy: HubProxy | undefined;
  try {
    await CoordProcesses.run(async (world) => {
      await world.gated(2);
      let most = 0;
      for (const [name, tamper] of Object.entries(HOSTILE)) {
        const began = systemClock.monotonic();
        proxy!.tampered = 0;
        proxy!.tamper = tamper;
        proxy!.cut();
        await world.more();
        await world.gated(1);
        const end = systemClock.monotonic() + 20_000;
        while (proxy!.tampered < 3) {
          assert.ok(systemClock.monotonic() < end, `${name}: ${proxy!.tampered} answers only`);
          await pause(systemClock, 20);
        }
        // It answers its own socket meanwhile.
        await callEngine(world.settings.coordSocket, "status", {});
        most = Math.max(most, memory(world.engine.pid));
        // A lie that fits is found when everything is read again, which is once an hour; a word that
        // does not fit makes it sooner.
        proxy!.tampered = 0;
        proxy!.tamper = (asked) => isFeed(asked) ? raw("no") : undefined;
        while (proxy!.tampered === 0) await pause(systemClock, 20);
        proxy!.tamper = undefined;
        await world.more();
        try {
          await world.audit();
        } catch (error) {
          throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
        }
        const ms = systemClock.monotonic() - began;
        console.log(`    ${name}: over after ${ms.toFixed(0)} ms`);
      }
      assert.ok(most < 400, `${most} MiB`);
      console.log(`    at most ${most.toFixed(0)} MiB resident`);
    }, (dir) => {
      proxy = new HubProxy(`${dir}/run/proxy.sock`, `${dir}/run/tamq-hub.sock`);
      return { hubSocket: proxy.path };
    });
  } finally {
    await proxy?.close();
  }
});

Deno.test("[K-01][K-08][K-15] a State Hub that is away, then silent, each for longer than every time-out: work under way goes on, nobody is newly woken, and everything is taken up when it is back", async () => {
  await CoordProcesses.run(async (world) => {
    await world.gated(2);
    for (let i = 0; i < 4; i++) await world.more();
    // Longer than lease, acknowledgement, back-off and poll together.
    const away = 15_000;
    world.hubProcess.kill();
    await world.hubProcess.ended();
    const wakes = world.shown.size;
    await pause(systemClock, away);
    assert.ok(world.shown.size <= wakes + 1, "one may have been under way");
    await world.startHub();
    await world.settle();
    // There, and answers nothing: also longer than a request's time-out.
    world.hubProcess.kill("SIGSTOP");
    await pause(systemClock, away);
    const { state_hub } = await callEngine(world.settings.coordSocket, "status", {});
    assert.equal((state_hub as { ok: boolean }).ok, false, JSON.stringify(state_hub));
    world.hubProcess.kill("SIGCONT");
    for (let i = 0; i < 4; i++) await world.more();
    await world.settle();
  });
});
