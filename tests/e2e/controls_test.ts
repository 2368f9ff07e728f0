/** What the operator holds back and lets go, through real windows, real tmux and the command line. */
import assert from "node:assert/strict";
import { type Row, World } from "../helpers/world.ts";

const AGENTS = new URL("../agents/", import.meta.url).pathname;
const agent = (file: string, ...args: string[]) =>
  [Deno.execPath(), "run", "-A", "--quiet", "--no-lock", AGENTS + file, ...args]
    .map((word) => `'${word}'`).join(" ");

async function configure(world: World, toml: string): Promise<void> {
  await Deno.mkdir(`${world.dir}/config/tamq`, { recursive: true });
  await Deno.writeTextFile(`${world.dir}/config/tamq/config.toml`, toml);
}

async function status(world: World) {
  const { stdout } = await world.tamq(["status", "--json"]);
  return JSON.parse(stdout) as {
    controls: {
      ok: boolean;
      paused_at: string | null;
      held: { sender_repo: string; target_repo: string; messages: number }[];
      blocked: { sender_repo: string; target_repo: string; refused: number }[];
    };
  };
}

const workers = (rows: Row[]) => rows.filter((row) => row.provenance === "worker");
const BURST = 5;

for (const names of [["alpha", "beta"], ["alpha", "beta", "gamma"]]) {
  Deno.test(`[B-14] a ring of ${names.length} windows that answer each other is stopped, seen and let go again`, async () => {
    await using world = await World.create(names);
    await configure(world, `[guard]\nburst = ${BURST}\nper_hour = 0\n`);
    for (const [at, name] of names.entries()) {
      await world.open(
        agent("answering_worker.ts", names[(at + 1) % names.length]!),
        name,
      );
      await world.untilScreen(name, "ready");
    }
    await world.mustTamq(["send", "To:alpha: begin"]);
    const { controls } = await world.until("the block", async () => {
      const seen = await status(world);
      return seen.controls.blocked.length > 0 && seen;
    });
    // One pair stopped is the ring stopped: nobody is left to answer.
    assert.deepEqual(controls.blocked, [{
      ...controls.blocked[0]!,
      sender_repo: "alpha",
      target_repo: "beta",
      refused: 1,
    }]);
    assert.equal(controls.ok, false);
    assert.equal(workers(await world.history()).length, names.length * BURST);
    const shown = await world.tamq(["status"]);
    assert.equal(shown.code, 1);
    assert.match(shown.stdout, /blocked +alpha → beta, 1 refused +tamq unblock alpha beta/);
    const log = await Deno.readTextFile(`${world.dir}/state/tamq/tamq.log`);
    assert.match(log, /warn +storm_guard\.blocked sender=alpha target=beta/);
    // What the window's status line says.
    assert.match(log, /notice text="message to beta NOT sent, storm_guard: .*tamq unblock alpha/);

    assert.match(await world.mustTamq(["unblock", "alpha", "beta"]), /may write to beta again/);
    assert.deepEqual((await status(world)).controls.blocked, []);
    await world.mustTamq(["send", "To:alpha: again"]);
    await world.until(
      "a further answer",
      async () => workers(await world.history()).length > names.length * BURST,
    );
  });
}

Deno.test("[B-18] windows of two sessions: a worker's message is held and seen, the operator's is not; tamq allow lets it go", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open(agent("line_worker.ts", `${world.dir}/lines.log`), "alpha");
  await world.untilScreen("alpha", "ready");
  // The operator's second session, with windows of its own.
  await world.tmux("new-session", "-d", "-s", "private", "-x", "200", "-y", "50");
  const inside = world.argv(["--command", "cat", "beta"]).map((word) => `'${word}'`).join(" ");
  await world.tmux("send-keys", "-t", "=private:", "-l", "--", inside);
  await world.tmux("send-keys", "-t", "=private:", "Enter");
  await world.until("beta's window", async () => {
    const who = await world.tamq(["who"]);
    return who.stdout.includes("beta");
  });

  await world.type("alpha", "To:beta: from a person");
  await world.untilScreen("beta", "From:alpha/o: from a person");
  await world.mustTamq(["send", "To:beta: from a shell"]);
  await world.untilScreen("beta", "From:local/o: from a shell");

  await world.type("alpha", "say To:beta: from a program\\n");
  const held = await world.until("the held message", async () => {
    const rows = await world.history();
    return rows.find((row) => row.provenance === "worker");
  });
  assert.equal(held.waiting_reason, "held: not allowed");
  const log = await Deno.readTextFile(`${world.dir}/state/tamq/tamq.log`);
  assert.match(log, /notice text="message to beta is held; to let it go: tamq allow alpha beta"/);
  assert.deepEqual((await status(world)).controls.held, [
    { sender_repo: "alpha", target_repo: "beta", messages: 1 },
  ]);
  assert.match(
    await world.mustTamq(["status"]),
    /held +alpha → beta, 1 waiting +tamq allow alpha beta/,
  );
  assert.match(
    await world.mustTamq(["allow", "alpha", "beta"]),
    /alpha may write to beta\n.*: 1\n/,
  );
  await world.mustTamq(["allow", "--remove", "beta", "alpha"]);
  const changed = (await world.mustTamq(["logs", "service"])).match(/(?<=operator\.changed ).*/g);
  assert.deepEqual(changed, [
    "op=allow sender=alpha target=beta both=false remove=false",
    "op=allow sender=beta target=alpha both=false remove=true",
  ]);
  await world.untilScreen("beta", "From:alpha: from a program");
  assert.deepEqual((await status(world)).controls.held, []);
  assert.match(await world.mustTamq(["status"]), /^may write +alpha → beta$/m);
});

