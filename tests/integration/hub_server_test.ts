/** The State Hub as a process: who may talk to it, what it bounds, how it starts and ends. */
import assert from "node:assert/strict";
import { systemRandom } from "../../lib/base/random.ts";
import { newToken } from "../../lib/base/ids.ts";
import { createLog } from "../../lib/base/log.ts";
import { systemClock } from "../../lib/base/clock.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { digest, ProofKey, writeCredentials } from "../../lib/hub/proof.ts";
import { startHub } from "../../lib/hub/server.ts";
import { readToken } from "../../lib/hub/token.ts";
import { silentLog } from "../../lib/base/log.ts";
import {
  hubCommand,
  hubEnvironment,
  HubProcess,
  type HubRig,
  hubSettingsIn,
  noWindow,
  withHub,
} from "../helpers/hub.ts";
import { FakeClock } from "../helpers/clock.ts";
import { withTempDir } from "../helpers/temp.ts";
import { NOBODY } from "../helpers/unprivileged.ts";

const modeOf = (path: string) => (Deno.lstatSync(path).mode! & 0o777).toString(8);

/** Plain HTTP over the socket or the port, without our client's manners. */
async function raw(
  rig: Pick<HubRig, "hub" | "running">,
  where: "unix" | "tcp",
  request: string,
): Promise<{ status: number; text: string }> {
  const conn = where === "unix"
    ? await Deno.connect({ transport: "unix", path: rig.hub.socket })
    : await Deno.connect({ hostname: "127.0.0.1", port: rig.running.port! });
  using _conn = conn;
  await conn.write(new TextEncoder().encode(request));
  let text = "";
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(65536);
  for (;;) {
    const count = await conn.read(buffer).catch(() => null);
    if (count === null) break;
    text += decoder.decode(buffer.subarray(0, count), { stream: true });
  }
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text };
}

/** Text in whole lines, for a reader of one of them. */
function lines(): TransformStream<Uint8Array, string> {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = parts.pop()!;
      for (const part of parts) controller.enqueue(part);
    },
  });
}

const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, "Connection: close", ...headers, "", ""].join("\r\n");
const reasonOf = (answer: { text: string }) => /"reason":"(\w+)"/.exec(answer.text)?.[1];

Deno.test("[K-19][K-21][C-02] socket, database, token and lock are the owner's alone from the start", async () => {
  await withHub(async ({ hub, client }) => {
    await client.call("createTask", { body: { title: "t", repo: "alpha" } });
    assert.equal(modeOf(hub.socket), "600");
    assert.equal(modeOf(hub.database), "600");
    assert.equal(modeOf(`${hub.database}-wal`), "600");
    assert.equal(modeOf(hub.tokenFile), "600");
    assert.equal(modeOf(hub.stateDir), "700");
    assert.equal(modeOf(`${hub.stateDir}/service.lock`), "600");
  }, { tcp: true });
});

Deno.test("[K-19] without --tcp there is no TCP listener and no token", async () => {
  await withHub(({ hub, running }) => {
    assert.equal(running.port, undefined);
    assert.throws(() => Deno.lstatSync(hub.tokenFile), Deno.errors.NotFound);
    return Promise.resolve();
  });
});

Deno.test({
  name: "[K-19][K-21] another uid on the socket is refused, root included",
  ignore: Deno.uid() !== 0,
  fn: () =>
    withTempDir(async (dir) => {
      Deno.chmodSync(dir, 0o777);
      for (const name of ["state", "run", "config"]) {
        Deno.mkdirSync(`${dir}/${name}`, { mode: 0o777 });
        Deno.chmodSync(`${dir}/${name}`, 0o777);
      }
      await using process = await HubProcess.start(dir, { TEST_UID: String(NOBODY) });
      const rig = { hub: process.hub, running: {} as HubRig["running"] };
      assert.equal(Deno.lstatSync(process.hub.socket).uid, NOBODY);
      const answer = await raw(rig, "unix", get("/v1/hub", "Host: localhost"));
      assert.equal(answer.status, 401);
      assert.equal(reasonOf(answer), "peer_refused");
      assert.ok(!answer.text.includes("hub_id"));
      // Our own client does not even send a request to a socket of somebody else.
      using client = new StateHubClient({ address: { unix: process.hub.socket } });
      await assert.rejects(client.call("hub", {}), { reason: "socket_not_ours" });
      assert.equal((await process.event(/request\.refused/))?.reason, "peer_refused");
    }),
});

