/** `tamq start` through the real command line, real tmux and real gita. */
import assert from "node:assert/strict";
import { type Result, World } from "../helpers/world.ts";

const marks = async (world: World) => {
  const list = await world.run(["tmux", "list-windows", "-a", "-F", "#{@tamq_repo}"]);
  return list.stdout.split("\n").filter((line) => line !== "").map(decodeURIComponent);
};
const hasServer = async (world: World) => (await world.run(["tmux", "list-sessions"])).code === 0;

/** One line that says what failed, one that says the way out, and the documented status. */
function refused(result: Result, code: number, message: RegExp): void {
  assert.equal(result.code, code, result.stderr);
  assert.match(result.stderr, message);
  assert.match(result.stderr, /^tamq: [^\n]+\nhint: [^\n]+\n$/);
  // What it would have run may be said before.
  assert.match(result.stdout, /^(?:will run .*\n {2}mode .*\n)?$/);
}

Deno.test("[E-04, E-05, E-07, C-07] what cannot be opened is refused at once: nothing is started, no window opened", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const csv = `${world.dir}/config/gita/repos.csv`;
  const sound = await Deno.readTextFile(csv);
  await Deno.mkdir(`${world.dir}/empty`);
  await Deno.mkdir(`${world.dir}/old`);
  await Deno.writeTextFile(`${world.dir}/old/tmux`, "#!/bin/sh\necho tmux 3.1c\n", { mode: 0o755 });
  const path = world.env.PATH!;
  const long = `/tmp/${"x".repeat(110)}/tamq.sock`;

  const open = (...args: string[]) => world.tamq(["--command", "cat", ...args]);
  refused(await open("alpha", "alpa"), 1, /no repository "alpa" .*\nhint: did you mean "alpha"/);
  refused(await open("alpha", "zzz"), 1, /no repository "zzz".*\nhint: .*gita add/);
  refused(
    await world.tamq(["--command", "no-such-program x", "alpha"]),
    1,
    /"no-such-program" in PATH/,
  );
  refused(
    await world.tamq(["--command", "./missing.sh", "alpha"]),
    1,
    /no program .*alpha\/\.\/missing\.sh/,
  );
  refused(await world.tamq(["--command", "cat | wc", "alpha"]), 2, /"\|".*\nhint: .*sh -c/);
  refused(await world.tamq(["--command", "cat 'x", "alpha"]), 2, /never closes it/);
  refused(await world.tamq(["--command", "", "alpha"]), 2, /the command is empty/);
  refused(await world.tamq(["start", "alpha"]), 2, /--command is missing/);
  refused(
    await world.tamq(["--command", "/bin/cat", "alpha"], { env: { PATH: `${world.dir}/empty` } }),
    1,
    /tmux is not installed\nhint: install tmux 3\.2/,
  );
  refused(
    await world.tamq(["--command", "/bin/cat", "alpha"], {
      env: { PATH: `${world.dir}/old:${path}` },
    }),
    1,
    /tmux 3\.1c is too old; tamq needs tmux 3\.2/,
  );

  await Deno.writeTextFile(csv, `${sound}${world.repo("beta")},alpha,,\r\n`);
  refused(
    await open("alpha"),
    1,
    /two repositories are registered as "alpha".*\nhint: .*gita rename/,
  );
  await Deno.writeTextFile(csv, `${sound}"broken`);
  refused(
    await open("alpha"),
    3,
    /repos\.csv is malformed in line 3: a quote is never closed\nhint: .*gita add/,
  );
  await Deno.remove(csv);
  refused(
    await open("alpha"),
    3,
    /no gita registry: .*repos\.csv does not exist\nhint: .*gita add/,
  );
  await Deno.writeTextFile(csv, `${sound}${world.repo("beta")},local,,\r\n`);
  refused(await open("local"), 1, /"local" is a reserved name/);
  await Deno.writeTextFile(csv, sound);

  // Automatic start fails: an error, and no window (E-06).
  refused(
    await world.tamq(["--command", "cat", "alpha"], { env: { TAMQ_SOCKET: long } }),
    2,
    /107|bytes/,
  );
  await Deno.writeTextFile(`${world.dir}/run/tamq.sock`, "not a socket");
  const squatted = await open("alpha");
  assert.notEqual(squatted.code, 0);
  assert.match(squatted.stderr, /^tamq: .*tamq\.sock[^\n]*\nhint: [^\n]+\n$/);
  assert.equal(await Deno.readTextFile(`${world.dir}/run/tamq.sock`), "not a socket");
  await Deno.remove(`${world.dir}/run/tamq.sock`);

  assert.equal(await hasServer(world), false, "no tmux server was started");
  assert.equal((await world.tamq(["ping"])).code, 3, "no service was started");
});