Deno.test("[B-11, B-18] tamq pause and resume, tamq release of a window in mode hold", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.mustTamq(["--command", "cat", "--mode", "hold", "alpha"]);
  await world.open("cat", "beta");
  await world.mustTamq(["send", "To:alpha: held back"]);
  const waiting = async (body: string) => {
    const row = (await world.history()).find((one) => one.body === body)!;
    const shown = JSON.parse(await world.mustTamq(["message", row.message_id, "--json"]));
    return (shown as { message: Row }).message.waiting_reason;
  };
  await world.until("readiness", async () => {
    const who = await world.mustTamq(["endpoints", "--json"]);
    return who.split('"open":true').length === 3;
  });
  assert.match((await waiting("held back"))!, /^held: the window takes what is released/);
  assert.match(await world.mustTamq(["release", "alpha"]), /: 1\n/);
  await world.untilScreen("alpha", "From:local/o: held back");

  assert.match(await world.mustTamq(["pause"]), /tamq resume/);
  await world.mustTamq(["stop"]);
  await world.mustTamq(["serve", "--detach"]);
  await world.mustTamq(["send", "To:beta: during the pause"]);
  assert.equal(await waiting("during the pause"), "paused");
  assert.match(await world.mustTamq(["status"]), /paused +all deliveries +tamq resume/);
  assert.equal(await world.mustTamq(["resume"]), "deliveries go on\n");
  await world.untilScreen("beta", "From:local/o: during the pause");
  assert.equal(await world.mustTamq(["resume"]), "nothing was paused\n");
});

Deno.test("[T-27, B-14, B-18] inside a window none of it is obeyed: an agent lifts none of its own limits", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("bash --norc", "alpha");
  await world.untilScreen("alpha", "bash-");
  await world.mustTamq(["serve", "--detach"]);
  const attempts = [
    ["allow", "alpha", "beta"],
    ["unblock", "alpha", "beta"],
    ["pause"],
    ["resume"],
    ["release", "alpha"],
  ];
  for (const [at, args] of attempts.entries()) {
    const words = world.argv(args).map((word) => `'${word}'`).join(" ");
    await world.type("alpha", `${words} 2>../said.${at}; echo $? > ../code.${at}`);
  }
  for (const [at, args] of attempts.entries()) {
    const code = await world.until(args.join(" "), async () => {
      const text = await Deno.readTextFile(`${world.dir}/repos/code.${at}`).catch(() => "");
      return text.trim() !== "" && text.trim();
    });
    const said = await Deno.readTextFile(`${world.dir}/repos/said.${at}`);
    assert.equal(code, "5", said);
    assert.match(said, /window of alpha may not do this\nhint: .*outside/);
  }
  assert.equal((await status(world)).controls.paused_at, null);
});

Deno.test("[T-24, T-14, T-15] acknowledged mode in a real window: the envelope says tamq ack ID; unacknowledged it comes again", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await configure(
    world,
    '[delivery]\nack_mode = "acknowledged"\nack_seconds = 2\nmax_attempts = 9\n',
  );
  const log = `${world.dir}/lines.log`;
  await world.open(agent("line_worker.ts", log), "alpha");
  await world.untilScreen("alpha", "ready");
  const id = (await world.mustTamq(["send", "To:alpha: take this on"])).trim();
  const lines = async () => {
    const text = await Deno.readTextFile(log).catch(() => "");
    return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as string);
  };
  // The same message, until somebody acknowledges it.
  const twice = await world.until("the second presentation", async () => {
    const seen = await lines();
    return seen.length >= 2 && seen;
  });
  for (const line of twice) {
    assert.equal(line, `From:local/o: take this on ⏎ (tamq ack ${id})`);
  }
  // The words are a command that works as it stands there.
  const words = /\(tamq (ack \w+)\)$/.exec(twice[0]!)![1]!.split(" ");
  await world.mustTamq(words);
  const { message, attempts } = JSON.parse(await world.mustTamq(["message", id, "--json"])) as {
    message: Row;
    attempts: { outcome: string }[];
  };
  assert.equal(message.state, "acknowledged");
  assert.equal(attempts[0]!.outcome, "written");
  assert.ok(message.attempt_count >= 2);

  // And from the window that was shown it.
  await world.open("bash --norc", "beta");
  await world.untilScreen("beta", "bash-");
  const second = (await world.mustTamq(["send", "To:beta: and this"])).trim();
  await world.untilScreen("beta", `(tamq ack ${second})`);
  await world.type("beta", world.argv(["ack", second]).map((word) => `'${word}'`).join(" "));
  await world.until(
    "the acknowledgement",
    async () =>
      (await world.history()).some((row) =>
        row.message_id === second && row.state === "acknowledged"
      ),
  );
});