Deno.test("[K-19] over TCP: no token, a wrong token, another Host or Origin are refused", async () => {
  await withHub(async (rig) => {
    const port = rig.running.port!;
    const token = readToken(rig.hub.tokenFile);
    const host = `Host: 127.0.0.1:${port}`;
    const bearer = `Authorization: Bearer ${token}`;
    const ask = async (...headers: string[]) => {
      const answer = await raw(rig, "tcp", get("/v1/hub", ...headers));
      return `${answer.status} ${reasonOf(answer) ?? "ok"}`;
    };
    assert.equal(await ask(host, bearer), "200 ok");
    assert.equal(await ask(`Host: localhost:${port}`, bearer), "200 ok");
    assert.equal(await ask(host, bearer, `Origin: http://127.0.0.1:${port}`), "200 ok");
    assert.equal(await ask(host), "401 token_required");
    assert.equal(await ask(host, "Authorization: Basic eDp5"), "401 token_required");
    assert.equal(await ask(host, `Authorization: Bearer ${token.slice(1)}0`), "401 token_wrong");
    assert.equal(await ask(host, `Authorization: Bearer ${token}0`), "401 token_wrong");
    for (
      const name of [
        `evil.example:${port}`,
        "127.0.0.1",
        `127.0.0.1:${port + 1}`,
        `127.0.0.1.evil.example:${port}`,
        `evil.example:80@127.0.0.1:${port}`,
      ]
    ) assert.match(await ask(`Host: ${name}`, bearer), /^(403 host_refused|400)/, name);
    for (const origin of ["http://evil.example", "null", `https://127.0.0.1:${port}`]) {
      assert.equal(await ask(host, bearer, `Origin: ${origin}`), "403 origin_refused", origin);
    }
  }, { tcp: true });
});

Deno.test("[K-19] a signed request works once, here and now: not again, not elsewhere, not later", async () => {
  await withHub(async (rig) => {
    const port = rig.running.port!;
    const token = readToken(rig.hub.tokenFile);
    const key = await ProofKey.of(token);
    const signed = async (
      change: { host?: string; target?: string; skewMs?: number; key?: ProofKey } = {},
    ) => {
      const nonce = newToken(systemRandom);
      const timeMs = Math.floor(systemClock.now()) + (change.skewMs ?? 0);
      const mac = await (change.key ?? key).request({
        method: "GET",
        host: change.host ?? `127.0.0.1:${port}`,
        target: change.target ?? "/v1/hub",
        timeMs,
        nonce,
        bodyDigest: await digest(new Uint8Array(0)),
      });
      return get(
        "/v1/hub",
        `Host: 127.0.0.1:${port}`,
        `Authorization: ${writeCredentials({ timeMs, nonce, mac })}`,
      );
    };
    const ask = async (request: string) => {
      const answer = await raw(rig, "tcp", request);
      return `${answer.status} ${reasonOf(answer) ?? "ok"}`;
    };
    const good = await signed();
    assert.equal(await ask(good), "200 ok");
    assert.equal(await ask(good), "401 token_wrong", "a repeat of the very same request");
    assert.equal(await ask(await signed({ host: `127.0.0.1:${port + 1}` })), "401 token_wrong");
    assert.equal(await ask(await signed({ target: "/v1/tasks" })), "401 token_wrong");
    assert.equal(await ask(await signed({ skewMs: 120_000 })), "401 token_wrong");
    assert.equal(await ask(await signed({ skewMs: -120_000 })), "401 token_wrong");
    assert.equal(
      await ask(await signed({ key: await ProofKey.of("x".repeat(64)) })),
      "401 token_wrong",
    );
    // And our client, which signs by itself, gets its answers proved.
    const client = rig.tcpClient();
    await client.call("createTask", { body: { title: "t", repo: "alpha" } });
    assert.equal((await client.call("listTasks", {})).value.items.length, 1);
  }, { tcp: true });
});

