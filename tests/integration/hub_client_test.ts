/** The client against a State Hub that is slow, broken or hostile, and its subscription. */
import assert from "node:assert/strict";
import { type FeedEvent, StateHubClient } from "../../lib/coord/statehub_client.ts";
import type { HubClientOptions } from "../../lib/coord/statehub_client.ts";
import { withHub } from "../helpers/hub.ts";
import { withTempDir } from "../helpers/temp.ts";

type Answer = (request: Request, count: number) => Response | Promise<Response>;

/** A State Hub that answers whatever the test says. */
async function withFake(
  answer: Answer,
  body: (client: StateHubClient, requests: string[]) => Promise<void>,
  options: Partial<HubClientOptions> = {},
): Promise<void> {
  await withTempDir(async (dir) => {
    const path = `${dir}/fake.sock`;
    const requests: string[] = [];
    const server = Deno.serve({ path, onListen() {} }, async (request) => {
      requests.push(request.url);
      await request.body?.cancel();
      return await answer(request, requests.length);
    });
    const client = new StateHubClient({
      address: { unix: path },
      backoffMs: [1, 1],
      timeoutMs: 2000,
      ...options,
    });
    try {
      await body(client, requests);
    } finally {
      client.close();
      await server.shutdown();
    }
  });
}

const time = "2030-01-01T00:00:00.000Z";
const task = (revision: number, more: Record<string, unknown> = {}) => ({
  task_id: "t",
  workplan: null,
  title: "T",
  description: "",
  repo: "alpha",
  agent: null,
  status: "ready",
  block: null,
  dependencies: [],
  unsatisfied: [],
  labels: [],
  priority: 5,
  notes: [],
  completed_at: null,
  needs_human: false,
  required_actions: [],
  revision,
  wake: { revision, reason: "task_actionable" },
  created_at: time,
  updated_at: time,
  ...more,
});
const change = (revision: number, more = {}) => ({
  cursor: `c${revision}`,
  kind: "task",
  source_id: "t",
  changed_at: time,
  record: task(revision, more),
});
const page = (...changes: unknown[]) =>
  Response.json({ changes, next_cursor: "next", has_more: false });
const params = { task_id: "t" };

const HOSTILE: readonly (readonly [what: string, answer: () => Response, reason: string])[] = [
  ["no JSON", () => new Response("<html>"), "answer_invalid"],
  ["an empty body", () => new Response(""), "answer_invalid"],
  ["no UTF-8", () => new Response(new Uint8Array([0x22, 0xff, 0x22])), "answer_invalid"],
  ["a list", () => Response.json([]), "answer_invalid"],
  ["wrong types", () => Response.json(task(1, { revision: "1" })), "answer_invalid"],
  ["a revision of zero", () => Response.json(task(0)), "answer_invalid"],
  ["a revision beyond numbers", () => Response.json(task(1e300)), "answer_invalid"],
  ["an unknown status", () => Response.json(task(1, { status: "CANARY" })), "answer_invalid"],
  ["control characters", () => Response.json(task(1, { title: "\u001b[2J" })), "answer_invalid"],
  ["a name of two lines", () => Response.json(task(1, { repo: "a\nb" })), "answer_invalid"],
  ["deep nesting", () => new Response(`{"a":${"[".repeat(100_000)}`), "answer_invalid"],
  ["much too much", () => new Response("x".repeat(9 << 20)), "answer_too_large"],
  [
    "a redirect",
    () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
    "answer_invalid",
  ],
  ["an unasked 304", () => new Response(null, { status: 304 }), "answer_invalid"],
  ["an error that is none", () => new Response("CANARY", { status: 500 }), "answer_invalid"],
  [
    "an error of unknown code",
    () => Response.json({ error: { code: "CANARY", reason: "x", message: "" } }, { status: 400 }),
    "answer_invalid",
  ],
];
for (const [what, answer, reason] of HOSTILE) {
  Deno.test(`[K-01] a hub that answers ${what}: a typed error, tried once, quoting nothing`, async () => {
    await withFake(answer, async (client, requests) => {
      await assert.rejects(
        client.call("getTask", { params }),
        (error: { reason: string; message: string }) => {
          assert.equal(error.reason, reason);
          assert.ok(!error.message.includes("CANARY"));
          return true;
        },
      );
      assert.equal(requests.length, 1);
    });
  });
}

Deno.test("[K-01] an endless answer is cut at the limit", async () => {
  const endless = () =>
    new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(65536)) }));
  await withFake(endless, async (client) => {
    await assert.rejects(client.call("hub", {}), { reason: "answer_too_large" });
  }, { maxAnswerBytes: 1 << 20 });
});

