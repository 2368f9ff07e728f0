/** Profiles from the command line: what they add to a command, `tamq profile list|show|test`. */
import assert from "node:assert/strict";
import { CODEX } from "../../lib/pty/profiles/codex.ts";
import { GEMINI } from "../../lib/pty/profiles/gemini.ts";
import { World } from "../helpers/world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A program of that name that says what it was started with, then waits. */
async function program(world: World, name: string): Promise<string> {
  const file = `${world.dir}/bin/${name}`;
  await Deno.mkdir(`${world.dir}/bin`, { recursive: true });
  const script = '#!/bin/sh\necho "args[$*] color[$CHAT_COLOR]"\nread -r x\n';
  await Deno.writeTextFile(file, script, { mode: 0o755 });
  return file;
}

async function ownProfile(world: World, name: string, text: string): Promise<void> {
  const dir = `${world.dir}/config/tamq/profiles`;
  await Deno.mkdir(dir, { recursive: true });
  await Deno.writeTextFile(`${dir}/${name}.toml`, text);
}

Deno.test("[E-05] what a profile adds to a command is printed and can be left out", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const chat = await program(world, "mychat");
  await ownProfile(
    world,
    "mychat",
    'name = "mychat"\nmatch = ["mychat"]\n[launch]\nflags = ["--inline"]\nnot_with = ["login"]\n' +
      'env = { CHAT_COLOR = "blue" }\n',
  );
  const said = await world.mustTamq(["--command", `${chat} --fast`, "alpha"]);
  assert.match(
    said,
    /^ {2}profile mychat adds: --inline 'CHAT_COLOR=blue' \(--bare leaves it out\)$/m,
  );
  await world.untilScreen("alpha", "args[--inline --fast] color[blue]");
  const bare = await world.mustTamq(["start", "--bare", "--command", `${chat} --fast`, "beta"]);
  assert.doesNotMatch(bare, /adds/);
  await world.untilScreen("beta", "args[--fast] color[]");
  assert.match(await world.mustTamq(["endpoints"]), /mychat --inline --fast/);
});

Deno.test("[E-05][C-03] a profile that is wrong or unknown is refused before anything is opened", async () => {
  await using world = await World.create(["alpha"]);
  const unknown = await world.tamq(["--command", "cat", "--profile", "nope", "alpha"]);
  assert.match(unknown.stderr, /no profile "nope"\nhint: known profiles: codex, /);
  await ownProfile(world, "bad", 'name = "bad"\nmatch = ["bad"]\n[screen]\nrepli = "x"\n');
  const wrong = await world.tamq(["--command", "cat", "alpha"]);
  assert.match(wrong.stderr, /bad\.toml: unknown key "screen\.repli"\nhint: did you mean "reply"/);
  assert.notEqual((await world.run(["tmux", "list-sessions"])).code, 0);
});

Deno.test("[B-06] profiles are listed in the order in which they are tried; one shown is a file to start from", async () => {
  await using world = await World.create([]);
  assert.equal((await world.mustTamq(["profile", "show", "codex"])).trim(), CODEX.trim());
  await ownProfile(world, "codex", CODEX);
  const list = await world.mustTamq(["profile", "list"]);
  assert.match(
    list,
    /^PROFILE +COMMANDS +SOURCE\ncodex +codex +\/.*codex\.toml\ncodex +codex +built in/,
  );
  assert.match(list, /\nplain +every other +built in\n$/);
  assert.match((await world.tamq(["profile", "show", "none"])).stderr, /no profile "none"/);
});

Deno.test("[B-06][B-08] profile test: an agent that is recognised, and one whose signs are not", async () => {
  await using world = await World.create([]);
  const text = GEMINI.replace(/^name = .*$/m, 'name = "fake"')
    .replace(/^match = .*$/m, 'match = ["fake_chat"]');
  await ownProfile(world, "fake", text);
  const fake = [Deno.execPath(), "run", "-A", "--no-check", `${ROOT}tests/agents/fake_chat.ts`];
  const words = ["profile", "test", "--", ...fake, `${world.dir}/log`];
  const good = await world.tamq(words);
  assert.equal(good.code, 0, good.stdout + good.stderr);
  assert.match(good.stdout, /^profile +fake$/m);
  assert.match(good.stdout, /^state +ready$/m);
  assert.match(good.stdout, /^messages +can be delivered$/m);
  assert.equal(await Deno.readTextFile(`${world.dir}/log`), ""); // not a byte was written to it

  await ownProfile(world, "fake", text.replace(/^prompt = .*$/m, "prompt = '>>> '"));
  const bad = await world.tamq(words);
  assert.equal(bad.code, 1, bad.stdout);
  assert.match(bad.stdout, /^state +unknown: the agent's line was not found on the screen$/m);
  assert.match(bad.stdout, /^ {2}│.* Type your message/m);
});

Deno.test("[B-16] profile test: what a shell, a full-screen program and one that reads lines would get", async () => {
  await using world = await World.create([]);
  const messages = async (...words: string[]) => {
    const { code, stdout } = await world.tamq(["profile", "test", ...words]);
    return `${code}: ${/^messages +(.*)$/m.exec(stdout)?.[1]}`;
  };
  assert.equal(
    await messages("bash --norc"),
    "0: are shown in the window; nothing is typed at a shell",
  );
  assert.equal(await messages("cat"), "0: are typed as lines, once it reads them");
  assert.equal(
    await messages("sh -c 'printf \"\\033[?1049h\"; exec sleep 60'"),
    "1: wait until it ends: a full-screen program without a profile gets none",
  );
  const ended = await world.tamq(["profile", "test", "sh -c 'exit 3'"]);
  assert.match(ended.stdout, /^ended +with status 3$/m);
  assert.equal(ended.code, 1);
});