Deno.test("[K-19] what has taken the port and does not know the token is found out, and gets no token", async () => {
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    const real = await startHub({
      hub,
      version: "0",
      log: silentLog,
      windowOf: noWindow,
      tcpPort: 0,
    });
    const { hubId, port } = real;
    await real.stop();
    const seen: string[] = [];
    const answer = JSON.stringify({
      hub_id: hubId,
      api_version: "1.0",
      version: "0",
      started_at: "2030-01-01T00:00:00.000Z",
      cursor: "c",
    });
    const squatter = Deno.serve(
      { hostname: "127.0.0.1", port: port!, onListen() {} },
      (request) => {
        seen.push(JSON.stringify([...request.headers]));
        return new Response(answer, {
          headers: { "content-type": "application/json", "tamq-proof": "0".repeat(64) },
        });
      },
    );
    const address = { base: `http://127.0.0.1:${port}`, tokenFile: hub.tokenFile };
    using client = new StateHubClient({ address });
    await assert.rejects(client.call("hub", {}), {
      code: "UNAUTHENTICATED",
      reason: "hub_unproven",
    });
    const token = readToken(hub.tokenFile);
    assert.equal(seen.length, 1);
    assert.ok(!seen[0]!.includes(token), "the token itself never crosses");
    await squatter.shutdown();
  });
});

Deno.test("[K-19][K-16] a token file that others can read is refused", async () => {
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    Deno.mkdirSync(hub.stateDir, { recursive: true, mode: 0o700 });
    for (const [text, mode] of [["x".repeat(64), 0o644], ["", 0o600], ["short", 0o600]] as const) {
      Deno.writeTextFileSync(hub.tokenFile, text);
      Deno.chmodSync(hub.tokenFile, mode);
      const start = startHub({ hub, version: "0", log: silentLog, windowOf: noWindow, tcpPort: 0 });
      await assert.rejects(start, { reason: "token_unreadable" });
      assert.throws(
        () => Deno.lstatSync(hub.socket),
        Deno.errors.NotFound,
        "nothing left standing",
      );
    }
  });
});

