import assert from "node:assert/strict";
import { Attachments } from "../../lib/attachments.ts";
import type { TamqError } from "../../lib/base/errors.ts";
import { silentLog } from "../../lib/base/log.ts";
import { EventFeed } from "../../lib/event_feed.ts";
import { createHandlers, HISTORY_PAGE_BYTES, historyPage } from "../../lib/handlers.ts";
import type { Peer, Processes } from "../../lib/model/ports.ts";
import type { WireMessage } from "../../lib/protocol/schema.ts";
import type { Origin, Queue } from "../../lib/queue.ts";
import { serviceStatus } from "../../lib/status.ts";
import { WindowStreams } from "../../lib/window_streams.ts";
import { FakeClock } from "../helpers/clock.ts";
import { FakeRegistry } from "../helpers/fake_registry.ts";

// An invented machine: tmux server 100, broker 200, its worker 300, a command of the worker 400;
// a shell elsewhere 500; inside the window a program 410 that plays broker, with a child 420.
const PARENTS: Record<number, number> = {
  100: 1,
  200: 100,
  300: 200,
  400: 300,
  410: 300,
  420: 410,
  500: 1,
  600: 100,
};
const processes: Processes = {
  identify: (pid) => pid in PARENTS ? { pid, start: `s${pid}` } : undefined,
  ancestry(pid) {
    const chain: number[] = [];
    for (let next = pid; next > 1; next = PARENTS[next]!) {
      if (!(next in PARENTS)) break;
      chain.push(next);
    }
    return chain;
  },
};

const peer = (pid: number): Peer => ({ pid, uid: 1000, gid: 1000 });

function build() {
  const clock = new FakeClock();
  const attachments = new Attachments(processes);
  const calls: { op: string; args: unknown[] }[] = [];
  const record = (op: string, answer: unknown) => (...args: unknown[]) => {
    calls.push({ op, args });
    return Promise.resolve(answer);
  };
  const queue = {
    registerEndpoint: record("registerEndpoint", 7),
    attach: (...args: Parameters<Queue["attach"]>) => {
      calls.push({ op: "attach", args });
      return Promise.resolve(attachments.add(args[0], args[1]));
    },
    send: record("send", { message_id: "m", deduplicated: false, state: "pending" }),
    retry: record("retry", { message: {} }),
    cancel: record("cancel", { message: {} }),
    ack: record("ack", { message: {} }),
    message: (id: string) => ({
      message: id === "from-alpha"
        ? { sender_repo: "alpha", target_repo: "beta" }
        : { sender_repo: "local", target_repo: id === "to-alpha" ? "alpha" : "beta" },
      attempts: [],
    }),
    purge: record("purge", {}),
    summary: () => ({ states: { pending: 2, failed: 3 }, cancelled: 2, activeLeases: 1 }),
  } as unknown as Queue;
  const identity = { serviceId: "svc", version: "1.2.3", pid: 42, startedAt: clock.now() };
  const registry = new FakeRegistry({
    alpha: "/repos/alpha",
    beta: "/repos/beta",
    twin: "ambiguous",
  });
  const windows = new WindowStreams({
    queue,
    attachments,
    registry,
    processes,
    isBroker: (pid) => pid === 200,
    clock,
    log: silentLog,
    serviceId: "svc",
    ackMode: () => "injected",
  });
  const status = () =>
    serviceStatus({
      identity,
      socket: "/run/tamq.sock",
      connections: () => 3,
      database: "/state/tamq.sqlite3",
      schemaVersion: () => 1,
      registry,
      queue,
      endpoints: () => windows.endpoints(),
    });
  const handle = createHandlers({
    identity,
    queue,
    attachments,
    processes,
    windows,
    events: new EventFeed("svc", clock),
    isBroker: (pid) => pid === 200,
    status,
  });
  const ask = async (fields: Record<string, unknown>, pid = 500, protocol = "0.1") => {
    const reply = await handle({ protocol, ...fields }, peer(pid));
    return reply;
  };
  return { ask, calls, attachments, windows };
}

