/** The socket layer in one process: real sockets, an invented service behind them. */
import assert from "node:assert/strict";
import { systemClock, turn } from "../../lib/base/clock.ts";
import type { TamqError } from "../../lib/base/errors.ts";
import { silentLog } from "../../lib/base/log.ts";
import { onProbe } from "../../lib/base/probe.ts";
import { call } from "../../lib/client.ts";
import { type Handle, LIMITS, SocketServer } from "../../lib/socket.ts";
import { bindSocket } from "../../lib/ipc/bind.ts";
import { descriptors, isNamed, ticksNow } from "../../lib/peer_ffi.ts";
import { FakeClock } from "../helpers/clock.ts";
import { exchange, RawClient } from "../helpers/raw_socket.ts";
import { textLines } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";

interface Running {
  path: string;
  server: SocketServer;
  clock: FakeClock;
}

/** A server whose deadlines run on a clock that the test moves. */
async function withServer(
  handle: Handle,
  body: (running: Running) => Promise<void>,
  limits = LIMITS,
): Promise<void> {
  await withTempDir(async (dir) => {
    const path = `${dir}/s.sock`;
    const clock = new FakeClock();
    const bound = await bindSocket(path, systemClock);
    const server = new SocketServer({ bound, path, handle, clock, log: silentLog, limits });
    server.start();
    try {
      await body({ path, server, clock });
    } finally {
      await server.stop();
      await server.abandon();
    }
  });
}

const echo: Handle = (request) => ({ result: request });

/** Resolves when `count` connections have been closed by the server. */
function closed(count: number): Promise<void> {
  const done = Promise.withResolvers<void>();
  let seen = 0;
  const remove = onProbe("ipc.closed", () => {
    if (++seen < count) return;
    remove();
    done.resolve();
  });
  return done.promise;
}

Deno.test("[T-02] the peer of each of many concurrent connections is its own process", async () => {
  const handle: Handle = (_request, peer) => ({ result: { pid: peer.pid, uid: peer.uid } });
  await withServer(handle, async ({ path }) => {
    // Other processes, each with connections of its own, all at once.
    const script = `
      for (let i = 0; i < 40; i++) {
        const conn = await Deno.connect({ transport: "unix", path: ${JSON.stringify(path)} });
        await conn.write(new TextEncoder().encode("{}\\n"));
        const bytes = new Uint8Array(500);
        const n = await conn.read(bytes);
        conn.close();
        const { result } = JSON.parse(new TextDecoder().decode(bytes.subarray(0, n)));
        if (result.pid !== Deno.pid || result.uid !== Deno.uid()) throw new Error("wrong peer");
      }
      console.log("right");`;
    const runs = await Promise.all(Array.from({ length: 4 }, async () => {
      const child = new Deno.Command(Deno.execPath(), {
        args: ["eval", "--no-config", script],
      });
      return new TextDecoder().decode((await child.output()).stdout);
    }));
    assert.deepEqual(runs, Array(4).fill("right\n"));
  });
});

Deno.test("[T-22] what is no request gets an error that says why, and the connection ends", async () => {
  const cases: [string, Uint8Array | string][] = [
    ["request_not_json", "{\n"],
    ["request_not_json", "\n"],
    ["request_not_json", "{}{}\n"],
    ["request_not_json", "\u0000\n"],
    ["request_not_json", "[".repeat(60_000) + "\n"],
    ["request_not_object", "[]\n"],
    ["request_not_object", "null\n"],
    ["request_not_object", '"text"\n'],
    ["request_not_utf8", new Uint8Array([123, 0xff, 125, 10])],
    ["request_not_utf8", new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22, 10])], // half a surrogate pair
    ["request_too_large", '{"a":"' + "x".repeat(LIMITS.requestBytes) + '"}\n'],
    ["request_too_large", "x".repeat(3 * LIMITS.requestBytes)],
  ];
  await withServer(echo, async ({ path }) => {
    for (const [reason, bytes] of cases) {
      using client = await RawClient.open(path);
      const answer = await client.ask(bytes);
      assert.equal(answer?.ok, false, reason);
      assert.equal(answer.error.reason, reason);
      assert.equal(answer.error.code, "INVALID_ARGUMENT");
      assert.equal(answer.error.retry, "never");
      assert.equal(await client.answer(), undefined, "one answer, then the end");
    }
  });
});