Deno.test("[K-19] malformed requests get a clear error, and the hub goes on", async () => {
  await withHub(async (rig) => {
    const post = (body: string, type = "application/json", path = "/v1/tasks") =>
      [
        `POST ${path} HTTP/1.1`,
        "Host: localhost",
        "Connection: close",
        `Content-Type: ${type}`,
        `Content-Length: ${new TextEncoder().encode(body).length}`,
        "",
        body,
      ].join("\r\n");
    const cases: readonly (readonly [request: string, wanted: string])[] = [
      [get("/v2/hub", "Host: x"), "404 unknown_route"],
      [get("/v1/tasks/%ff", "Host: x"), "404 unknown_route"],
      [get("/v1/tasks/a%2Fb", "Host: x"), "400 request_invalid"],
      [get("/v1/tasks/none", "Host: x"), "404 unknown_task"],
      [get("/v1/tasks?limit=0", "Host: x"), "400 request_invalid"],
      [get("/v1/tasks?limit=9999", "Host: x"), "400 request_invalid"],
      [get("/v1/tasks?nonsense=1", "Host: x"), "400 request_invalid"],
      [get("/v1/tasks?repo=a&repo=b", "Host: x"), "400 request_invalid"],
      [get(`/v1/tasks?cursor=${"x".repeat(5000)}`, "Host: x"), "400 request_invalid"],
      [
        "DELETE /v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "405 method_not_allowed",
      ],
      [post("{"), "400 request_not_json"],
      [post('"\ud800"'), "400 request_invalid"],
      [post("[]"), "400 request_invalid"],
      [post("[".repeat(30_000)), "400 request_not_json"],
      [post("{}", "text/plain"), "400 request_not_json"],
      [post('{"title":"t","repo":"r","extra":1}'), "400 request_invalid"],
      [post('{"title":"t","repo":"r","__proto__":{"x":1}}'), "400 request_invalid"],
      [post('{"title":"a\\u001b[2J","repo":"r"}'), "400 request_invalid"],
      [post('{"title":"t","repo":"r","description":"\\ud800"}'), "400 request_invalid"],
      [
        post(JSON.stringify({ title: "t", repo: "r", description: "x".repeat(70_000) })),
        "413 request_too_large",
      ],
    ];
    for (const [request, wanted] of cases) {
      const answer = await raw(rig, "unix", request);
      const got = `${answer.status} ${reasonOf(answer)}`;
      assert.equal(got, wanted, request.slice(0, 200));
      assert.match(answer.text, /"code":"[A-Z_]+","reason":"\w+","message":"/);
    }
    assert.equal((await rig.client.call("listTasks", {})).value.items.length, 0);
  });
});

Deno.test("[K-19][C-05] no title, body, note, token or address of a request reaches the log", async () => {
  const lines: string[] = [];
  const log = createLog({
    clock: systemClock,
    level: "debug",
    json: false,
    write: (line) => lines.push(line),
  });
  await withHub(async (rig) => {
    const client = rig.tcpClient();
    const secret = "CANARY-text";
    await client.call("createTask", {
      body: { title: secret, repo: "alpha", description: secret },
    });
    await client.call("createMessage", {
      body: {
        sender: "a",
        target_repo: "b",
        subject: secret,
        body: secret,
        requests_action: false,
      },
    });
    await assert.rejects(client.call("getTask", { params: { task_id: "CANARY-text" } }));
    await raw(
      rig,
      "tcp",
      get("/v1/hub?CANARY-text", "Host: CANARY-text", "Authorization: Bearer CANARY-text"),
    );
    assert.ok(lines.length > 0);
    const token = readToken(rig.hub.tokenFile);
    for (const line of lines) assert.ok(!line.includes("CANARY") && !line.includes(token), line);
  }, { tcp: true, log });
});

Deno.test("[K-21][L-02] one hub a database; a dead one's socket is taken over, a live one's never", async () => {
  await withTempDir(async (dir) => {
    const first = await HubProcess.start(dir);
    await assert.rejects(HubProcess.start(dir), /a hub \(process \d+\) already serves/);
    const starts = await Promise.allSettled([HubProcess.start(dir), HubProcess.start(dir)]);
    assert.ok(starts.every((start) => start.status === "rejected"));
    first.kill();
    await first.ended();
    assert.ok(Deno.lstatSync(first.hub.socket).isSocket, "left behind by the dead one");
    await using second = await HubProcess.start(dir);
    using client = new StateHubClient({ address: { unix: second.hub.socket } });
    assert.ok((await client.call("hub", {})).value.hub_id);
    // Another state directory that wants the same socket.
    const elsewhere = {
      ...second.hub,
      stateDir: `${dir}/other`,
      database: `${dir}/other/hub.sqlite3`,
    };
    await assert.rejects(
      startHub({ hub: elsewhere, version: "0", log: silentLog, windowOf: noWindow }),
      {
        reason: "socket_in_use",
        hint: /TAMQ_HUB_SOCKET/,
      },
    );
    assert.ok((await client.call("hub", {})).value.hub_id);
  });
});

Deno.test("[K-21][L-03] SIGTERM ends streams and requests in order, removes the socket, exits 0", async () => {
  await withTempDir(async (dir) => {
    const process = await HubProcess.start(dir);
    using client = new StateHubClient({ address: { unix: process.hub.socket } });
    const stop = new AbortController();
    const stream = client.subscribe(undefined, { signal: stop.signal });
    assert.equal((await stream.next()).value?.type, "connected");
    process.kill("SIGTERM");
    const lost = (await stream.next()).value;
    assert.equal(lost?.type, "lost");
    stop.abort();
    await stream.return(undefined);
    assert.equal((await process.event(/^hub\.stopped$/))?.clean, true);
    assert.equal((await process.ended()).code, 0);
    assert.throws(() => Deno.lstatSync(process.hub.socket), Deno.errors.NotFound);
    await using next = await HubProcess.start(dir);
    using again = new StateHubClient({ address: { unix: next.hub.socket } });
    const receipts = await again.call("listReceipts", { query: { kind: "shutdown" } });
    assert.deepEqual(receipts.value.items.map((receipt) => receipt.status), ["stopped"]);
  });
});

Deno.test("[K-19][K-21][C-05] detached, it tells its parent that it is ready or why not, and logs to a 0600 file", async () => {
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    const start = () => {
      const [program, ...args] = hubCommand("--detached", "--tcp");
      const env = hubEnvironment(dir, hub);
      return new Deno.Command(program!, { args, env, stdout: "piped", stderr: "null" }).spawn();
    };
    const first = start();
    const reader = first.stdout.pipeThrough(lines()).getReader();
    const said = JSON.parse((await reader.read()).value!);
    assert.equal(said.ready, true);
    assert.equal(said.pid, first.pid);
    assert.ok(said.port > 0);
    const second = await start().output();
    assert.equal(second.code, 1);
    const refused = JSON.parse(new TextDecoder().decode(second.stdout));
    assert.equal(refused.error.reason, "hub_running");
    first.kill("SIGTERM");
    assert.equal((await first.status).code, 0);
    await reader.cancel();
    assert.equal(modeOf(hub.logFile), "600");
    const log = Deno.readTextFileSync(hub.logFile);
    assert.match(log, /"hub.ready"[^]*"hub.stopped"/);
    assert.ok(!log.includes(readToken(hub.tokenFile)));
  });
});