const attach = {
  op: "attach",
  capabilities: ["idempotent_send_v1", "from_the_future_v9"],
  repos: ["alpha"],
  path: "/repos/alpha",
  command: ["cat"],
  mode: "trigger",
  tmux: { server_pid: 100, session: "work", window_id: "@1", pane_id: "%1" },
  instance: "i1",
  worker_pid: 300,
};

const send = {
  op: "send",
  client_id: "c",
  idempotency_key: "k",
  sender_repo: "local",
  target_repo: "beta",
  provenance: "cli",
  body: "text",
};

/** Rejects with that reason, and the text and hint are there for a person. */
async function refused(work: () => Promise<unknown>, reason: string, text: RegExp) {
  await assert.rejects(work, (error: TamqError) => {
    assert.equal(error.reason, reason);
    assert.match(`${error.message} ${error.hint ?? ""}`, text);
    return true;
  });
}

Deno.test("[B-03, B-04] compose is for what the window's own tmux server started outside of its windows", async () => {
  const { ask, calls } = build();
  await ask(attach, 200);
  const compose = {
    op: "compose",
    idempotency_key: "k",
    tmux: { server_pid: 100, window_id: "@1" },
    target_repo: "beta",
    body: "text",
  };
  const { result } = await ask(compose, 600);
  assert.equal((result as { sender_repo: string }).sender_repo, "alpha");
  const [request, origin] = calls.find(({ op }) => op === "send")!.args as [
    Record<string, unknown>,
    Origin,
  ];
  assert.deepEqual([request.sender_repo, request.provenance], ["alpha", "operator"]);
  assert.equal(origin.owner?.attached.window.repo, "alpha");
  // The worker, a command of it, one that plays broker and its child: all in the window.
  for (const pid of [300, 400, 410, 420]) {
    await refused(() => ask(compose, pid), "worker_refused", /window of alpha/);
  }
  await refused(() => ask(compose, 500), "sender_mismatch", /did not start the process/);
  const elsewhere = { ...compose, tmux: { server_pid: 100, window_id: "@2" } };
  await refused(() => ask(elsewhere, 600), "window_unknown", /tamq endpoints/);
  const other = { ...compose, tmux: { server_pid: 500, window_id: "@1" } };
  await refused(() => ask(other, 600), "window_unknown", /tamq endpoints/);
  await refused(
    () => ask({ ...compose, sender_repo: "beta" }, 600),
    "unknown_field",
    /sender_repo/,
  );
});

Deno.test("[T-04] ping tells protocol, version, capabilities and who the service is", async () => {
  const { ask } = build();
  const { result } = await ask({ op: "ping" });
  assert.deepEqual(result, {
    protocol: "0.1",
    version: "1.2.3",
    capabilities: ["bounded_delivery_ack_v1", "idempotent_send_v1"],
    service_id: "svc",
    pid: 42,
    started_at: "2030-01-01T00:00:00.000Z",
  });
});

Deno.test("[T-04] [V-04] another major version is refused, a newer minor one served", async () => {
  const { ask } = build();
  await refused(() => ask({ op: "ping" }, 500, "1.0"), "protocol_mismatch", /1\.0.*0\.1/);
  await refused(() => ask({ op: "ping" }, 500, "x"), "protocol_invalid", /0\.1/);
  assert.ok((await ask({ op: "ping", novelty: 1 }, 500, "0.9")).result);
});

Deno.test("[T-06] an unknown field is named and refused, unless the client is newer", async () => {
  const { ask, calls } = build();
  await refused(() => ask({ ...send, prioritty: 1 }), "unknown_field", /"prioritty"/);
  await refused(() => ask({ ...send, metadata: {}, x: { y: 1 } }), "unknown_field", /"x"/);
  const nested = { ...attach, tmux: { ...attach.tmux, colour: 1 } };
  await refused(() => ask(nested, 200), "unknown_field", /"tmux.colour"/);
  assert.equal(calls.length, 0);
  await ask({ ...send, prioritty: 1 }, 500, "0.2");
  await ask({ ...nested, also: 2 }, 200, "0.2");
  assert.deepEqual(calls.map((call) => call.op), ["send", "registerEndpoint", "attach"]);
});

