/**
 * Runs every command block of the documentation, page by page in its order, in a world of its own:
 * home, gita registry, tmux server, state. Agents are stand-ins; what cannot be run is listed with
 * its reason in tests/helpers/doc_rules.ts and checked by tests/unit/docs/commands_test.ts.
 */
import assert from "node:assert/strict";
import { blockCommands, type DocCommand, documentPages } from "../helpers/doc_commands.ts";
import { exceptionOf, OTHER_STATUS } from "../helpers/doc_rules.ts";
import { World } from "../helpers/world.ts";

/** The tutorial makes its own. */
const MAKES_REPOSITORIES = "docs/tutorial.md";
/** These go on until they are told to end. */
const ENDLESS = /^tamq (watch|logs -f)\b/;

async function pageWorld(page: string): Promise<World> {
  const world = await World.create();
  const bin = `${world.dir}/bin`;
  await Deno.mkdir(bin);
  const script = async (name: string, text: string) =>
    await Deno.writeTextFile(`${bin}/${name}`, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const argv = world.argv([]).map((word) => `'${word}'`).join(" ");
  await script("tamq", `exec ${argv} "$@"`);
  for (const agent of ["codex", "claude", "gemini", "opencode"]) await script(agent, "exec cat");
  world.env.PATH = `${bin}:${world.env.PATH}`;
  if (page !== MAKES_REPOSITORIES) {
    for (const name of ["alpha", "beta"]) {
      const path = `${world.env.HOME}/src/${name}`;
      await Deno.mkdir(path, { recursive: true });
      await world.must(["git", "init", "-q", path]);
      await world.must([
        "git",
        "-C",
        path,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-qm",
        "one",
        "--allow-empty",
      ]);
      await world.must(["gita", "add", path]);
    }
    await world.mustTamq(["serve", "--detach"]);
  }
  return world;
}

async function run(world: World, command: DocCommand): Promise<void> {
  const where = `${command.file}:${command.line}: ${command.text}`;
  const expected = OTHER_STATUS.find(({ pattern }) => pattern.test(command.text))?.status ?? 0;
  if (ENDLESS.test(command.text)) return await runEndless(world, command.text, where);
  const argv = ["bash", "-c", command.text];
  const { code, stdout, stderr } = await world.run(argv, { cwd: world.env.HOME });
  assert.equal(code, expected, `${where}\n${stdout}${stderr}`);
}

/** Once it has said something, it is told to end as Ctrl-C would. */
async function runEndless(world: World, text: string, where: string): Promise<void> {
  await using child = new Deno.Command("bash", {
    args: ["-c", `exec ${text} 2>&1`],
    env: world.env,
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.getReader();
  assert.ok(!(await reader.read()).done, `${where}: it ended`);
  child.kill("SIGINT");
  assert.equal((await child.status).code, 0, where);
  await reader.cancel();
}

for (const page of documentPages()) {
  const commands = blockCommands(page).filter((one) => exceptionOf(one) === undefined);
  if (commands.length === 0) continue;
  Deno.test(`[V-02] the ${commands.length} commands of ${page} do what they say they do`, async () => {
    await using world = await pageWorld(page);
    try {
      for (const command of commands) await run(world, command);
    } finally {
      for (const service of ["coord", "hub"]) await world.tamq([service, "stop"]);
    }
  });
}

Deno.test("[V-02] what the tutorial says is there to be seen is there", async () => {
  await using world = await pageWorld(MAKES_REPOSITORIES);
  const commands = blockCommands(MAKES_REPOSITORIES);
  const through = async (last: string) => {
    const end = commands.findIndex(({ text }) => text === last);
    assert.ok(end >= 0, `the tutorial has: ${last}`);
    for (const command of commands.splice(0, end + 1)) await run(world, command);
  };
  await through("gita ls");
  const names = (await world.must(["gita", "ls"])).trim().split(" ");
  assert.deepEqual(names.sort(), ["alpha", "beta"]);
  await through("tamq who");
  const who = await world.mustTamq(["who"]);
  assert.match(who, /alpha[\s\S]*beta/);
  await through("tamq send 'To:alpha: hello, alpha'");
  await world.untilScreen("alpha", "From:local/o: hello, alpha");
  assert.match(await world.mustTamq(["history"]), /injected/);
  await world.type("alpha", "To:beta: are you there?");
  await world.untilScreen("beta", "From:alpha/o: are you there?");
  // An agent that prints a block: `cat` says what is typed, but not behind an address of ours.
  const window = await world.window("beta");
  await world.tmux("send-keys", "-t", window, "C-d");
  await world.until("the window of beta to close", async () => {
    return !(await world.mustTamq(["who"])).includes("beta");
  });
  await through("tamq send --to beta 'this one waits'");
  assert.match(await world.mustTamq(["history", "--state", "pending"]), /not_attached/);
  await through("tamq --command cat beta");
  await world.untilScreen("beta", "From:local/o: this one waits");
});