Deno.test("[K-19] over TCP the proof covers unchanged, refused and failed answers as well", async () => {
  await withHub(async ({ tcpClient }) => {
    const client = tcpClient();
    const params = { task_id: "t" };
    await assert.rejects(client.call("getTask", { params }), { reason: "unknown_task" });
    await client.call("createTask", { body: { task_id: "t", title: "T", repo: "alpha" } });
    assert.equal(await client.callIfChanged("getTask", { params }, '"1"'), undefined);
    await assert.rejects(
      client.call("editTask", { params, ifMatch: 9, body: { title: "x" } }),
      { reason: "revision_mismatch" },
    );
    const { next_cursor } = await client.changes(undefined);
    assert.deepEqual((await client.changes(next_cursor)).changes, []);
  }, { tcp: true });
});

Deno.test("[K-19] a wall clock that jumps while the hub runs shuts nobody out for good", async () => {
  const clock = new FakeClock();
  await withHub(async ({ hub, running }) => {
    using client = new StateHubClient({
      address: { base: `http://127.0.0.1:${running.port}`, tokenFile: hub.tokenFile },
      clock,
      timeoutMs: 1e9,
    });
    await client.call("hub", {});
    clock.advance(5 * 60_000);
    for (const jump of [3_600_000, -7_200_000, -86_400_000 * 3]) {
      clock.jump(jump);
      await client.call("hub", {});
    }
  }, { tcp: true, clock });
});

Deno.test("[K-04][K-19][K-21] a listener behind the hub's door answers the door alone, and nobody while somebody else is there", async () => {
  await withTempDir(async (dir) => {
    await using process = await HubProcess.start(dir);
    const { socket } = process.hub;
    using client = new StateHubClient({ address: { unix: socket }, backoffMs: [] });
    await client.call("hub", {});
    const behind = { hub: { ...process.hub, socket: `${socket}.0` }, running: {} } as HubRig;
    assert.equal(modeOf(behind.hub.socket), "600");
    const answer = await raw(behind, "unix", get("/v1/hub", "Host: localhost"));
    assert.equal(`${answer.status} ${reasonOf(answer)}`, "401 peer_refused");
    {
      using conn = await Deno.connect({ transport: "unix", path: behind.hub.socket });
      // Until the hub has taken the connection it is in the kernel's queue, and harms nobody.
      await conn.write(new TextEncoder().encode("GET /v1/hub HTTP/1.1\r\nHost: localhost\r\n\r\n"));
      assert.ok(await conn.read(new Uint8Array(65536)));
      await assert.rejects(client.call("hub", {}), { reason: "peer_refused" });
    }
    await untilAnswered(client);
  });
});