Deno.test("[T-06] each required field of send is demanded by name; wrong types are named", async () => {
  const { ask, calls } = build();
  for (const name of Object.keys(send).filter((name) => name !== "op")) {
    const { [name]: _, ...rest } = send as Record<string, unknown>;
    await refused(() => ask(rest), "field_missing", new RegExp(`"${name}"`));
    await refused(() => ask({ ...send, [name]: 5 }), "field_invalid", new RegExp(`"${name}"`));
  }
  await refused(() => ask({ ...send, provenance: "root" }), "field_invalid", /"provenance"/);
  assert.equal(calls.length, 0);
});

Deno.test("[T-22] an unknown operation is named, with the likely one", async () => {
  const { ask } = build();
  await refused(() => ask({ op: "sned" }), "unknown_op", /"sned".*"send"/);
  await refused(() => ask({ op: "__proto__" }), "unknown_op", /__proto__/);
  await refused(() => ask({}), "unknown_op", /missing.*ping/);
});

Deno.test("[T-22] a field's value is never quoted in an error", async () => {
  const { ask } = build();
  await assert.rejects(
    () => ask({ ...send, metadata: "SECRET-1", body: 4 }),
    (error: TamqError) => {
      assert.ok(!`${error.message}${error.hint}`.includes("SECRET-1"));
      return true;
    },
  );
});

Deno.test("[E-03] attach keeps what was negotiated and proves broker and worker", async () => {
  const { ask, calls, windows } = build();
  const { result } = await ask(attach, 200, "0.3");
  assert.deepEqual(result, {
    endpoint_id: "tmux-amq-100",
    service_id: "svc",
    protocol: "0.1",
    capabilities: ["idempotent_send_v1"],
    ack_mode: "injected",
  });
  assert.deepEqual(calls[0]!.args[0], {
    endpointId: "tmux-amq-100",
    generation: "s100",
    session: "work",
    protocol: "0.1",
    capabilities: ["idempotent_send_v1"],
  });
  const [endpoint] = windows.endpoints();
  assert.equal(endpoint!.tmux_session, "work");
  assert.deepEqual(endpoint!.capabilities, ["idempotent_send_v1"]);
  assert.deepEqual(endpoint!.repos, ["alpha"]);
  assert.deepEqual(endpoint!.attachments[0]!.command, ["cat"]);
  assert.equal(endpoint!.attachments[0]!.broker_pid, 200);
});

Deno.test("[E-03] an older minor version is kept as it is; another major is refused", async () => {
  const { ask, calls } = build();
  assert.equal(
    ((await ask(attach, 200, "0.0")).result as { protocol: string }).protocol,
    "0.0",
  );
  calls.length = 0;
  await refused(() => ask(attach, 200, "1.0"), "protocol_mismatch", /restart|executable/);
  assert.equal(calls.length, 0);
});

Deno.test("[E-04] attach takes the exact slug and the registered path only", async () => {
  const { ask, calls } = build();
  const refuse = (fields: object, reason: string, text: RegExp) =>
    refused(() => ask({ ...attach, ...fields }, 200), reason, text);
  await refuse({ repos: ["alhpa"] }, "unknown_repository", /alhpa.*alpha/);
  await refuse({ repos: ["*"] }, "unknown_repository", /\*/);
  await refuse({ repos: ["twin"] }, "ambiguous_repository", /twin/);
  await refuse({ path: "/repos/beta" }, "path_mismatch", /\/repos\/alpha.*\/repos\/beta/);
  await refuse({ repos: ["local"] }, "reserved_name", /local/);
  await refuse({ repos: [] }, "field_invalid", /repos/);
  await refuse({ repos: ["alpha", "beta"] }, "field_invalid", /repos/);
  assert.equal(calls.length, 0);
});

Deno.test("[E-01] [E-03] a dead tmux server, a foreign worker and a stranger cannot attach", async () => {
  const { ask, calls } = build();
  const tmux = { ...attach.tmux, server_pid: 999 };
  await refused(() => ask({ ...attach, tmux }, 200), "endpoint_dead", /999/);
  await refused(() => ask(attach, 500), "peer_mismatch", /300.*500/);
  await refused(() => ask({ ...attach, worker_pid: 400 }, 200), "peer_mismatch", /400/);
  await refused(() => ask({ ...attach, worker_pid: 999 }, 200), "peer_mismatch", /999/);
  assert.equal(calls.length, 0);
});

