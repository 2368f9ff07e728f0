/** The main job through the real command line, real tmux and real gita. */
import assert from "node:assert/strict";
import { type Row, World } from "../helpers/world.ts";

const WORKER = new URL("../agents/line_worker.ts", import.meta.url).pathname;

/** A worker that logs each line it reads; returns the command and a reader of the log. */
function lineWorker(world: World, reply?: string) {
  const quoted = (text: string) => `'${text.replaceAll("'", `'"'"'`)}'`;
  const log = `${world.dir}/lines.log`;
  const words = [Deno.execPath(), "run", "-A", "--quiet", "--no-lock", WORKER];
  const command = [...words, log, ...(reply === undefined ? [] : [reply])].map(quoted).join(" ");
  const lines = async () => {
    const text = await Deno.readTextFile(log).catch(() => "");
    return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as string);
  };
  return { command, lines };
}

const from = (lines: string[]) => lines.filter((line) => line.startsWith("From:"));
const bodies = (rows: Row[]) => rows.map((row) => row.body);

Deno.test("[B-01, B-02, B-04, B-05, B-09, E-05, L-01] a worker's block reaches the other program as one submission", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const worker = lineWorker(world);
  await world.open(worker.command, "alpha", "beta");
  await world.untilScreen("alpha", "ready");
  await world.untilScreen("beta", "ready");

  await world.type("alpha", "say To:beta: please rebase\\nthe branch is stale\\n");
  const rows = await world.untilHistory(1);

  assert.equal(rows.length, 1);
  const [row] = rows as [Row];
  assert.equal(row.provenance, "worker");
  assert.equal(row.sender_repo, "alpha");
  assert.equal(row.target_repo, "beta");
  assert.equal(row.state, "injected");
  assert.equal(row.body, "please rebase\nthe branch is stale");
  const got = await world.until(
    "the line",
    async () => from(await worker.lines()).length > 0 && from(await worker.lines()),
  );
  assert.deepEqual(got, ["From:alpha: please rebase ⏎ the branch is stale"]);
});

Deno.test("[B-16, B-05] in shells a block is displayed, never typed: hostile bodies run nothing", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("bash --norc", "alpha", "beta");
  await world.untilScreen("alpha", "bash-");
  await world.untilScreen("beta", "bash-");

  await world.type("alpha", "printf 'To:beta: please rebase\\nsecond line\\n\\n'");
  await world.untilHistory(1);
  const shown = await world.untilScreen("beta", "second line");
  assert.match(shown, /^From:alpha: please rebase\n {2}second line$/m);

  const hostile = ["; touch pwned", "$(touch pwned)", "`touch pwned`", "x\ntouch pwned", "!!"];
  for (const body of hostile) {
    await world.mustTamq(["send", "--to", "beta", "--file", "-"], { stdin: body });
  }
  await world.mustTamq(["send", "To:beta: the last one"]);
  await world.untilScreen("beta", "the last one");
  await world.untilHistory(hostile.length + 2);
  // A command typed after them all proves that the prompt is clean and that nothing waits in it.
  await world.type("beta", "ls -A | wc -l > ../listed");
  const listed = await world.until("the listing", async () => {
    const text = await Deno.readTextFile(`${world.dir}/repos/listed`).catch(() => "");
    return text.trim() !== "" && text.trim();
  });
  assert.equal(listed, "1", "only .git stands in the repository");
});

Deno.test("[B-03, B-04, B-05] what the operator types goes out once, and its echo and delivery are not routed again", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("cat", "alpha", "beta");

  await world.type("alpha", "To:beta: hello");
  await world.untilHistory(1);
  await world.untilScreen("beta", "From:alpha/o: hello");
  // cat has printed the typed line and the delivery a second time by now: a message sent after that
  // proves that nothing else was routed.
  await world.until("cat's repetition", async () => {
    const screen = await world.screen("beta");
    return screen.split("From:alpha/o: hello").length === 3;
  });
  await world.type("alpha", "");
  await world.type("beta", "");
  await world.type("beta", "To:alpha: done");
  await world.untilScreen("alpha", "From:beta/o: done");
  const rows = await world.untilHistory(2);
  assert.deepEqual(
    rows.map((row) => [row.sender_repo, row.target_repo, row.provenance, row.body]).sort(),
    [["alpha", "beta", "operator", "hello"], ["beta", "alpha", "operator", "done"]],
  );
});

Deno.test("[T-06, T-08, B-04, C-01] tamq send: text, standard input and file, from a shell and from inside a window", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const worker = lineWorker(world);
  await world.open(worker.command, "alpha");
  await world.untilScreen("alpha", "ready");

  await world.mustTamq(["send", "To:alpha: as text"]);
  await world.mustTamq(["send", "--to", "alpha"], { stdin: "from stdin\n" });
  await Deno.writeTextFile(`${world.dir}/body`, "from a file\nof two lines\n");
  await world.mustTamq(["send", "--to", "alpha", "--file", `${world.dir}/body`]);
  const rows = await world.untilHistory(3);
  assert.deepEqual(bodies(rows).sort(), ["as text", "from a file\nof two lines", "from stdin"]);
  assert.ok(rows.every((row) => row.provenance === "cli" && row.sender_repo === "local"));

  await world.open("bash --norc", "beta");
  await world.untilScreen("beta", "bash-");
  const quoted = world.argv(["send", "To:alpha: from within"]).map((word) => `'${word}'`).join(" ");
  await world.type("beta", quoted);
  const all = await world.untilHistory(4);
  const within = all.find((row) => row.body === "from within")!;
  assert.equal(within.sender_repo, "beta");
  assert.equal(within.provenance, "cli");
  await world.until("the lines", async () => from(await worker.lines()).length === 4);
  assert.deepEqual(from(await worker.lines()).sort(), [
    "From:beta: from within",
    "From:local/o: as text",
    "From:local/o: from a file ⏎ of two lines",
    "From:local/o: from stdin",
  ]);
});