Deno.test("[K-01] a hub that never answers, or stops in the middle, is given up in time", async () => {
  await withTempDir(async (dir) => {
    // Not Deno.serve: its shutdown would wait for the answer that never comes.
    const path = `${dir}/silent.sock`;
    const listener = Deno.listen({ transport: "unix", path });
    const conns: Deno.Conn[] = [];
    const accepting = (async () => {
      for await (const conn of listener) conns.push(conn);
    })().catch(() => {});
    using client = new StateHubClient({ address: { unix: path }, timeoutMs: 50, backoffMs: [1] });
    await assert.rejects(client.call("hub", {}), {
      code: "DEADLINE_EXCEEDED",
      reason: "no_answer",
    });
    assert.ok(conns.length >= 1);
    for (const conn of conns) conn.close();
    listener.close();
    await accepting;
  });
});

Deno.test("[K-01] repeats are bounded, carry the same key, and end when the hub is back", async () => {
  const keys: unknown[] = [];
  await withTempDir(async (dir) => {
    const path = `${dir}/fake.sock`;
    const server = Deno.serve({ path, onListen() {} }, async (request) => {
      keys.push((await request.json()).idempotency_key);
      if (keys.length < 3) {
        const error = { code: "UNAVAILABLE", reason: "shutting_down", message: "m" };
        return Response.json({ error }, { status: 503 });
      }
      return Response.json(task(1), { status: 201 });
    });
    using client = new StateHubClient({ address: { unix: path }, backoffMs: [1, 1, 1] });
    await client.call("createTask", { body: { title: "T", repo: "alpha" } });
    await server.shutdown();
  });
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
  assert.match(String(keys[0]), /^[a-z0-9]{26}$/);

  const error = { code: "UNAVAILABLE", reason: "internal_error", message: "m" };
  await withFake(() => Response.json({ error }, { status: 503 }), async (client, requests) => {
    await assert.rejects(client.call("hub", {}), { reason: "internal_error" });
    assert.equal(requests.length, 3);
  });
  using client = new StateHubClient({ address: { unix: "/nonexistent/hub.sock" }, backoffMs: [1] });
  await assert.rejects(client.call("hub", {}), { code: "UNAVAILABLE", reason: "hub_unavailable" });
});

Deno.test("[K-01] a revision that goes backwards, a feed that never moves on: typed errors", async () => {
  let revision = 7;
  await withFake(() => page(change(revision)), async (client) => {
    await client.changes(undefined);
    await client.changes(undefined); // the same again is no harm
    revision = 6;
    await assert.rejects(client.changes(undefined), { reason: "revision_regressed" });
    client.revisions.reset();
    await client.changes(undefined);
  });
  const ahead = { wake: { revision: 9, reason: "task_actionable" } };
  await withFake(() => page(change(7, ahead)), async (client) => {
    await assert.rejects(client.changes(undefined), { reason: "answer_invalid" });
  });
  const stuck = () => Response.json({ changes: [], next_cursor: "same", has_more: true });
  await withFake(stuck, async (client) => {
    await assert.rejects(client.changes("same"), { reason: "answer_invalid" });
  });
});

Deno.test("[K-01][K-19] an unchanged record or feed is told by its ETag", async () => {
  await withHub(async ({ client }) => {
    await client.call("createTask", { body: { task_id: "t", title: "T", repo: "alpha" } });
    const first = await client.call("getTask", { params });
    assert.equal(first.etag, '"1"');
    assert.equal(await client.callIfChanged("getTask", { params }, first.etag!), undefined);
    await client.call("editTask", { params, ifMatch: 1, body: { title: "new" } });
    const next = await client.callIfChanged("getTask", { params }, first.etag!);
    assert.equal(next?.value.title, "new");
    const { next_cursor } = await client.changes(undefined);
    assert.deepEqual((await client.changes(next_cursor)).changes, []);
  });
});

async function take(feed: AsyncGenerator<FeedEvent>, count: number): Promise<string[]> {
  const told: string[] = [];
  while (told.length < count) {
    const { value, done } = await feed.next();
    if (done) break;
    told.push(value.type === "change" ? `${value.change.source_id}` : value.type);
  }
  return told;
}

Deno.test("[K-01][K-19] a subscription tells what is there, then what happens, over socket and TCP", async () => {
  await withHub(async ({ client, tcpClient }) => {
    const add = (id: string) =>
      client.call("createTask", { body: { task_id: id, title: "T", repo: "alpha" } });
    await add("one");
    for (const via of [client, tcpClient()]) {
      const stop = new AbortController();
      const feed = via.subscribe(undefined, { kinds: ["task"], signal: stop.signal });
      assert.deepEqual((await take(feed, 2))[0], "connected");
      const id = via === client ? "two" : "three";
      const next = take(feed, via === client ? 1 : 2);
      await add(id);
      assert.equal((await next).at(-1), id);
      stop.abort();
      assert.equal((await feed.next()).done, true);
    }
  }, { tcp: true });
});