Deno.test("[T-22] a request of exactly 64 KiB is read; answers that need several writes arrive whole", async () => {
  await withServer(echo, async ({ path }) => {
    const frame = '{"a":""}';
    const text = "é".repeat((LIMITS.requestBytes - frame.length) / 2);
    const answer = await exchange(path, `{"a":"${text}"}\n`);
    assert.equal(answer.result.a, text);
  });
  const big: Handle = () => ({ result: { text: "y".repeat(1_000_000) } });
  await withServer(big, async ({ path }) => {
    assert.equal((await exchange(path, "{}\n")).result.text.length, 1_000_000);
  });
});

Deno.test("[T-22] an answer over 1 MiB becomes an error instead", async () => {
  await withServer(() => ({ result: "y".repeat(1 << 20) }), async ({ path }) => {
    assert.equal((await exchange(path, "{}\n")).error.reason, "answer_too_large");
  });
});

Deno.test("[T-22] a client that half-closes after its request still gets the answer", async () => {
  await withServer(echo, async ({ path }) => {
    using client = await RawClient.open(path);
    await client.write('{"a":1}\n');
    await client.conn.closeWrite();
    assert.deepEqual(await client.answer(), { ok: true, result: { a: 1 } });
  });
});

Deno.test("[T-22] a request cut short by a half-close is never performed", async () => {
  let performed = 0;
  await withServer(() => ({ result: ++performed }), async ({ path }) => {
    using client = await RawClient.open(path);
    await client.write("{}");
    await client.conn.closeWrite();
    assert.equal((await client.answer()).error.reason, "request_incomplete");
    assert.equal(performed, 0);
  });
});

Deno.test("[T-22] silent and slow clients are told and dropped after 5 s, and nobody waits for them", async () => {
  const limits = { ...LIMITS, silent: 300 };
  await withServer(echo, async ({ path, clock, server }) => {
    const accepted = async (count: number) => {
      // Another client's exchange shows that all before it were accepted: accepting is serial.
      assert.deepEqual(await exchange(path, '{"a":1}\n'), { ok: true, result: { a: 1 } });
      assert.ok(server.connections >= count);
    };
    const slow = await Promise.all(Array.from({ length: 200 }, () => RawClient.open(path)));
    try {
      await accepted(200);
      clock.advance(4_000);
      // A byte now and then buys no time.
      for (const client of slow.slice(0, 100)) await client.write(" ");
      await accepted(200);
      clock.advance(1_000);
      for (const client of slow) {
        const answer = await client.answer();
        assert.equal(answer.error.reason, "request_timeout");
        assert.equal(answer.error.code, "DEADLINE_EXCEEDED");
        assert.equal(await client.answer(), undefined);
      }
    } finally {
      for (const client of slow) client[Symbol.dispose]();
    }
  }, limits);
});

Deno.test("[T-22] with too many silent clients the oldest go after a second, and make room at once when all places are taken", async () => {
  const limits = { ...LIMITS, connections: 20, silent: 4 };
  await withServer(echo, async ({ path, clock }) => {
    const silent = [];
    for (let n = 0; n < 20; n++) silent.push(await RawClient.open(path));
    // None has been silent for long: whoever comes now is refused.
    assert.equal((await exchange(path, "{}\n")).error.reason, "too_many_connections");
    clock.advance(limits.silentMs);
    let ended = closed(17);
    const refused = await exchange(path, "{}\n");
    assert.equal(refused.error.reason, "too_many_connections");
    await ended; // sixteen of them, and the one that was refused
    assert.equal((await exchange(path, "{}\n")).ok, true);
    for (const [n, client] of silent.entries()) {
      if (n < 16) assert.equal((await client.answer()).error.reason, "request_timeout");
    }
    // Four may stay until their time is over.
    ended = closed(4);
    clock.advance(limits.requestMs - limits.silentMs);
    await ended;
    for (const client of silent) client[Symbol.dispose]();
  }, limits);
});