Deno.test("[B-13, B-12, L-01, T-26] what is typed and printed while the service is stopped arrives once, in order", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const worker = lineWorker(world);
  await world.open(worker.command, "alpha", "beta");
  await world.untilScreen("alpha", "ready");
  await world.untilScreen("beta", "ready");

  await world.mustTamq(["stop"]);
  assert.equal((await world.tamq(["ping"])).code, 3);
  await world.type("alpha", "say To:beta: one\\n");
  // Else the operator's Enter may come before the program prints.
  await world.untilScreen("alpha", "\nTo:beta: one");
  await world.type("alpha", "To:beta: two");
  await world.type("alpha", "say To:beta: three\\n");
  await world.untilScreen("alpha", "To:beta: three");
  await world.mustTamq(["serve", "--detach"]);

  await world.untilHistory(3);
  const got = await world.until("three lines", async () => {
    const lines = from(await worker.lines());
    return lines.length >= 3 && lines;
  });
  assert.deepEqual(got, ["From:alpha: one", "From:alpha/o: two", "From:alpha: three"]);
  assert.equal((await world.history()).length, 3);
});

Deno.test("[L-04, T-19, T-25] kill -9 of the service, then start: what was acknowledged is there, once", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const worker = lineWorker(world);
  await world.open(worker.command, "alpha");
  await world.untilScreen("alpha", "ready");

  const acknowledged: string[] = [];
  for (let round = 0; round < 5; round++) {
    const sends = [0, 1, 2].map(async (i) => {
      const body = `round ${round} message ${i}`;
      const result = await world.tamq(["send", `To:alpha: ${body}`, "--json"]);
      if (result.code === 0) acknowledged.push(body);
    });
    const { pid } = JSON.parse(await world.mustTamq(["ping", "--json"])) as { pid: number };
    if (round % 2 === 0) await sends[0];
    Deno.kill(pid, "SIGKILL");
    await Promise.all(sends);
    await world.mustTamq(["serve", "--detach"]);
  }
  await world.until("all acknowledged ones injected", async () => {
    const rows = await world.history();
    return acknowledged.every((body) =>
      rows.some((r) => r.body === body && r.state === "injected")
    );
  });
  const rows = await world.history();
  assert.equal(new Set(bodies(rows)).size, rows.length, "no message is stored twice");
});

Deno.test("[E-02, E-05, L-02] opening twice, also at the same time, gives one window and one service", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const opened = await Promise.all([1, 2, 3].map(() => world.tamq(["--command", "cat", "alpha"])));
  assert.deepEqual(
    opened.map((result) => result.code),
    [0, 0, 0],
    opened.map((r) => r.stderr).join(),
  );
  await world.open("cat", "alpha", "beta");
  const list = await world.tmux("list-windows", "-a", "-F", "#{@tamq_repo}");
  assert.deepEqual(list.trim().split("\n").sort(), ["alpha", "beta"]);
  assert.deepEqual((await world.mustTamq(["who"])).trim().split("\n").sort().length, 2);
});

Deno.test("[B-12] a worker that ends closes its block, and its messages wait", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("cat", "beta");
  await world.open("sh -c 'read line; echo \"To:beta: last words\"; exit 3'", "alpha");
  await world.type("alpha", "go");
  await world.untilScreen("beta", "From:alpha: last words");
  await world.until("alpha to be gone", async () => {
    const who = await world.mustTamq(["who", "--json"]);
    return !who.includes("alpha");
  });
  await world.mustTamq(["send", "To:alpha: are you there"]);
  const rows = await world.until("the waiting message", async () => {
    const found = (await world.history()).find((row) => row.target_repo === "alpha");
    return found !== undefined && found;
  });
  assert.equal(rows.state, "pending");
  await world.open("cat", "alpha");
  await world.untilScreen("alpha", "From:local/o: are you there");
});

Deno.test("[B-12] [B-13] the last words of a worker that ends at once arrive without another window", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("cat", "alpha");
  // Whether such a window was attached before it closed is a race, and so is the command's status.
  await world.tamq(["--command", "sh -c 'echo To:alpha: hi; echo'", "beta"]);
  await world.untilScreen("alpha", "From:beta: hi");
  assert.equal((await world.history()).length, 1);
});

Deno.test("[B-04] a background job of a window is that window's, not the operator's", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("bash --norc", "alpha", "beta");
  await world.untilScreen("beta", "bash-");
  const send = world.argv(["send", "To:alpha: from a job"]).map((word) => `'${word}'`).join(" ");
  await world.type(
    "beta",
    `(p=$BASHPID; sh -c "while kill -0 $p 2>/dev/null; do :; done; ${send}" &)`,
  );
  const [row] = await world.untilHistory(1);
  assert.equal(row!.sender_repo, "beta");
});

Deno.test("[B-04] a shell of the operator's own in the same tmux server is the operator", async () => {
  await using world = await World.create(["alpha"]);
  await world.open("cat", "alpha");
  // The server was started by tamq itself and carries a broker's arguments.
  await world.tmux("new-window", "-d", "-t", "=tamq:", ...world.argv(["send", "To:alpha: mine"]));
  const [row] = await world.untilHistory(1);
  assert.deepEqual([row!.sender_repo, row!.provenance], ["local", "cli"]);
});