Deno.test("[B-04] the origin of a send is the window of the peer's ancestry, never what it says", async () => {
  const { ask, calls } = build();
  await ask(attach, 200);
  const originOf = async (pid: number) => {
    calls.length = 0;
    await ask(send, pid);
    return (calls[0]!.args[1] as Origin).owner;
  };
  const fromWorker = await originOf(400);
  assert.equal(fromWorker!.attached.window.repo, "alpha");
  assert.equal(fromWorker!.isBroker, false);
  assert.equal((await originOf(200))!.isBroker, true);
  assert.equal(await originOf(500), undefined);
});

Deno.test("[B-04] [T-02] a peer that cannot be traced is nobody: gone before its request, or of another namespace", async () => {
  const { ask, calls } = build();
  await ask(attach, 200);
  calls.length = 0;
  // It connected from inside the window, sent, and ended before the service looked.
  for (const pid of [0, 999]) {
    for (
      const request of [send, { op: "retry", message_id: "m" }, { op: "ack", message_id: "m" }]
    ) {
      await refused(() => ask(request, pid), "peer_unknown", /traced/);
    }
  }
  assert.equal(calls.length, 0);
});

Deno.test("[E-04] [B-04] a program inside a window cannot attach as another window", async () => {
  const { ask, calls } = build();
  const forged = { ...attach, repos: ["beta"], path: "/repos/beta", worker_pid: 420 };
  await refused(() => ask(forged, 410), "peer_mismatch", /inside another window/);
  await ask(attach, 200);
  await refused(() => ask(forged, 410), "peer_mismatch", /inside another window/);
  // Nor a program elsewhere that names a tmux server which did not start it.
  const tmux = { ...attach.tmux, server_pid: 500 };
  await refused(() => ask({ ...attach, tmux }, 200), "peer_mismatch", /not started by/);
  assert.equal(calls.filter((call) => call.op === "attach").length, 1);
});

Deno.test("[T-27] a command in a window cannot retry; an operator elsewhere and the broker can", async () => {
  const { ask, calls } = build();
  await ask(attach, 200);
  calls.length = 0;
  for (const pid of [300, 400]) {
    await refused(() => ask({ op: "retry", message_id: "m" }, pid), "worker_refused", /alpha/);
  }
  assert.equal(calls.length, 0);
  await ask({ op: "retry", message_id: "m" }, 500);
  await ask({ op: "retry", message_id: "m" }, 200);
  assert.deepEqual(calls.map((call) => call.op), ["retry", "retry"]);
});

Deno.test("[B-04] [T-15] a window acknowledges what is addressed to it and withdraws what it sent, no more", async () => {
  const { ask, calls } = build();
  await ask(attach, 200);
  calls.length = 0;
  const op = (name: string, message_id: string) => ({ op: name, message_id });
  for (const pid of [300, 400]) {
    await refused(() => ask(op("ack", "to-beta"), pid), "worker_refused", /alpha/);
    await refused(() => ask(op("cancel", "to-alpha"), pid), "worker_refused", /alpha/);
  }
  assert.equal(calls.length, 0);
  await ask(op("ack", "to-alpha"), 400);
  await ask(op("cancel", "from-alpha"), 400);
  await ask(op("ack", "to-beta"), 500);
  await ask(op("cancel", "to-beta"), 500);
  assert.deepEqual(calls.map((call) => call.op), ["ack", "cancel", "ack", "cancel"]);
});