Deno.test("[E-05, E-02, L-01] start opens what is missing, says what it runs, and leaves alone what is open", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const first = await world.open("cat", "alpha");
  assert.match(
    first,
    /^will run cat in a window of a new tmux session "tamq": alpha\n {2}mode trigger: .*\nmessage service started \(pid \d+\)\nalpha: runs cat \(window @\d+, .*\/alpha\)\n/,
  );
  const window = await world.window("alpha");
  await world.tmux("rename-window", "-t", window, "renamed by an agent");

  const second = await world.mustTamq([
    "start",
    "alpha",
    "beta",
    "alpha",
    "--command",
    "sh -c 'cat; :'",
  ]);
  assert.match(
    second,
    /^will run sh -c .* beta\n {2}mode trigger: .*\nalpha: already open \(window @\d+\); it runs cat, and sh -c 'cat; :' was not started\nbeta: runs sh -c 'cat; :' \(window/,
  );
  assert.match(await world.open("cat", "alpha"), /^alpha: already open \(window @\d+\)\n/);
  assert.equal(await world.window("alpha"), window);
  assert.deepEqual((await marks(world)).sort(), ["alpha", "beta"]);
  assert.equal(await world.mustTamq(["who"]), "alpha\nbeta\n");
  assert.equal(await world.tmux("list-sessions", "-F", "#{session_name}"), "tamq\n");
  const endpoints = await world.mustTamq(["endpoints"]);
  assert.match(endpoints, /^REPOSITORY +ENDPOINT +WINDOW .*\nalpha +tmux-amq-\d+ +tamq @\d+ /);

  // A broker that died leaves its repository free to be opened again.
  const pane = await world.tmux("list-panes", "-t", window, "-F", "#{pane_pid}");
  await world.tmux("set-option", "-w", "-t", window, "remain-on-exit", "on");
  Deno.kill(Number(pane), "SIGKILL");
  await world.until("alpha to be gone", async () => (await world.mustTamq(["who"])) === "beta\n");
  assert.match(await world.open("cat", "alpha"), /^alpha: runs cat/m);
  assert.deepEqual((await marks(world)).sort(), ["alpha", "beta"]);
  assert.notEqual(await world.window("alpha"), window);
});

Deno.test("[E-05] inside tmux, windows are added to the session of the pane; another server is another place", async () => {
  await using world = await World.create(["alpha", "beta", "gamma"]);
  await world.tmux("new-session", "-d", "-s", "mine", "-x", "180", "-y", "50");
  await world.tmux("new-session", "-d", "-s", "mine-2");
  const type = async (args: string[], done: string) => {
    const words = world.argv(args).map((word) => `'${word}'`).join(" ");
    await world.tmux(
      "send-keys",
      "-t",
      "=mine:",
      "-l",
      "--",
      `${words} > ../${done} 2>&1; tmux wait-for -S ${done}`,
    );
    await world.tmux("send-keys", "-t", "=mine:", "Enter");
    await world.tmux("wait-for", done);
    return await Deno.readTextFile(`${world.dir}/${done}`);
  };
  await world.tmux("send-keys", "-t", "=mine:", "-l", "--", `cd ${world.dir}/home`);
  await world.tmux("send-keys", "-t", "=mine:", "Enter");
  assert.match(await type(["--command", "cat", "alpha", "beta"], "inside"), /beta: runs cat/);
  const list = await world.tmux("list-windows", "-a", "-F", "#{session_name} #{@tamq_repo}");
  assert.deepEqual(list.split("\n").sort(), ["", "mine ", "mine alpha", "mine beta", "mine-2 "]);

  const other = await type(["--command", "cat", "--tmux-socket", "lab", "gamma", "alpha"], "lab");
  assert.match(other, /gamma: runs cat[^]*show them with: tmux -L lab attach-session -t '=tamq'/);
  const lab = await world.must([
    "tmux",
    "-L",
    "lab",
    "list-windows",
    "-a",
    "-F",
    "#{session_name} #{@tamq_repo}",
  ]);
  await world.must(["tmux", "-L", "lab", "kill-server"]);
  // A repository may live in two servers; within one it is one window (E-02).
  assert.deepEqual(lab.trim().split("\n").sort(), ["tamq alpha", "tamq gamma"]);
});

