/** Delivery streams of a real service over a real socket. */
import assert from "node:assert/strict";
import { call, openStream } from "../../lib/client.ts";
import { SpoolFile } from "../../lib/pty/spool_file.ts";
import { ServiceProcess, settingsIn } from "../helpers/service.ts";
import { RawClient } from "../helpers/raw_socket.ts";
import { withTempDir } from "../helpers/temp.ts";
import { TestWindow } from "../helpers/window.ts";

const REPOS = JSON.stringify({ alpha: "/repos/alpha", beta: "/repos/beta" });
const run = { env: { TEST_REPOS: REPOS } };

function toBeta(key: string) {
  return {
    client_id: "test",
    idempotency_key: key,
    sender_repo: "local",
    target_repo: "beta",
    provenance: "cli" as const,
    body: key,
  };
}

Deno.test("[T-25] one delivery at a time, pushed when the gate opens, answered when settled", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using _service = await ServiceProcess.start(settings, run);
    await using beta = new TestWindow("beta");
    using stream = await beta.attach(settings.socket);
    for (const key of ["one", "two", "three"]) await call(settings.socket, "send", toBeta(key));
    const waiting = (await call(settings.socket, "history", {})).messages;
    assert.deepEqual(waiting.map((message) => message.attempt_count), [0, 0, 0], "gate is closed");
    await stream.open();
    for (const key of ["one", "two", "three"]) {
      const delivery = await stream.delivery();
      assert.equal(delivery.envelope.body, key);
      assert.equal(delivery.attempt, 1);
      // Nothing further while this one is out: its own answer is the next frame.
      assert.deepEqual(
        await stream.settle({ lease_token: delivery.lease_token, outcome: "written" }),
        { type: "settled", lease_token: delivery.lease_token, accepted: true },
      );
      const message_id = delivery.message_id;
      const { message } = await call(settings.socket, "message", { message_id });
      assert.equal(message.state, "injected");
      if (key !== "three") continue;
      // Repeating a report changes nothing, and says so.
      const again = await stream.settle({ lease_token: delivery.lease_token, outcome: "failed" });
      assert.deepEqual(again, {
        type: "settled",
        lease_token: delivery.lease_token,
        accepted: false,
        reason: "lease_lost",
      });
      assert.equal(
        (await call(settings.socket, "message", { message_id })).message.state,
        "injected",
      );
    }
  });
});

Deno.test("[T-25] a restart in the middle of a delivery never shows the message twice", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using beta = new TestWindow("beta");
    const { socket } = settings;
    const delivery = await (async () => {
      await using service = await ServiceProcess.start(settings, run);
      using stream = await beta.attach(socket);
      await stream.open();
      await call(socket, "send", toBeta("first"));
      await call(socket, "send", toBeta("second"));
      const delivery = await stream.delivery();
      // The broker has written it; before its report arrives the service is gone.
      service.kill("SIGKILL");
      assert.equal(await stream.next(), undefined, "end of file tells the broker");
      return delivery;
    })();
    await using _service = await ServiceProcess.start(settings, run);
    const { lease_token } = delivery;
    using stream = await beta.attach(socket, { lease_token, outcome: "written" });
    await stream.open();
    // The next thing delivered is the other message, not the first again.
    assert.equal((await stream.delivery()).envelope.body, "second");
    const { message, attempts } = await call(socket, "message", {
      message_id: delivery.message_id,
    });
    assert.equal(message.state, "injected");
    assert.equal(message.attempt_count, 1);
    assert.deepEqual(attempts.map((attempt) => attempt.outcome), ["written"]);
  });
});

Deno.test("[T-25] [E-02] [L-03] closing is said before the end; a second window of a repository is refused", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using service = await ServiceProcess.start(settings, run);
    await using beta = new TestWindow("beta");
    using stream = await beta.attach(settings.socket);
    const { endpoints } = await call(settings.socket, "endpoints", {});
    assert.deepEqual(endpoints.map((e) => [e.endpoint_id, e.repos]), [
      [`tmux-amq-${Deno.ppid}`, ["beta"]],
    ]);
    // Another broker instance of this (living) process: the repository has its window.
    await using second = new TestWindow("beta", "another");
    await assert.rejects(second.attach(settings.socket), { reason: "already_attached" });
    service.kill("SIGTERM");
    assert.deepEqual(await stream.next(), { type: "closing", reason: "shutting_down" });
    assert.equal(await stream.next(), undefined);
    assert.equal((await service.ended()).code, 0);
  });
});

