/** `watch` of a real service, and `tamq watch` beside real windows and restarts. */
import assert from "node:assert/strict";
import { call, openWatch, type Watch } from "../../lib/client.ts";
import { type WatchFrame, watchFrame } from "../../lib/protocol/events.ts";
import { environmentOf, ServiceProcess, settingsIn, textLines } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";
import { TestWindow } from "../helpers/window.ts";
import { World } from "../helpers/world.ts";

const REPOS = JSON.stringify({ alpha: "/repos/alpha", beta: "/repos/beta" });
const run = { env: { TEST_REPOS: REPOS } };
const CANARY = "canary-body-7f3a";

function toBeta(key: string) {
  return {
    client_id: "test",
    idempotency_key: key,
    sender_repo: "local",
    target_repo: "beta",
    provenance: "cli" as const,
    body: `${CANARY} ${key}`,
    metadata: { secret: CANARY },
  };
}

/** Reads frames one at a time, each checked against the documented schema. */
function reader(watch: Watch) {
  const frames = watch.frames[Symbol.asyncIterator]();
  return async (): Promise<WatchFrame | undefined> => {
    const { value, done } = await frames.next();
    if (done) return undefined;
    assert.ok(!JSON.stringify(value).includes(CANARY), "no body, no metadata");
    return watchFrame.parse(value);
  };
}

const told = (frame: WatchFrame | undefined) =>
  frame === undefined || frame.type === "closing" ? "end" : `${frame.type}.${frame.change}`;

Deno.test("[T-25] [C-05] watch tells each change of messages, windows, gates and controls in order, without a body", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using _service = await ServiceProcess.start(settings, run);
    const { socket } = settings;
    const watch = await openWatch(socket, {});
    const next = reader(watch);
    await using beta = new TestWindow("beta");
    using stream = await beta.attach(socket);
    const { message_id } = await call(socket, "send", toBeta("one"));
    await stream.open();
    const delivery = await stream.delivery();
    await stream.settle({ lease_token: delivery.lease_token, outcome: "failed", reason: "busy" });
    await call(socket, "cancel", { message_id });
    await call(socket, "ack", { message_id });
    // What is the operator's is refused to this process while it is a window.
    stream.stream.close();
    const expected = [
      "window.attached",
      "message.admitted",
      "gate.opened",
      "message.delivering",
      "message.waiting",
      "message.cancelled",
      "message.acknowledged",
      "window.detached",
    ];
    const frames: WatchFrame[] = [];
    for (const _ of expected) frames.push((await next())!);
    assert.deepEqual(frames.map(told), expected);
    const waiting = frames[4]!;
    assert.ok(waiting.type === "message");
    assert.deepEqual(
      [waiting.message_id, waiting.reason, waiting.attempt, waiting.endpoint_id],
      [message_id, "busy", 1, `tmux-amq-${Deno.ppid}`],
    );
    assert.ok(waiting.next_attempt_at !== null);
    await call(socket, "pause", {});
    await call(socket, "resume", {});
    await call(socket, "allow", { sender_repo: "alpha", target_repo: "beta", remove: true });
    const controls = ["control.pause", "control.resume", "control.disallow"];
    for (const one of controls) assert.equal(told(await next()), one);
    watch.close();
    assert.equal(await next(), undefined);
  });
});

Deno.test("[T-25] [L-03] after an orderly restart the cursor goes on without a gap or a repetition; after a kill there is a gap", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const { socket } = settings;
    let cursor = "";
    {
      await using service = await ServiceProcess.start(settings, run);
      const watch = await openWatch(socket, {});
      const next = reader(watch);
      await call(socket, "send", toBeta("one"));
      assert.equal(told(await next()), "message.admitted");
      service.kill("SIGTERM");
      const last = await next();
      assert.equal(told(last), "service.stopping");
      assert.ok(last !== undefined && "cursor" in last);
      cursor = last.cursor;
      assert.equal(told(await next()), "end");
      assert.equal((await service.ended()).code, 0);
      watch.close();
    }
    {
      await using service = await ServiceProcess.start(settings, run);
      await call(socket, "send", toBeta("two"));
      const watch = await openWatch(socket, { cursor });
      const next = reader(watch);
      assert.deepEqual([told(await next()), told(await next())], [
        "service.started",
        "message.admitted",
      ]);
      service.kill("SIGKILL");
      assert.equal(await next(), undefined);
      watch.close();
    }
    await using _service = await ServiceProcess.start(settings, run);
    const watch = await openWatch(socket, { cursor });
    const next = reader(watch);
    const gap = await next();
    assert.ok(gap?.type === "gap" && gap.change === "restarted" && gap.missed === null);
    assert.equal(told(await next()), "service.started");
    watch.close();
  });
});

