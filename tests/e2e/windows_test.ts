/** What an operator does to tmux itself, and how tmux may be set up: messages still find their window. */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import { call } from "../../lib/client.ts";
import { type Row, World } from "../helpers/world.ts";

const WORKER = new URL("../agents/line_worker.ts", import.meta.url).pathname;

/** A worker that logs each line it reads, one log a repository. */
const lineWorker = (world: World, name: string) =>
  [Deno.execPath(), "run", "-A", "--quiet", "--no-lock", WORKER, `${world.dir}/${name}.log`]
    .map((word) => `'${word}'`).join(" ");

/** The messages that a worker has read. */
async function delivered(world: World, name: string): Promise<string[]> {
  const text = await Deno.readTextFile(`${world.dir}/${name}.log`).catch(() => "");
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as string)
    .filter((line) => line.startsWith("From:"));
}

async function openWorker(world: World, name: string): Promise<void> {
  await world.open(lineWorker(world, name), name);
  await world.untilScreen(name, "ready");
}

async function waiting(world: World, target: string): Promise<Row> {
  return await world.until(`the message to ${target}`, async () => {
    return (await world.history()).findLast((row) => row.target_repo === target);
  });
}

Deno.test("[B-08] a window whose copy mode is open gets its message, and stays in copy mode", async () => {
  await using world = await World.create(["alpha"]);
  await openWorker(world, "alpha");
  const window = await world.window("alpha");
  await world.tmux("copy-mode", "-t", window);
  await world.mustTamq(["send", "To:alpha: while you scroll"]);
  await world.untilHistory(1);
  assert.deepEqual(await delivered(world, "alpha"), ["From:local/o: while you scroll"]);
  const mode = ["display-message", "-p", "-t", window, "#{pane_in_mode}"];
  assert.equal(await world.tmux(...mode), "1\n");
  await world.tmux("send-keys", "-t", window, "-X", "cancel");
  await world.untilScreen("alpha", "From:local/o: while you scroll");
});

Deno.test("[E-02] [E-05] base indexes of 1, api beside api-2 as sessions and repositories: each gets its own", async () => {
  await using world = await World.create(["api", "api-2", "beta"]);
  await Deno.writeTextFile(
    `${world.dir}/home/.tmux.conf`,
    "set -g default-shell /bin/sh\nset -g base-index 1\nsetw -g pane-base-index 1\n",
  );
  await world.tmux("new-session", "-d", "-s", "api-2", "-x", "180", "-y", "50");
  const inside = world.argv(["--command", lineWorker(world, "api-2"), "api-2"])
    .map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  await world.tmux("send-keys", "-t", "=api-2:1.1", "-l", "--", inside);
  await world.tmux("send-keys", "-t", "=api-2:1.1", "Enter");
  await world.until("the window of api-2", async () => {
    const list = await world.tmux("list-windows", "-a", "-F", "#{session_name} #{@tamq_repo}");
    return list.includes("api-2 api-2");
  });
  await world.untilScreen("api-2", "ready");

  // Nobody is api yet, whose name begins another's.
  await world.mustTamq(["send", "To:api: for the short one"]);
  await world.mustTamq(["send", "To:api-2: for the long one"]);
  await world.until("the long one's", async () => (await delivered(world, "api-2")).length > 0);
  assert.equal((await waiting(world, "api")).state, "pending");

  await world.tmux("new-session", "-d", "-s", "api");
  await openWorker(world, "api");
  await openWorker(world, "beta");
  await world.untilHistory(2);
  assert.deepEqual(await delivered(world, "api"), ["From:local/o: for the short one"]);
  assert.deepEqual(await delivered(world, "api-2"), ["From:local/o: for the long one"]);
  // Outside tmux they went into a session of their own, behind one another.
  assert.equal(
    await world.tmux("list-windows", "-t", "=tamq:", "-F", "#{window_index} #{@tamq_repo}"),
    "1 api\n2 beta\n",
  );
  await world.mustTamq(["allow", "api", "beta"]);
  await world.type("api", "say To:beta: by a worker\\n");
  await world.until("beta's", async () => (await delivered(world, "beta")).length > 0);
  assert.deepEqual(await delivered(world, "beta"), ["From:api: by a worker"]);
});