Deno.test("[T-27] a command in a window cannot purge; it may count, and an operator elsewhere may do both", async () => {
  const { ask, calls } = build();
  const purge = { op: "purge", state: "failed", execute: true };
  for (const pid of [300, 400]) {
    await refused(() => ask(purge, pid), "not_attached", /again/);
  }
  await ask(attach, 200);
  calls.length = 0;
  for (const pid of [300, 400]) {
    await refused(() => ask(purge, pid), "worker_refused", /alpha/);
    await refused(() => ask({ ...purge, receipt_id: 1 }, pid), "worker_refused", /alpha/);
  }
  assert.equal(calls.length, 0);
  await ask({ op: "purge", state: "failed" }, 400);
  await ask(purge, 500);
  assert.deepEqual(calls.map((call) => call.op), ["purge", "purge"]);
});

Deno.test("[B-04] [T-27] while its window is not attached, a worker's word is nobody's: not local, not the operator's", async () => {
  const { ask, calls } = build();
  for (const pid of [200, 300, 400]) {
    await refused(() => ask(send, pid), "not_attached", /again/);
    await refused(() => ask({ op: "retry", message_id: "m" }, pid), "not_attached", /again/);
  }
  assert.equal(calls.length, 0);
  await ask(send, 500);
  await ask({ op: "message", message_id: "m" }, 400).catch(() => {});
  assert.deepEqual(calls.map((call) => call.op), ["send"]);
});

Deno.test("[L-06] status tells each part apart, and one that fails hides no other", async () => {
  const { ask } = build();
  await ask(attach, 200);
  const { result } = await ask({ op: "status" });
  const status = result as ReturnType<typeof serviceStatus>;
  assert.equal(status.service.peer_check, "SO_PEERCRED");
  assert.equal(status.service.connections, 3);
  assert.deepEqual(status.queue, {
    ok: true,
    detail: "2 waiting, 1 failed",
    states: { pending: 2, failed: 3 },
    cancelled: 2,
  });
  assert.equal(status.leases.active, 1);
  assert.equal(status.gita.repositories, 3);
  assert.match(status.state_hub.detail, /not observed by this service/);
  assert.equal(status.endpoints.length, 1);

  const broken = new FakeRegistry({});
  broken.names = () => {
    throw new Error("registry gone");
  };
  const partly = serviceStatus({
    identity: { serviceId: "s", version: "1", pid: 1, startedAt: 0 },
    socket: "/s",
    connections: () => 0,
    database: "/d",
    schemaVersion: () => {
      throw new Error("disk I/O error");
    },
    registry: broken,
    queue: { summary: () => ({ states: {}, cancelled: 0, activeLeases: 0 }) } as unknown as Queue,
    endpoints: () => [],
  });
  assert.deepEqual(
    [partly.service.ok, partly.sqlite.ok, partly.gita.ok, partly.queue.ok],
    [true, false, false, true],
  );
  assert.match(partly.sqlite.detail, /disk/);
  assert.match(partly.gita.detail, /gone/);
});

Deno.test("[T-22] history pages by bytes: every message once, no page over its size", () => {
  // Bodies whose JSON is six times their size.
  const all = Array.from({ length: 120 }, (_, i) => ({
    message_id: `m${i}`,
    body: "\u0001".repeat(8192),
  })) as unknown as WireMessage[];
  const queue: Pick<Queue, "history"> = {
    history({ limit = 100, cursor = "0" }) {
      const from = Number(cursor);
      const messages = all.slice(from, from + limit);
      const end = from + messages.length;
      return { messages, next_cursor: end < all.length ? String(end) : null };
    },
  };
  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const page: ReturnType<typeof historyPage> = historyPage(queue, {
      limit: 10_000,
      ...(cursor === null ? {} : { cursor }),
    });
    assert.ok(new TextEncoder().encode(JSON.stringify(page)).length < 1 << 20);
    assert.ok(page.messages.length > 0);
    seen.push(...page.messages.map((message) => message.message_id));
    cursor = page.next_cursor;
    pages++;
  } while (cursor !== null);
  assert.deepEqual(seen, all.map((message) => message.message_id));
  assert.ok(pages > 5);
  // One message larger than a page still comes: a reader never stands still.
  const huge = [{ message_id: "h", body: "x".repeat(HISTORY_PAGE_BYTES) }];
  const one = historyPage({
    history: () => ({ messages: huge as unknown as WireMessage[], next_cursor: null }),
  }, {});
  assert.equal(one.messages.length, 1);
});
