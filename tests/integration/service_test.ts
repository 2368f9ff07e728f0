/** The service as a process of its own. */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import type { TamqError } from "../../lib/base/errors.ts";
import { call, findSocket } from "../../lib/client.ts";
import { readHolder } from "../../lib/ipc/lock.ts";
import { descriptorCount, ServiceProcess, settingsIn } from "../helpers/service.ts";
import { exchange, RawClient } from "../helpers/raw_socket.ts";
// Loaded up front: loaded on demand inside a test, its library would count as a leak of that test.
import "../../lib/peer_ffi.ts";
import { runProcess } from "../helpers/world.ts";
import { withTempDir } from "../helpers/temp.ts";
import { NOBODY } from "../helpers/unprivileged.ts";

const REPOS = JSON.stringify({ alpha: "/repos/alpha", beta: "/repos/beta" });
const asRoot = Deno.uid() === 0;

function sendRequest(key: string, extra: Record<string, unknown> = {}) {
  return {
    client_id: "test",
    idempotency_key: key,
    sender_repo: "local",
    target_repo: "beta",
    provenance: "cli" as const,
    body: `text of ${key}`,
    ...extra,
  };
}

/** A service in a temporary folder. */
async function withService(
  body: (service: ServiceProcess, dir: string) => Promise<void>,
  env: Record<string, string> = {},
): Promise<void> {
  await withTempDir(async (dir) => {
    await using service = await ServiceProcess.start(await settingsIn(dir), {
      env: { TEST_REPOS: REPOS, ...env },
    });
    await body(service, dir);
  });
}

Deno.test("[T-01] one Unix socket of mode 0600, and no network socket at all", async () => {
  await withService(async (service) => {
    const { settings } = service;
    assert.equal(Deno.lstatSync(settings.socket).mode! & 0o7777, 0o600);
    await call(settings.socket, "ping", {});
    const inodes = new Set<string>();
    for (const fd of Deno.readDirSync(`/proc/${service.pid}/fd`)) {
      const link = await Deno.readLink(`/proc/${service.pid}/fd/${fd.name}`).catch(() => "");
      const inode = /^socket:\[(\d+)\]$/.exec(link)?.[1];
      if (inode !== undefined) inodes.add(inode);
    }
    const unix = (await Deno.readTextFile("/proc/net/unix")).split("\n")
      .map((line) => line.trim().split(/\s+/));
    // Listening ones have the flag __SO_ACCEPTCON.
    const listening = unix.filter((f) => f[3] === "00010000" && inodes.has(f[6] ?? ""));
    assert.deepEqual(listening.map((f) => f[7]), [settings.socket]);
    for (const kind of ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"]) {
      const rows = (await Deno.readTextFile(`/proc/${service.pid}/net/${kind}`)).split("\n").slice(
        1,
      );
      const ours = rows.filter((row) => inodes.has(row.trim().split(/\s+/)[9] ?? ""));
      assert.deepEqual(ours, [], kind);
    }
  });
});

Deno.test({
  name: "[T-01] the socket file has its mode from the instant it exists",
  ignore: !await installed("strace"),
  fn: async () => {
    await withTempDir(async (dir) => {
      const trace = `${dir}/trace`;
      const settings = await settingsIn(dir);
      {
        await using service = await ServiceProcess.start(settings, {
          prefix: [
            "strace",
            "-f",
            "-qq",
            "-o",
            trace,
            "-e",
            "trace=umask,bind,chmod,fchmod,fchmodat",
          ],
        });
        // strace ends with what it traces.
        Deno.kill(readHolder(settings.stateDir)!.pid, "SIGTERM");
        await service.ended();
      }
      const calls = (await Deno.readTextFile(trace)).split("\n");
      const bind = calls.findIndex((line) =>
        line.includes(`bind(`) && line.includes(settings.socket)
      );
      assert.ok(bind > 0, "bind was seen");
      const masks = calls.slice(0, bind).filter((line) => line.includes("umask("));
      assert.match(masks.at(-1)!, /umask\(0177\)/);
      assert.deepEqual(calls.filter((line) => /chmod/.test(line) && /\.sock/.test(line)), []);
    });
  },
});