Deno.test("[K-01] a lost subscription resumes after the last change seen: nothing lost, nothing twice", async () => {
  const seen: (string | null)[] = [];
  const events = (...list: unknown[]) =>
    new Response(
      list.map((item) => `id: x\nevent: change\ndata: ${JSON.stringify(item)}\n\n`).join(""),
      { headers: { "content-type": "text/event-stream" } },
    );
  await withFake((request, count) => {
    seen.push(request.headers.get("last-event-id"));
    return count === 1 ? events(change(1), change(2)) : events(change(3));
  }, async (client) => {
    const stop = new AbortController();
    const feed = client.subscribe(undefined, { signal: stop.signal });
    assert.deepEqual(await take(feed, 6), ["connected", "t", "t", "lost", "connected", "t"]);
    stop.abort();
    await feed.return(undefined);
    assert.deepEqual(seen.slice(0, 2), [null, "c2"]);
  });
});

Deno.test("[K-01] a subscription ends with a typed error for what opening again cannot cure", async () => {
  await withHub(async ({ client }) => {
    const signal = new AbortController().signal;
    await assert.rejects(client.subscribe("rubbish", { signal }).next(), {
      reason: "cursor_invalid",
    });
  });
  const broken = () =>
    new Response(`data: {"a":1}\nevent: change\n\n`, {
      headers: { "content-type": "text/event-stream" },
    });
  const endless = () =>
    new Response(
      new ReadableStream({
        pull: (c) => c.enqueue(new TextEncoder().encode("data: " + "x".repeat(1 << 20) + "\n")),
      }),
      { headers: { "content-type": "text/event-stream" } },
    );
  for (
    const [answer, reason] of [[broken, "answer_invalid"], [endless, "answer_too_large"]] as const
  ) {
    await withFake(answer, async (client) => {
      const feed = client.subscribe(undefined, { signal: new AbortController().signal });
      await feed.next();
      await assert.rejects(feed.next(), { reason });
    });
  }
});

Deno.test("[K-19] streams are bounded in number and freed when their reader goes", async () => {
  await withHub(async ({ client }) => {
    const stops = [new AbortController(), new AbortController()];
    const feeds = stops.map((stop) => client.subscribe(undefined, { signal: stop.signal }));
    for (const feed of feeds) await feed.next();
    const third = client.subscribe(undefined, { signal: new AbortController().signal });
    const refused = (await third.next()).value;
    assert.equal(refused?.type === "lost" && refused.error.reason, "too_many_streams");
    await third.return(undefined);
    stops[0]!.abort();
    await feeds[0]!.next();
    // The hub sees the end a moment later: opening again is what the subscription does by itself.
    const again = new AbortController();
    const fourth = client.subscribe(undefined, { signal: again.signal });
    for (let event = await fourth.next();; event = await fourth.next()) {
      if (event.value?.type === "connected") break;
    }
    for (const stop of [again, stops[1]!]) stop.abort();
    await fourth.return(undefined);
    await feeds[1]!.return(undefined);
  }, { limits: { streams: 2 } });
});

Deno.test("[K-01] time-outs and ends reach an answer under way, also after a garbage collection", async () => {
  // The runtime forgets the signal of a fetch whose response object has been collected.
  const script = `
    import { StateHubClient } from "${new URL(
    "../../lib/coord/statehub_client.ts",
    import.meta.url,
  )}";
    const collect = async () => {
      for (let i = 0; i < 5; i++) { gc(); await new Promise((resolve) => setTimeout(resolve, 5)); }
    };
    const path = Deno.args[0];
    const half = (type, text) => new Response(
      new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode(text)) }),
      { headers: { "content-type": type } },
    );
    Deno.serve({ path, onListen() {} }, (request) =>
      request.url.endsWith("/events")
        ? half("text/event-stream", ": hello\\n\\n")
        : half("application/json", "{"));
    const client = new StateHubClient({ address: { unix: path }, timeoutMs: 300, backoffMs: [] });
    const stop = new AbortController();
    const feed = client.subscribe(undefined, { signal: stop.signal });
    await feed.next();
    const next = feed.next();
    await collect();
    stop.abort();
    console.log((await next).done);
    const call = client.call("hub", {}).catch((error) => error.reason);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await collect();
    console.log(await call);
    Deno.exit(0);`;
  await withTempDir(async (dir) => {
    const root = new URL("../../", import.meta.url).pathname;
    await Deno.writeTextFile(`${dir}/script.ts`, script);
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--no-check", "--quiet", "--frozen", "--config", `${root}deno.json`],
        ...["--v8-flags=--expose-gc", `${dir}/script.ts`, `${dir}/fake.sock`],
      ],
      signal: AbortSignal.timeout(20_000),
    }).output();
    assert.equal(new TextDecoder().decode(stdout), "true\nno_answer\n");
  });
});