Deno.test("[B-12] [E-02] the tmux server is killed: its windows are no longer there, messages wait, opening again delivers them once", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await openWorker(world, "alpha");
  await openWorker(world, "beta");
  const pid = Number(await world.tmux("display-message", "-p", "#{pid}"));
  Deno.kill(pid, "SIGKILL");
  await world.until("both to be gone", async () => {
    return (await world.mustTamq(["endpoints", "--json"])) === "" &&
      (await world.tamq(["who"])).stdout === "";
  });
  await world.mustTamq(["send", "To:alpha: one"]);
  await world.mustTamq(["send", "To:alpha: two"]);
  assert.deepEqual((await world.history()).map((row) => [row.state, row.waiting_reason]), [
    ["pending", "not_attached"],
    ["pending", "not_attached"],
  ]);
  assert.deepEqual(await delivered(world, "alpha"), []);

  await openWorker(world, "alpha");
  await world.untilHistory(2);
  assert.deepEqual(await delivered(world, "alpha"), ["From:local/o: one", "From:local/o: two"]);
});

Deno.test("[B-01] Ctrl-C reaches the worker; afterwards the terminal around the broker is as it was", async () => {
  await using world = await World.create(["alpha"]);
  await world.tmux("new-session", "-d", "-s", "shell", "-x", "120", "-y", "40", "bash --norc");
  const screen = () => world.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "=shell:");
  const shows = (what: RegExp) =>
    world.until(`${what}`, async () => {
      const text = await screen();
      return what.test(text) && text;
    });
  const enter = async (text: string) => {
    await world.tmux("send-keys", "-t", "=shell:", "-l", "--", text);
    await world.tmux("send-keys", "-t", "=shell:", "Enter");
  };
  const worker = "trap 'echo; echo interrupted; exit 9' INT; echo up; while :; do read -r x; done";
  const run = world.argv([
    "broker",
    "--repo",
    "alpha",
    "--cwd",
    world.repo("alpha"),
    "--no-service",
  ])
    .concat("--", "bash", "-c", worker)
    .map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  await Deno.writeTextFile(`${world.dir}/run.sh`, run);
  await enter(`PS1='$ '; stty -a > ${world.dir}/before; . ${world.dir}/run.sh; echo "status $?"`);
  await shows(/^up$/m);
  await world.tmux("send-keys", "-t", "=shell:", "C-c");
  await shows(/^interrupted\nstatus 9$/m);
  await enter(`stty -a > ${world.dir}/after; echo e''nd`);
  await shows(/^end$/m);
  assert.equal(
    await Deno.readTextFile(`${world.dir}/after`),
    await Deno.readTextFile(`${world.dir}/before`),
  );
  // A job of the shell's own is interrupted as ever.
  await enter("sleep 600");
  await shows(/^\$ sleep 600$/m);
  await world.tmux("send-keys", "-t", "=shell:", "C-c");
  await shows(/\^C\n\$ *$/m);
});

Deno.test("[B-08] [B-13] a stopped worker with much queued costs its window under 1 % of a core and blocks nobody", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await openWorker(world, "alpha");
  await openWorker(world, "beta");
  const socket = `${world.env.XDG_RUNTIME_DIR}/tamq.sock`;
  const { endpoints } = await call(socket, "endpoints", {});
  const { broker_pid } = endpoints.flatMap((endpoint) => endpoint.attachments)
    .find((window) => window.repo === "alpha")!;
  const worker = childOf(broker_pid);
  Deno.kill(worker, "SIGSTOP");
  let key = 0;
  const send = async (target_repo: string, body: string) =>
    (await call(socket, "send", {
      client_id: "test",
      idempotency_key: `k${key++}`,
      sender_repo: "local",
      target_repo,
      provenance: "cli",
      body,
    })).message_id;
  const injected = async (id: string) =>
    (await call(socket, "message", { message_id: id })).message.state === "injected";
  const bodies = Array.from({ length: 100 }, (_, i) => `${i} `.repeat(900).trim());
  const queued = await Promise.all(bodies.map((body) => send("alpha", body)));

  const began = systemClock.monotonic();
  const before = ticks(broker_pid);
  for (let i = 0; i < 50; i++) {
    const id = await send("beta", `${i}`);
    await world.until("beta's message", async () => await injected(id));
  }
  const used = ticks(broker_pid) - before;
  const seconds = (systemClock.monotonic() - began) / 1000;
  assert.ok(used <= Math.ceil(seconds), `${used} hundredths of a second in ${seconds} s`);
  for (const id of queued) assert.equal(await injected(id), false);

  Deno.kill(worker, "SIGCONT");
  await world.until("all", async () => (await delivered(world, "alpha")).length >= bodies.length);
  const expected = bodies.map((body) => `From:local/o: ${body}`);
  assert.deepEqual((await delivered(world, "alpha")).sort(), expected.sort());
});

function childOf(pid: number): number {
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    const found = Deno.readTextFileSync(`/proc/${pid}/task/${name}/children`).trim();
    if (found !== "") return Number(found.split(" ")[0]);
  }
  throw new Error(`${pid} has no child`);
}

/** Hundredths of a second that a process, all its threads together, has run. */
function ticks(pid: number): number {
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
