/** The executable of `deno task compile`, end to end; and the bundle inside it on its own. */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { bundle } from "../../scripts/bundle.ts";
import { TextLineStream } from "../agents/text_lines.ts";
import { executableSupply, obtainExecutable } from "../helpers/executable.ts";
import { withTempDir } from "../helpers/temp.ts";
import { World } from "../helpers/world.ts";

interface Upgraded {
  readonly windows: readonly { readonly outcome: string; readonly reason: string | null }[];
}

const WORKER = new URL("../agents/line_worker.ts", import.meta.url).pathname;
const PROBE = new URL("../helpers/executable_probe.ts", import.meta.url).pathname;

const supply = await executableSupply();
const ignore = supply.kind === "none";

const dir = await Deno.makeTempDir({ prefix: "tamq-" });
let made: Promise<string> | undefined;
/** Compiled once for the tests of this file. */
const executable = () => made ??= obtainExecutable(supply, `${dir}/tamq`);
Deno.test.afterAll(() => Deno.remove(dir, { recursive: true }));

/** What process `pid` runs. */
const image = (pid: number | string) => Deno.readLink(`/proc/${pid}/exe`);

Deno.test({
  name:
    "[V-03] the executable alone, in an empty folder, knows its version and leaves no file behind",
  ignore,
  async fn() {
    const path = await executable();
    await withTempDir(async (home) => {
      const env = { HOME: home, TMPDIR: home, PATH: "/nonexistent", DENO_DIR: `${home}/none` };
      const run = async (...args: string[]) => {
        const command = new Deno.Command(path, { args, env, clearEnv: true, cwd: home });
        const { code, stdout } = await command.output();
        return { code, stdout: new TextDecoder().decode(stdout) };
      };
      assert.deepEqual(await run("--version"), {
        code: 0,
        stdout: `tamq ${manifest.version}\n`,
      });
      assert.match((await run("send", "--help")).stdout, /^USAGE\n {2}tamq send/);
      assert.match((await run("completion", "bash")).stdout, /complete -F _tamq tamq/);
      assert.equal((await run("sned")).code, 2);
      // Above all no code cache: the runtime would keep it, and trust it, in the folder for
      // everybody's temporary files.
      assert.deepEqual([...Deno.readDirSync(home)], []);
    });
  },
});

Deno.test({
  name:
    "[V-03, B-01, B-05, E-05] a whole send through two tmux windows: broker and service are the executable itself; an update of its file under running brokers",
  ignore,
  async fn() {
    await using world = await World.create(["alpha", "beta"]);
    // A place of its own, which an update replaces.
    world.executable = `${world.dir}/tamq`;
    await Deno.copyFile(await executable(), world.executable);
    const log = `${world.dir}/lines.log`;
    const words = [Deno.execPath(), "run", "-A", "--quiet", "--no-lock", WORKER, log];
    const worker = words.map((word) => `'${word}'`).join(" ");
    await world.open(worker, "alpha", "beta");
    await world.untilScreen("alpha", "ready");
    await world.untilScreen("beta", "ready");

    await world.type("alpha", "say To:beta: please rebase\\nthe branch is stale\\n");
    const [row] = await world.untilHistory(1);
    assert.deepEqual(
      [row!.sender_repo, row!.target_repo, row!.provenance, row!.body],
      ["alpha", "beta", "worker", "please rebase\nthe branch is stale"],
    );
    await world.untilScreen("beta", "From:alpha: please rebase ⏎ the branch is stale");
    await world.mustTamq(["send", "To:alpha: from a shell"]);
    await world.untilScreen("alpha", "From:local/o: from a shell");

    const ping = async () => JSON.parse(await world.mustTamq(["ping", "--json"])).pid as number;
    const pid = await ping();
    assert.equal(await image(pid), world.executable);
    const panes = (await world.tmux("list-panes", "-a", "-F", "#{pane_pid}")).trim().split("\n");
    assert.deepEqual(await Promise.all(panes.map(image)), panes.map(() => world.executable));

    // Modules that are loaded late: configuration, registry, history, export, database.
    await Deno.mkdir(`${world.dir}/config/tamq`, { recursive: true });
    await Deno.writeTextFile(`${world.dir}/config/tamq/config.toml`, "grace_seconds = 4\n");
    assert.match(await world.mustTamq(["status"]), /database/);
    assert.match(await world.mustTamq(["db-version"]), /\d/);
    assert.match(await world.mustTamq(["__complete", "send", "--to", ""]), /^alpha\t/m);
    assert.match(await world.mustTamq(["export"]), /please rebase/);
    await Deno.writeTextFile(`${world.dir}/config/tamq/config.toml`, "grace_secs = 4\n");
    assert.match((await world.tamq(["ping"])).stderr, /config\.toml.*grace_secs/);
    await Deno.remove(`${world.dir}/config/tamq/config.toml`);

    // An update puts another file in its place while brokers run; they go on with the new service.
    await Deno.copyFile(world.executable, `${world.executable}.new`);
    await Deno.rename(`${world.executable}.new`, world.executable);
    assert.equal(await image(panes[0]!), `${world.executable} (deleted)`);
    await world.mustTamq(["stop"]);
    await world.type("alpha", "say To:beta: during the update\\n");
    await world.mustTamq(["serve", "--detach"]);
    await world.untilScreen("beta", "From:alpha: during the update");
    const again = await ping();
    assert.notEqual(again, pid);
    assert.equal(await image(again), world.executable);

    // … until they become it, in place.
    const upgraded = JSON.parse(await world.mustTamq(["upgrade", "--json"])) as Upgraded;
    assert.deepEqual(upgraded.windows.map(({ outcome }) => outcome), ["upgraded", "upgraded"]);
    assert.deepEqual(
      (await world.tmux("list-panes", "-a", "-F", "#{pane_pid}")).trim().split("\n"),
      panes,
    );
    assert.deepEqual(await Promise.all(panes.map(image)), panes.map(() => world.executable));
    await world.type("alpha", "say To:beta: after it\\n");
    await world.untilScreen("beta", "From:alpha: after it");
  },
});