Deno.test({
  name: "[T-02] another user is refused before a byte is read; both sides check",
  ignore: !asRoot,
  fn: async () => {
    await withTempDir(async (dir) => {
      Deno.chownSync(dir, NOBODY, NOBODY);
      const settings = await settingsIn(dir);
      await using service = await ServiceProcess.start(settings, {
        env: { TEST_REPOS: REPOS, TEST_UID: String(NOBODY) },
      });
      const { socket } = settings;
      assert.equal(Deno.lstatSync(socket).uid, NOBODY);
      {
        // Root passes the file's mode. Not a byte is sent, and the refusal is there.
        using client = await RawClient.open(socket);
        const answer = await client.answer();
        assert.equal(answer.error.code, "UNAUTHENTICATED");
        assert.equal(answer.error.reason, "peer_refused");
        assert.equal(await client.answer(), undefined);
      }
      // What would be understood or complained about is neither.
      for (const bytes of ['{"op":"ping","protocol":"0.1"}\n', "garbage\n", "x".repeat(100_000)]) {
        const answer = await exchange(socket, bytes);
        assert.equal(answer.error.reason, "peer_refused");
      }
      const refusal = await service.event("peer.refused");
      assert.equal(refusal!.uid, 0);

      // The client of root does not talk to it either: first by the file …
      await assert.rejects(call(socket, "ping", {}), {
        reason: "socket_not_ours",
        message: new RegExp(`${NOBODY}`),
      });
      // … and, were the file exchanged, by the process that listens.
      Deno.chownSync(socket, 0, 0);
      await assert.rejects(call(socket, "ping", {}), { reason: "socket_not_ours" });
      Deno.chownSync(socket, NOBODY, NOBODY);

      // Its own user is served.
      const own = await runProcess([
        Deno.execPath(),
        "eval",
        "--no-config",
        `const { becomeUser } = await import("${new URL(
          "../helpers/unprivileged.ts",
          import.meta.url,
        )}");
         becomeUser(${NOBODY});
         const c = await Deno.connect({ transport: "unix", path: "${socket}" });
         await c.write(new TextEncoder().encode('{"op":"status","protocol":"0.1"}\\n'));
         const b = new Uint8Array(9000);
         console.log(new TextDecoder().decode(b.subarray(0, await c.read(b))));`,
      ]);
      const { result } = JSON.parse(own.stdout);
      assert.equal(result.service.peer_check, "SO_PEERCRED");
    });
  },
});

Deno.test("[T-03] [T-17] receipts are the same after the service restarts, with no new handshake", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const options = { env: { TEST_REPOS: REPOS } };
    const before = await (async () => {
      await using _service = await ServiceProcess.start(settings, options);
      const sent = await call(settings.socket, "send", sendRequest("k1", { correlation_id: "c1" }));
      const again = await call(
        settings.socket,
        "send",
        sendRequest("k1", { correlation_id: "c1" }),
      );
      assert.deepEqual(again, { ...sent, deduplicated: true });
      return await call(settings.socket, "message", { message_id: sent.message_id });
    })(); // killed
    await using _service = await ServiceProcess.start(settings, options);
    const id = before.message.message_id;
    assert.deepEqual(await call(settings.socket, "message", { message_id: id }), before);
    assert.equal(before.message.state, "pending");
    assert.equal(before.message.correlation_id, "c1");
    const { messages } = await call(settings.socket, "history", { correlation_id: "c1" });
    assert.deepEqual(messages, [before.message]);
    assert.deepEqual(await call(settings.socket, "endpoints", {}), { endpoints: [] });
    await assert.rejects(call(settings.socket, "retry", { message_id: id }), {
      reason: "invalid_state",
    });
    const acked = await call(settings.socket, "ack", { message_id: id });
    assert.equal(acked.message.state, "acknowledged");
    await assert.rejects(call(settings.socket, "message", { message_id: "nobody" }), {
      reason: "unknown_message",
    });
  });
});

Deno.test("[T-22] [T-17] a long history arrives whole, page by page", async () => {
  await withService(async ({ settings }) => {
    const body = "\t".repeat(8192);
    await Promise.all(
      Array.from(
        { length: 150 },
        (_, i) => call(settings.socket, "send", sendRequest(`k${i}`, { body })),
      ),
    );
    const seen = new Set<string>();
    let cursor: string | null = null;
    let pages = 0;
    do {
      const page: { messages: { message_id: string }[]; next_cursor: string | null } = await call(
        settings.socket,
        "history",
        { limit: 10_000, ...(cursor === null ? {} : { cursor }) },
      );
      for (const { message_id } of page.messages) {
        assert.ok(!seen.has(message_id));
        seen.add(message_id);
      }
      cursor = page.next_cursor;
      pages++;
    } while (cursor !== null);
    assert.equal(seen.size, 150);
    assert.ok(pages >= 3);
  });
});