/** The end of a connection is seen at the hub's next look. */
async function untilAnswered(client: StateHubClient): Promise<void> {
  for (;;) {
    try {
      await client.call("hub", {});
      return;
    } catch (error) {
      assert.equal((error as { reason?: string }).reason, "peer_refused");
    }
  }
}

Deno.test("[K-04][K-19][T-27] a window opens no gate and writes under its own name; over TCP nobody opens a gate", async () => {
  let repo: string | undefined;
  await withHub(async (rig) => {
    using operator = new StateHubClient({ address: { unix: rig.hub.socket } });
    const create = (task_id: string, target: string) =>
      operator.call("createTask", {
        body: { task_id, title: "t", repo: target, status: "ready", needs_human: true },
      });
    await create("own", "alpha");
    await create("other", "beta");
    repo = "alpha";
    const { client: window } = rig; // connects from here on
    const tcp = rig.tcpClient();
    const open = (client: StateHubClient, task_id: string) =>
      client.call("editTask", { params: { task_id }, ifMatch: 1, body: { needs_human: false } });
    await assert.rejects(open(window, "own"), { reason: "worker_refused" });
    await assert.rejects(open(window, "other"), { reason: "other_repository" });
    await assert.rejects(open(tcp, "own"), { reason: "operator_only" });
    const body = { target_repo: "beta", subject: "s", body: "", requests_action: true };
    const sent = (await window.call("createMessage", { body })).value;
    assert.equal(sent.sender, "alpha");
    await assert.rejects(window.call("createMessage", { body: { ...body, sender: "operator" } }), {
      reason: "sender_refused",
    });
    await assert.rejects(
      window.call("ackMessage", { params: { message_id: sent.message_id }, body: {} }),
      { reason: "other_repository" },
    );
    const note = { text: "n", requests_review: true };
    const noted = await window.call("addTaskNote", { params: { task_id: "own" }, body: note });
    const { note_id, author } = noted.value.notes[0]!;
    assert.equal(author, "alpha");
    const params = { task_id: "own", note_id };
    await assert.rejects(window.call("resolveTaskNote", { params, body: {} }), {
      reason: "worker_refused",
    });
    // The operator's connection is the one that was made outside.
    const left = await operator.call("createMessage", { body });
    assert.equal(left.value.sender, "operator");
    const opened = await operator.call("editTask", {
      params: { task_id: "own" },
      ifMatch: noted.value.revision,
      body: { needs_human: false },
    });
    assert.equal(opened.value.needs_human, false);
  }, { tcp: true, windowOf: () => repo });
});

Deno.test("[K-19][L-02] where a listener behind the door has no room for its name, or no place, the hub does not start and leaves nothing", async () => {
  await withTempDir(async (dir) => {
    const hub = await hubSettingsIn(dir);
    const start = (socket: string) =>
      startHub({ hub: { ...hub, socket }, version: "0", log: silentLog, windowOf: noWindow });
    const long = `${dir}/`.padEnd(106, "x");
    await assert.rejects(start(long), { reason: "socket_path_too_long", hint: /TAMQ_HUB_SOCKET/ });
    Deno.mkdirSync(`${dir}/run`, { recursive: true });
    Deno.mkdirSync(`${hub.socket}.0`);
    await assert.rejects(start(hub.socket), { reason: "socket_path_occupied" });
    assert.throws(() => Deno.lstatSync(hub.socket), Deno.errors.NotFound);
    Deno.removeSync(`${hub.socket}.0`);
    await (await start(hub.socket)).stop();
    assert.deepEqual([...Deno.readDirSync(`${dir}/run`)], []);
  });
});