Deno.test("[T-22] a client that does not read its answer is dropped after the write deadline", async () => {
  const big: Handle = () => ({ result: "y".repeat(1_000_000) });
  await withServer(big, async ({ path, clock, server }) => {
    using client = await RawClient.open(path);
    await client.write("{}\n");
    // Half a megabyte more than the kernel keeps for it: the service is stuck writing to it alone.
    assert.equal((await exchange(path, "{}\n")).ok, true);
    const ended = closed(1);
    assert.equal(server.connections, 1);
    clock.advance(LIMITS.writeMs);
    await ended;
    assert.equal(server.connections, 0);
  });
});

Deno.test("[T-22] over the limit of connections the next one is refused, kindly, and recovers", async () => {
  const limits = { ...LIMITS, connections: 3 };
  await withServer(echo, async ({ path }) => {
    const held = await Promise.all([1, 2, 3].map(() => RawClient.open(path)));
    const answer = await exchange(path, "{}\n");
    assert.equal(answer.error.reason, "too_many_connections");
    assert.equal(answer.error.code, "RESOURCE_EXHAUSTED");
    const ended = closed(3);
    for (const client of held) client[Symbol.dispose]();
    await ended;
    assert.equal((await exchange(path, "{}\n")).ok, true);
  }, limits);
});

Deno.test("[T-22] a failure that is no TamqError tells the client nothing of its text", async () => {
  const broken: Handle = () => {
    throw new Error("secret path");
  };
  await withServer(broken, async ({ path }) => {
    const answer = await exchange(path, "{}\n");
    assert.equal(answer.error.reason, "internal_error");
    assert.ok(!JSON.stringify(answer).includes("secret"));
  });
});

Deno.test("[L-03] stopping answers what is under way, refuses what waits, and takes nothing new", async () => {
  const begun = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const handle: Handle = async () => {
    begun.resolve();
    await finish.promise;
    return { result: "done" };
  };
  await withServer(handle, async ({ path, server }) => {
    using waiting = await RawClient.open(path);
    const working = exchange(path, "{}\n");
    await begun.promise; // accepting is serial: the waiting one is in as well
    await server.stop();
    assert.equal((await waiting.answer()).error.reason, "shutting_down");
    await assert.rejects(call(path, "ping", {}), { reason: "service_unavailable" });
    finish.resolve();
    assert.deepEqual(await working, { ok: true, result: "done" });
    await server.drained();
    assert.equal(server.connections, 0);
  });
});

Deno.test("[T-03] no descriptor is left behind by 2,000 requests, good and bad", async () => {
  await withServer(echo, async ({ path }) => {
    // By name: other tests may run in this process at the same time.
    const name = new TextEncoder().encode(path);
    const fds = () =>
      descriptors().filter((fd) => isNamed(fd, "local", name) || isNamed(fd, "remote", name))
        .length;
    const batch = async () => {
      const kinds = ["{}\n", "bad\n", "{", ""];
      const ended = closed(100);
      await Promise.all(Array.from({ length: 100 }, async (_, i) => {
        using client = await RawClient.open(path);
        await client.write(kinds[i % 4]!);
        if (i % 4 < 2) await client.answer();
      }));
      await ended;
    };
    await batch();
    const before = fds();
    for (let i = 0; i < 20; i++) await batch();
    assert.equal(fds(), before);
  });
});