Deno.test("[E-05, V-01] names with spaces, slashes, colons and formats: windows open, messages arrive, nothing is run", async () => {
  await using world = await World.create();
  const odd = ["two words", "a:b", "#(touch pwned)", "-x", "semi;"];
  for (const name of odd) await world.addRepo(name);
  await world.addRepo("p/same");
  await world.addRepo("q/same");
  const csv = await Deno.readTextFile(`${world.dir}/config/gita/repos.csv`);
  const slashed = /,(\w+\/same),/.exec(csv)![1]!;
  const names = [...odd, "same", slashed];
  await world.mustTamq(["start", "--command", "cat", "--", ...names]);
  assert.deepEqual((await marks(world)).sort(), [...names].sort());
  for (const name of names) {
    await world.mustTamq(["send", `To:${name}: hello ${name}`]);
    await world.mustTamq(["send", `--to=${name}`, "second"]);
    await world.untilScreen(name, `From:local/o: hello ${name}`);
  }
  await world.untilHistory(names.length * 2);
  for (
    const place of [
      world.dir,
      `${world.dir}/home`,
      ...odd.map((name) => world.repo(name)),
      Deno.cwd(),
    ]
  ) {
    const entries = [...Deno.readDirSync(place)].map((entry) => entry.name);
    assert.ok(!entries.includes("pwned"), place);
  }
});

Deno.test("[E-06] --no-service opens terminals with a visible warning and starts no service", async () => {
  await using world = await World.create(["alpha"]);
  const result = await world.tamq(["--command", "cat", "--no-service", "alpha"]);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stderr, /warning: --no-service: .*neither send nor receive/);
  assert.deepEqual(await marks(world), ["alpha"]);
  assert.equal((await world.tamq(["ping"])).code, 3);
});

Deno.test("[E-05] a command that ends at once is reported, not left as an open window", async () => {
  await using world = await World.create(["alpha"]);
  await world.tmux("new-session", "-d", "-s", "keep");
  const result = await world.tamq(["--command", "sh -c 'exit 4'", "alpha"]);
  // Attached for an instant or never: either way the window is gone and can be opened again.
  if (result.code !== 0) {
    assert.match(
      result.stderr,
      /^tamq: sh -c 'exit 4' ended within a moment, and the window of "alpha" closed with it\nhint: .*: cd \S+\/alpha && sh -c 'exit 4'\n$/,
    );
  }
  await world.until("the window to be gone", async () => (await marks(world)).length === 0);
  assert.match(await world.open("cat", "alpha"), /alpha: runs cat/);
});

Deno.test("[E-05] from a terminal outside tmux the session is shown, at the first repository's window", async () => {
  await using world = await World.create(["alpha", "beta"]);
  // A terminal to start from: a pane of some other server, without tmux's own variables.
  const words = world.argv(["--command", "cat", "--tmux-socket", "inner", "alpha", "beta"]);
  const outer = ["tmux", "-L", "outer", "-f", "/dev/null"];
  await world.must([
    ...outer,
    "new-session",
    "-d",
    "env",
    "-u",
    "TMUX",
    "-u",
    "TMUX_PANE",
    ...words,
  ]);
  const inner = ["tmux", "-L", "inner"];
  const client = await world.until("a client", async () => {
    const shown = await world.run([
      ...inner,
      "list-clients",
      "-F",
      "#{session_name} #{window_name}",
    ]);
    return shown.stdout.includes("alpha") && shown.stdout;
  });
  assert.equal(client, "tamq alpha\n");
  await world.must([...inner, "detach-client", "-s", "=tamq"]);
  await world.until(
    "tamq to end",
    async () => (await world.run([...outer, "list-sessions"])).code !== 0,
  );
  assert.equal(await world.mustTamq(["who"]), "alpha\nbeta\n");
  await world.must([...inner, "kill-server"]);
});