Deno.test("[T-22] a body that says it is UTF-8 and is not changes nothing", async () => {
  await withService(async ({ settings }) => {
    const text = JSON.stringify({ op: "send", protocol: "0.1", ...sendRequest("k") });
    const bytes = new TextEncoder().encode(text + "\n");
    bytes[bytes.indexOf("t".charCodeAt(0), text.indexOf("text of"))] = 0xff;
    assert.equal((await exchange(settings.socket, bytes)).error.reason, "request_not_utf8");
    assert.deepEqual((await call(settings.socket, "history", {})).messages, []);
  });
});

Deno.test("[L-03] SIGTERM: in order, with a receipt, and everything is free afterwards", async () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    await withService(async (service) => {
      const { settings } = service;
      const { message_id } = await call(settings.socket, "send", sendRequest("k"));
      using idle = await RawClient.open(settings.socket);
      await call(settings.socket, "ping", {}); // the idle one is accepted by now
      service.kill(signal);
      assert.equal((await idle.answer()).error.reason, "shutting_down");
      const status = await service.ended();
      assert.equal(status.code, 0);
      const events = service.log.map((line) => line.event);
      assert.ok(events.indexOf("service.stopping") < events.indexOf("service.stopped"));
      assert.equal(service.log.at(-1)!.clean, true);
      assert.throws(() => Deno.lstatSync(settings.socket), Deno.errors.NotFound);
      assert.equal(readHolder(settings.stateDir), undefined);
      await assert.rejects(call(settings.socket, "ping", {}), {
        reason: "service_unavailable",
        hint: /tamq serve --detach/,
      });

      const { DatabaseSync } = await import("node:sqlite");
      const db = new DatabaseSync(settings.database, { readOnly: true });
      try {
        const receipt = db.prepare("SELECT * FROM receipts WHERE kind = 'shutdown'").all();
        assert.equal(receipt.length, 1);
        assert.ok(!JSON.stringify(receipt).includes("text of"));
        const kept = db.prepare("SELECT state FROM messages WHERE message_id = ?").get(message_id);
        assert.equal(kept!.state, "pending");
      } finally {
        db.close();
      }
    });
  }
});

Deno.test("[L-03] [L-04] SIGTERM under load: what was answered is stored, the rest is told, in good time", async () => {
  await withService(async (service) => {
    const { settings } = service;
    const acknowledged = new Map<string, string>();
    const refusals = new Set<string>();
    const enough = Promise.withResolvers<void>();
    const client = async (name: number) => {
      for (let n = 0; refusals.size === 0 || n === 0; n++) {
        try {
          const key = `${name}-${n}`;
          const { message_id } = await call(settings.socket, "send", sendRequest(key));
          acknowledged.set(key, message_id);
          if (acknowledged.size > 200) enough.resolve();
        } catch (error) {
          refusals.add((error as TamqError).code);
        }
      }
    };
    const clients = Array.from({ length: 16 }, (_, i) => client(i));
    await enough.promise;
    const began = systemClock.monotonic();
    service.kill("SIGTERM");
    await Promise.all(clients);
    assert.equal((await service.ended()).code, 0);
    assert.ok(systemClock.monotonic() - began < settings.graceMs);
    assert.equal(service.log.at(-1)!.clean, true);
    assert.deepEqual([...refusals], ["UNAVAILABLE"]);
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(settings.database, { readOnly: true });
    try {
      const rows = db.prepare("SELECT message_id, idempotency_key FROM messages").all();
      const stored = new Map(rows.map((r) => [r.idempotency_key, r.message_id]));
      for (const [key, id] of acknowledged) assert.equal(stored.get(key), id);
      assert.equal(stored.size, acknowledged.size, "nobody was left without an answer");
    } finally {
      db.close();
    }
  });
});