Deno.test("[T-22] [T-25] one who watches and does not read holds up nobody, neither sends nor a stop", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const { socket } = settings;
    await using service = await ServiceProcess.start(settings, run);
    const idle = await openWatch(socket, {});
    const quick = await openWatch(socket, {});
    const next = reader(quick);
    // More than the kernel keeps for a reader that does not read.
    for (let round = 0; round < 25; round++) {
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => call(socket, "send", toBeta(`${round}-${i}`))),
      );
      for (let i = 0; i < 40; i++) assert.equal(told(await next()), "message.admitted");
    }
    service.kill("SIGTERM");
    assert.equal(told(await next()), "service.stopping");
    assert.equal(told(await next()), "end");
    assert.equal((await service.ended()).code, 0);
    idle.close();
    quick.close();
  });
});

Deno.test("[C-01] tamq watch prints lines of a repository, survives a restart without gap or repetition, and ends with Ctrl-C", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const refused = await world.tamq(["watch"]);
  assert.equal(refused.code, 3);
  assert.match(refused.stderr, /hint: start it with: tamq serve --detach/);
  await world.mustTamq(["serve", "--detach"]);
  const unknown = await world.tamq(["watch", "alpa"]);
  assert.match(unknown.stderr, /no repository "alpa".*\nhint: did you mean "alpha"\?/);

  const [program, ...args] = world.argv(["watch", "--json", "alpha"]);
  await using child = new Deno.Command(program!, {
    args,
    env: world.env,
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const lines = textLines(child.stdout)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    assert.ok(!done);
    return JSON.parse(value) as { type: string; change: string; message_id?: string };
  };
  const expect = async (...names: string[]) => {
    for (const name of names) {
      const { type, change } = await next();
      assert.equal(`${type}.${change}`, name);
    }
  };
  await expect("connection.connected");
  await world.mustTamq(["send", "To:beta: not asked for"]);
  await world.mustTamq(["send", "To:alpha: asked for"]);
  await expect("message.admitted");
  await world.mustTamq(["stop"]);
  await expect("service.stopping", "connection.lost");
  await world.mustTamq(["serve", "--detach"]);
  await world.mustTamq(["send", "To:alpha: again"]);
  await expect("connection.resumed", "service.started", "message.admitted");
  // Also while it waits for a service that is away.
  await world.mustTamq(["stop"]);
  await expect("service.stopping", "connection.lost");
  child.kill("SIGINT");
  assert.equal((await child.status).code, 0);
  assert.equal((await lines.next()).done, true);
  assert.equal(await new Response(child.stderr).text(), "");
});

Deno.test("[C-01] tamq watch whose output nobody reads ends with Ctrl-C all the same, and goes on once it is read", async () => {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using _service = await ServiceProcess.start(settings, run);
    const main = new URL("../../main.ts", import.meta.url).pathname;
    const watcher = () =>
      new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", "--no-check", "--frozen", main, "watch", "--json"],
        env: environmentOf(settings),
        stdin: "null",
        stdout: "piped",
        stderr: "null",
      }).spawn();
    const stuck = watcher();
    const late = watcher();
    const readers = [stuck, late].map((child) => child.stdout.getReader());
    // Each says that it watches, and is read no further for now.
    const beginnings = await Promise.all(readers.map((reader) => reader.read()));
    // More than pipe, socket buffers and this process's read ahead hold together.
    const events = 3000;
    for (let n = 0; n < events;) {
      await Promise.all(
        Array.from({ length: 50 }, () => call(settings.socket, "send", toBeta(String(n++)))),
      );
    }
    stuck.kill("SIGINT");
    assert.equal((await stuck.status).code, 0);
    await readers[0]!.cancel();

    const decoder = new TextDecoder();
    let text = decoder.decode(beginnings[1]!.value, { stream: true });
    let told = 0;
    while (told < events) {
      const { value, done } = await readers[1]!.read();
      assert.ok(!done);
      text += decoder.decode(value, { stream: true });
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        const event = JSON.parse(line) as WatchFrame | { type: "connection" };
        if (event.type === "message") told++;
        // It fell behind further than the service remembers: that is told as well.
        if (event.type === "gap") told += event.missed!;
      }
    }
    assert.equal(told, events, "each is told of or counted as missed, none twice");
    late.kill("SIGINT");
    assert.equal((await late.status).code, 0);
    await readers[1]!.cancel();
  });
});