Deno.test({
  name:
    "[V-03, E-05] executables carry terminal model, agent profiles, SQLite and the C library, and start themselves again after an update",
  ignore: supply.kind !== "compile",
  fn: () =>
    withTempDir(async (temp) => {
      const path = await obtainExecutable(supply, `${temp}/probe`, PROBE);
      const child = new Deno.Command(path, {
        args: [temp],
        cwd: temp,
        stdin: "piped",
        stdout: "piped",
      }).spawn();
      const reader = child.stdout.pipeThrough(new TextLineStream()).getReader();
      assert.deepEqual(JSON.parse((await reader.read()).value!), {
        row: "  model",
        pty: true,
        answer: 42,
        profile: "codex",
        secret: true,
      });
      // Another file takes its place while it runs.
      await Deno.writeTextFile(`${path}.new`, "");
      await Deno.rename(`${path}.new`, path);
      await child.stdin.close();
      assert.deepEqual(JSON.parse((await reader.read()).value!), [path, "serve"]);
      assert.equal((await reader.read()).done, true);
      assert.ok((await child.status).success);
    }),
});

Deno.test("[V-03, V-05] the bundle runs from anywhere as one file and starts its own service", async () => {
  await using world = await World.create(["alpha"]);
  const file = `${world.dir}/one file.js`;
  await bundle(file);
  assert.doesNotMatch(await Deno.readTextFile(file), /from\s*"node:/);
  const deno = Deno.env.get("TAMQ_TEST_DENO") ?? Deno.execPath();
  const command = `${world.dir}/tamq`;
  await Deno.writeTextFile(
    command,
    `#!/bin/sh\nexec '${deno}' run -A --no-config --no-check '${file}' "$@"\n`,
    { mode: 0o755 },
  );
  world.executable = command;
  assert.equal(await world.mustTamq(["--version"]), `tamq ${manifest.version}\n`);
  await world.open("cat", "alpha");
  await world.mustTamq(["send", "To:alpha: through the bundle"]);
  await world.untilScreen("alpha", "From:local/o: through the bundle");
  const { pid } = JSON.parse(await world.mustTamq(["ping", "--json"])) as { pid: number };
  const argv = (await Deno.readTextFile(`/proc/${pid}/cmdline`)).split("\0");
  assert.ok(argv.includes(file), argv.join(" "));

  const { windows } = JSON.parse(await world.mustTamq(["upgrade", "--json"])) as Upgraded;
  assert.deepEqual(windows.map(({ outcome, reason }) => [outcome, reason]), [["upgraded", null]]);
  await world.mustTamq(["send", "To:alpha: through the next one"]);
  await world.untilScreen("alpha", "From:local/o: through the next one");
});