Deno.test("[T-25] [T-22] a frame that is none ends the stream with its reason and detaches the window", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using service = await ServiceProcess.start(settings, run);
    await using beta = new TestWindow("beta");
    const cases: [string, string][] = [
      ["nonsense\n", "request_not_json"],
      ['{"type":"dance"}\n', "field_invalid"],
      ['{"type":"gate","open":true,"colour":1}\n', "unknown_field"],
      ["x".repeat(70_000), "request_too_large"],
    ];
    for (const [bytes, reason] of cases) {
      using client = await RawClient.open(settings.socket);
      const line = JSON.stringify({ op: "attach", protocol: "0.1", ...beta.request() });
      assert.equal((await client.ask(line + "\n")).ok, true);
      assert.deepEqual(await client.ask(bytes), { type: "closing", reason });
      assert.equal(await client.answer(), undefined);
      await service.event("window.detached");
      assert.deepEqual((await call(settings.socket, "endpoints", {})).endpoints, []);
    }
  });
});

Deno.test("[E-03] what a handshake said is in the endpoint's data, also in the receipt", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using _service = await ServiceProcess.start(settings, run);
    await using beta = new TestWindow("beta");
    await assert.rejects(
      openStream(settings.socket, beta.request({ path: "/repos/alpha" })),
      { reason: "path_mismatch" },
    );
    using stream = await beta.attach(settings.socket);
    assert.deepEqual(stream.stream.response.capabilities, ["bounded_delivery_ack_v1"]);
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(settings.database, { readOnly: true });
    try {
      const rows = db.prepare("SELECT data FROM receipts WHERE kind = 'attach'").all();
      assert.equal(rows.length, 1, "the refused one left none");
      const data = JSON.parse(String(rows[0]!.data));
      assert.equal(data.repo, "beta");
      assert.equal(data.protocol, "0.1");
      assert.deepEqual(data.capabilities, ["bounded_delivery_ack_v1"]);
      assert.deepEqual(data.command, ["cat"]);
    } finally {
      db.close();
    }
  });
});

Deno.test("[B-13] what a dead broker left in its spool is sent, once, in order, as its repository's", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const spool = SpoolFile.create(settings.spoolDir, {
      repo: "alpha",
      path: "/repos/alpha",
      instance: "dead1",
    });
    for (let sequence = 1; sequence <= 3; sequence++) {
      const target = sequence === 2 ? "nobody-of-that-name" : "beta";
      const body = `message ${sequence}`;
      spool.append({ type: "message", sequence, target, body, provenance: "worker" });
    }
    await spool.sync();
    spool.close(); // its broker died
    for (let round = 0; round < 2; round++) {
      await using _service = await ServiceProcess.start(settings, run);
      const { messages } = await call(settings.socket, "history", {});
      assert.deepEqual(
        messages.reverse().map((m) => [m.sender_repo, m.provenance, m.body]),
        [["alpha", "worker", "message 1"], ["alpha", "worker", "message 3"]],
      );
      assert.deepEqual([...Deno.readDirSync(settings.spoolDir)], [], "and it is gone");
    }
  });
});

Deno.test("[B-13] [B-12] a broker that is killed: its window is detached and its last words are sent", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using service = await ServiceProcess.start(settings, run);
    const entry = new URL("../helpers/receiver_entry.ts", import.meta.url).pathname;
    const config = new URL("../../deno.json", import.meta.url).pathname;
    const broker = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--quiet", "--config", config, entry]
        .concat(settings.socket, settings.spoolDir),
      stdin: "piped",
      stdout: "null",
    }).spawn();
    await service.event("window.attached");
    broker.kill("SIGKILL");
    await Promise.all([broker.status, broker.stdin.close().catch(() => {})]);
    const adopted = await service.event("spool.adopted");
    assert.equal(adopted!.messages, 1);
    assert.deepEqual((await call(settings.socket, "endpoints", {})).endpoints, []);
    const { messages } = await call(settings.socket, "history", {});
    assert.deepEqual(
      messages.map((m) => [m.sender_repo, m.target_repo, m.provenance, m.body]),
      [["beta", "alpha", "worker", "last words"]],
    );
  });
});