Deno.test("[L-02] a live service is never displaced, whatever the shells believe", async () => {
  await withService(async ({ settings, pid }, dir) => {
    const startFails = (env: Record<string, string>, reason: RegExp) =>
      assert.rejects(
        settingsIn(dir, env).then((other) =>
          ServiceProcess.start(other, { env: { TEST_REPOS: REPOS } })
        ),
        reason,
      );
    const { ino } = Deno.lstatSync(settings.socket);
    // The same database, also by another XDG_RUNTIME_DIR; it says who and where.
    await startFails({}, new RegExp(`process ${pid}.*already serves.*${settings.socket}`));
    await startFails({ XDG_RUNTIME_DIR: `${dir}/elsewhere` }, /already serves/);
    // Another database at the same socket.
    await startFails({ XDG_STATE_HOME: `${dir}/other` }, /another service listens on/);
    assert.equal(Deno.lstatSync(settings.socket).ino, ino);
    assert.equal((await call(settings.socket, "ping", {})).pid, pid);
    // A shell with another XDG_RUNTIME_DIR finds it by the lock; one that names a socket does not.
    const elsewhere = await settingsIn(dir, { XDG_RUNTIME_DIR: `${dir}/elsewhere` });
    assert.equal(findSocket(elsewhere), settings.socket);
    const named = await settingsIn(dir, { TAMQ_SOCKET: `${dir}/named.sock` });
    assert.equal(findSocket(named), `${dir}/named.sock`);
  });
});

Deno.test("[L-02] after kill -9 the next one takes over socket and lock; a garbled lock is no obstacle", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const options = { env: { TEST_REPOS: REPOS } };
    let last = 0;
    for (const garble of [false, true, false]) {
      await using service = await ServiceProcess.start(settings, options);
      assert.equal((await call(settings.socket, "ping", {})).pid, service.pid);
      assert.notEqual(service.pid, last);
      last = service.pid;
      service.kill("SIGKILL");
      await service.ended();
      assert.ok(Deno.lstatSync(settings.socket).isSocket, "left behind");
      if (garble) Deno.writeTextFileSync(`${settings.stateDir}/service.lock`, '{"pid":1,');
    }
  });
});

Deno.test("[L-02] what cannot be used is named, with the way out, and left as it was", async () => {
  await withTempDir(async (dir) => {
    const fails = async (env: Record<string, string>, expected: RegExp) => {
      const settings = await settingsIn(dir, env);
      await assert.rejects(ServiceProcess.start(settings), expected);
    };
    Deno.writeTextFileSync(`${dir}/plain`, "mine");
    await fails({ TAMQ_SOCKET: `${dir}/plain` }, /plain is not a socket/);
    assert.equal(Deno.readTextFileSync(`${dir}/plain`), "mine");
    await fails({ TAMQ_SOCKET: `${dir}/${"s".repeat(120)}` }, /bytes; the system allows 107/);
    await fails({ TAMQ_STATE_DIR: `${dir}/plain` }, /cannot use the state directory: .*plain/);
    if (asRoot) {
      Deno.mkdirSync(`${dir}/theirs`);
      Deno.chownSync(`${dir}/theirs`, NOBODY, NOBODY);
      await fails({ TAMQ_STATE_DIR: `${dir}/theirs` }, /theirs belongs to user 65534/);
    }
    // A failed start leaves no lock and no socket.
    const settings = await settingsIn(dir, { TAMQ_SOCKET: `${dir}/plain` });
    assert.equal(readHolder(settings.stateDir), undefined);
  });
});

Deno.test("[T-03] 2,000 requests leave no descriptor and no connection behind", async () => {
  await withService(async ({ settings, pid }) => {
    const batch = (n: number) =>
      Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          i % 2 === 0
            ? call(settings.socket, "send", sendRequest(`${n}-${i}`))
            : call(settings.socket, "message", { message_id: "none" }).catch((e: TamqError) =>
              e.reason
            )),
      );
    await batch(0);
    const settled = async () => {
      // The service may still be closing the last ones: this answer comes after those.
      while ((await call(settings.socket, "status", {})).service.connections > 1) { /* again */ }
      await call(settings.socket, "ping", {});
      return descriptorCount(pid);
    };
    const before = await settled();
    for (let n = 1; n <= 20; n++) await batch(n);
    assert.ok(Math.abs(await settled() - before) <= 1);
  });
});

async function installed(program: string): Promise<boolean> {
  try {
    await new Deno.Command(program, { args: ["-V"], stdout: "null", stderr: "null" }).output();
    return true;
  } catch {
    return false;
  }
}
