/** The client against servers that are absent, busy, silent or foreign. */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import type { TamqError } from "../../lib/base/errors.ts";
import { silentLog } from "../../lib/base/log.ts";
import { onProbe } from "../../lib/base/probe.ts";
import { call, openStream } from "../../lib/client.ts";
import { bindSocket, LIMITS, SocketServer } from "../../lib/socket.ts";
import { FakeClock } from "../helpers/clock.ts";
import { RawClient } from "../helpers/raw_socket.ts";
import { withTempDir } from "../helpers/temp.ts";

/** A listener that the test drives by hand. */
async function withListener(
  body: (path: string, listener: Deno.UnixListener) => Promise<void>,
): Promise<void> {
  await withTempDir(async (dir) => {
    const path = `${dir}/s`;
    using listener = Deno.listen({ transport: "unix", path });
    await body(path, listener);
  });
}

Deno.test("[T-03] nobody there: the error says so and how to start the service", async () => {
  await withTempDir(async (dir) => {
    const expected = {
      code: "UNAVAILABLE",
      reason: "service_unavailable",
      message: new RegExp(`${dir}/s`),
      hint: "start it with: tamq serve --detach",
    };
    await assert.rejects(call(`${dir}/s`, "ping", {}), expected); // no file
    const script = `Deno.listen({ transport: "unix", path: "${dir}/s" }); Deno.exit(0)`;
    await new Deno.Command(Deno.execPath(), { args: ["eval", "--no-config", script] }).output();
    await assert.rejects(call(`${dir}/s`, "ping", {}), expected); // a file that a dead one left
    Deno.removeSync(`${dir}/s`);
    Deno.writeTextFileSync(`${dir}/s`, "");
    await assert.rejects(call(`${dir}/s`, "ping", {}), { reason: "socket_path_occupied" });
  });
});

Deno.test("[T-22] a service that does not answer costs the time-out and no more", async () => {
  await withListener(async (path, listener) => {
    const clock = new FakeClock();
    const calling = call(path, "ping", {}, { clock, timeoutMs: 3000 });
    const conn = await listener.accept();
    await conn.read(new Uint8Array(100));
    clock.advance(2999);
    clock.advance(1);
    await assert.rejects(calling, { code: "DEADLINE_EXCEEDED", reason: "no_answer" });
    assert.equal(await conn.read(new Uint8Array(9)), null, "the client hung up");
    conn.close();
    assert.equal(clock.timers, 0);
  });
});

Deno.test("[T-03] a service that dies before its answer leaves the outcome open, and the client says so", async () => {
  await withListener(async (path, listener) => {
    for (const partial of ["", '{"ok":true,"res']) {
      const calling = call(path, "ping", {});
      const conn = await listener.accept();
      await conn.read(new Uint8Array(100));
      await conn.write(new TextEncoder().encode(partial));
      conn.close();
      await assert.rejects(calling, {
        code: "UNAVAILABLE",
        reason: "connection_lost",
        hint: /same idempotency key/,
      });
    }
  });
});

Deno.test("[T-22] an answer before the request was read whole is still understood", async () => {
  await withListener(async (path, listener) => {
    const calling = call(path, "message", { message_id: "x".repeat(500_000) });
    const conn = await listener.accept();
    const error = {
      code: "INVALID_ARGUMENT",
      reason: "request_too_large",
      message: "m",
      retry: "never",
    };
    await conn.write(new TextEncoder().encode(JSON.stringify({ ok: false, error }) + "\n"));
    conn.close();
    await assert.rejects(calling, { reason: "request_too_large" });
  });
});

Deno.test("[T-22] what is no answer of ours is not taken for one", async () => {
  await withListener(async (path, listener) => {
    for (const text of ["HTTP/1.1 400 Bad Request\r\n", "[]\n", "null\n", "\xff\n"]) {
      const calling = call(path, "ping", {});
      const conn = await listener.accept();
      await conn.write(new TextEncoder().encode(text));
      conn.close();
      await assert.rejects(calling, (error: TamqError) => {
        assert.equal(error.name, "TamqError", text);
        return true;
      });
    }
  });
});

Deno.test("[T-03] a full backlog is waited for", async () => {
  await withListener(async (path, listener) => {
    const waiting: Deno.Conn[] = [];
    try {
      for (;;) waiting.push(await Deno.connect({ transport: "unix", path }));
    } catch (error) {
      assert.ok(error instanceof Deno.errors.WouldBlock);
    }
    const calling = call(path, "ping", {});
    let answered = false;
    void calling.finally(() => answered = true);
    for (let i = 0; !answered; i++) {
      const conn = await listener.accept();
      if (i >= waiting.length) {
        await conn.write(new TextEncoder().encode('{"ok":true,"result":{"pid":7}}\n'));
        conn.close();
        break;
      }
      conn.close();
    }
    assert.equal((await calling).pid, 7);
    for (const conn of waiting) conn.close();
  });
});

Deno.test("[T-22] a service at its limit of connections is asked again", async () => {
  await withTempDir(async (dir) => {
    const path = `${dir}/s`;
    const bound = await bindSocket(path, systemClock);
    const server = new SocketServer({
      bound,
      path,
      handle: () => ({ result: { pid: 7 } }),
      clock: systemClock,
      log: silentLog,
      limits: { ...LIMITS, connections: 1 },
    });
    server.start();
    const held = await RawClient.open(path);
    const refused = Promise.withResolvers<void>();
    const remove = onProbe("ipc.closed", () => refused.resolve());
    const calling = call(path, "ping", {});
    await refused.promise;
    remove();
    held[Symbol.dispose]();
    assert.equal((await calling).pid, 7);
    await server.stop();
    await server.abandon();
  });
});

Deno.test("[T-25] a stream that cannot be opened leaves nothing open; one that ends, ends quietly", async () => {
  const request = {} as Parameters<typeof openStream>[1];
  await withListener(async (path, listener) => {
    const refused = openStream(path, request);
    const first = await listener.accept();
    const error = { code: "NOT_FOUND", reason: "unknown_repository", message: "m", retry: "never" };
    await first.write(new TextEncoder().encode(JSON.stringify({ ok: false, error }) + "\n"));
    await assert.rejects(refused, { reason: "unknown_repository" });
    first.close();

    const opening = openStream(path, request);
    const conn = await listener.accept();
    const lines = '{"ok":true,"result":{}}\n{"type":"new"}\n{"type":"closing","reason":"x"}\n';
    await conn.write(new TextEncoder().encode(lines));
    const stream = await opening;
    conn.close();
    const types: string[] = [];
    for await (const frame of stream.frames) types.push(frame.type);
    assert.deepEqual(types, ["new", "closing"]);
    await assert.rejects(stream.send({ type: "gate", open: true }), { reason: "connection_lost" });
    stream.close();
    stream.close();
  });
});