Deno.test("[T-01] the socket has mode 0600 whatever the umask, and its directory is ours alone", async () => {
  await withTempDir(async (dir) => {
    // In a process of its own: the mask belongs to the whole process.
    const lib = new URL("../../lib/", import.meta.url);
    const script = `
      const { bindSocket } = await import("${lib}ipc/bind.ts");
      const { systemClock } = await import("${lib}base/clock.ts");
      Deno.umask(0);
      const bound = await bindSocket("${dir}/run/s.sock", systemClock);
      const mode = (path) => Deno.lstatSync(path).mode & 0o777;
      const modes = [mode("${dir}/run/s.sock"), mode("${dir}/run"), Deno.umask()];
      console.log(JSON.stringify([...modes, await bound.close()]));`;
    const args = ["eval", "--no-config", "--no-lock", script];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
    assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), [0o600, 0o700, 0, true]);
    assert.throws(() => Deno.lstatSync(`${dir}/run/s.sock`));
  });
});

Deno.test("[L-02] nothing but a dead socket of ours is ever removed from the path", async () => {
  await withTempDir(async (dir) => {
    const refuses = async (name: string, reason: string) => {
      const path = `${dir}/${name}`;
      await assert.rejects(bindSocket(path, systemClock), (error: TamqError) => {
        assert.equal(error.reason, reason);
        assert.ok(error.message.includes(path), error.message);
        assert.ok(error.hint);
        return true;
      });
    };
    Deno.writeTextFileSync(`${dir}/file`, "precious");
    await refuses("file", "socket_path_occupied");
    assert.equal(Deno.readTextFileSync(`${dir}/file`), "precious");
    Deno.mkdirSync(`${dir}/folder`);
    await refuses("folder", "socket_path_occupied");
    Deno.symlinkSync(`${dir}/file`, `${dir}/link`);
    await refuses("link", "socket_path_occupied");
    assert.ok(Deno.lstatSync(`${dir}/link`).isSymlink);

    const live = await bindSocket(`${dir}/live`, systemClock);
    const { ino } = Deno.lstatSync(`${dir}/live`);
    const probe = live.listener.accept(); // the look knocks once
    await refuses("live", "socket_in_use");
    (await probe).close();
    assert.equal(Deno.lstatSync(`${dir}/live`).ino, ino);
    assert.equal(await live.close(), true);

    // What a killed service leaves behind is taken over.
    leaveStaleSocket(`${dir}/live`);
    assert.equal(await (await bindSocket(`${dir}/live`, systemClock)).close(), true);
    if (Deno.uid() === 0) {
      leaveStaleSocket(`${dir}/theirs`);
      Deno.chownSync(`${dir}/theirs`, 65534, 65534);
      await refuses("theirs", "socket_not_ours");
    }
  });
});

/** A socket file as a killed listener leaves it: nobody listens any more. */
function leaveStaleSocket(path: string): void {
  const listener = Deno.listen({ transport: "unix", path: `${path}.bound` });
  Deno.linkSync(`${path}.bound`, path);
  listener.close(); // removes the other name
  assert.ok(Deno.lstatSync(path).isSocket);
}

Deno.test("[L-02] of many that find a stale socket at once, with different databases, one gets it", async () => {
  await withTempDir(async (dir) => {
    const path = `${dir}/s`;
    const entry = new URL("../helpers/bind_racer.ts", import.meta.url).pathname;
    const racers = Array.from({ length: 4 }, () => {
      const child = new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", "--no-check", "--quiet", "--no-config", entry, path],
        stdin: "piped",
        stdout: "piped",
      }).spawn();
      return { child, lines: textLines(child.stdout), stdin: child.stdin.getWriter() };
    });
    const nextLines = async () =>
      await Promise.all(racers.map(async ({ lines }) => (await lines.next()).value));
    const tellAll = () => Promise.all(racers.map(({ stdin }) => stdin.write(new Uint8Array(1))));
    try {
      assert.deepEqual(await nextLines(), Array(4).fill("here"));
      for (let round = 0; round < 40; round++) {
        leaveStaleSocket(path);
        await tellAll(); // bind
        assert.deepEqual((await nextLines()).sort(), ["bound", ...Array(3).fill("socket_in_use")]);
        await tellAll(); // let go
        while (exists(path)) await Deno.stat(dir);
      }
    } finally {
      await Promise.all(racers.map(async ({ child, lines, stdin }) => {
        await stdin.close();
        for await (const _ of lines) { /* to the end */ }
        await child.status;
      }));
    }
  });
});

function exists(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSocket === true;
  } catch {
    return false;
  }
}

Deno.test("[L-02] whatever stands at the path by now survives our stop", async () => {
  await withTempDir(async (dir) => {
    const bound = await bindSocket(`${dir}/s`, systemClock);
    Deno.removeSync(`${dir}/s`);
    Deno.writeTextFileSync(`${dir}/s`, "somebody else's");
    assert.equal(await bound.close(), false);
    assert.equal(Deno.readTextFileSync(`${dir}/s`), "somebody else's");
    Deno.removeSync(`${dir}/s`);
    assert.equal(await bound.close(), true);
  });
});

Deno.test("[T-22] a path over 107 bytes is refused with its length and the way out, by both sides", async () => {
  await withTempDir(async (dir) => {
    const path = `${dir}/${"é".repeat(50)}`;
    const length = new TextEncoder().encode(path).length;
    const expected = {
      reason: "socket_path_too_long",
      message: new RegExp(`${length} bytes.*107`),
      hint: /TAMQ_SOCKET/,
    };
    await assert.rejects(bindSocket(path, systemClock), expected);
    await assert.rejects(call(path, "ping", {}), expected);
    // The longest one that fits works.
    const longest = `${dir}/${"s".repeat(107 - dir.length - 1)}`;
    const bound = await bindSocket(longest, systemClock);
    assert.equal(await bound.close(), true);
  });
});

/**
 * Connects and ends; a child of it keeps the connection open and sends the request when it is told
 * to, so that the peer's pid is nobody's by then.
 */
const LEAVES = `
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
if os.fork() > 0: os._exit(0)
sys.stdin.read()
s.sendall(b'{"op":"x"}\\n'); print(s.makefile().readline(), flush=True)`;

const LAST_PID = "/proc/sys/kernel/ns_last_pid";

/** A process of that pid, for as long as `body` runs; false where the kernel does not let us choose. */
async function withPid(pid: number, body: () => Promise<void>): Promise<boolean> {
  for (let again = 0; again < 50; again++) {
    try {
      Deno.writeTextFileSync(LAST_PID, String(pid - 1));
    } catch {
      return false;
    }
    const child = new Deno.Command("cat", { stdin: "piped", stdout: "null" }).spawn();
    try {
      if (child.pid !== pid) continue; // others start processes as well
      await body();
      return true;
    } finally {
      child.kill("SIGKILL");
      await child.status;
      await child.stdin.close().catch(() => {});
    }
  }
  return false;
}

Deno.test("[T-02] [B-04] who connected and ended before its request is nobody, also when its pid is given to another process", async () => {
  const handle: Handle = (_request, peer) => ({ result: { ancestry: peer.ancestry!() } });
  await withServer(handle, async ({ path, server }) => {
    const leave = () => {
      const program = ["-c", LEAVES, path];
      const spec = { args: program, stdin: "piped", stdout: "piped" } as const;
      return new Deno.Command("python3", spec).spawn();
    };
    const finish = async (child: Deno.ChildProcess) => {
      await child.stdin.close();
      return JSON.parse(await new Response(child.stdout).text()).result.ancestry;
    };
    const gone = leave();
    await gone.status;
    assert.deepEqual(await finish(gone), []);

    while (server.connections > 0) await turn();
    const replaced = leave();
    const { pid } = replaced;
    await replaced.status;
    // Accepted, and a tick of the kernel's clock ago: it cannot tell two starts within one.
    while (server.connections === 0) await turn();
    for (const accepted = ticksNow(); ticksNow() === accepted;) await turn();
    let answered = false;
    const chosen = await withPid(pid, async () => {
      assert.deepEqual(await finish(replaced), []);
      answered = true;
    });
    if (!chosen) console.log("SKIPPED the part with the pid given again: needs CAP_SYS_ADMIN");
    if (!answered) await finish(replaced);
  });
});
