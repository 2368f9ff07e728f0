/** Agent profiles: the built-in ones, the operator's own, and what a wrong one is told. */
import assert from "node:assert/strict";
import type { TamqError } from "../../lib/base/errors.ts";
import {
  builtInProfile,
  isAgentProfile,
  launchWith,
  loadUserProfiles,
  PROFILE_NAMES,
  profileFor,
  profileNamed,
} from "../../lib/pty/profiles/catalog.ts";
import { commandName } from "../../lib/model/command_name.ts";
import { parseProfile } from "../../lib/pty/profiles/schema.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[B-09] every built-in profile is valid and found by the commands that it names", async () => {
  assert.deepEqual(PROFILE_NAMES, ["codex", "claude", "gemini", "opencode", "plain"]);
  for (const name of PROFILE_NAMES.filter((name) => name !== "plain")) {
    const profile = (await builtInProfile(name))!;
    assert.equal(profile.name, name);
    for (const command of profile.match) {
      assert.equal((await profileFor([`/usr/bin/${command}`])).name, name);
    }
    assert.equal((await profileNamed(name)).name, name);
  }
  assert.equal((await profileFor(["bash"])).name, "plain");
  assert.equal(isAgentProfile(await profileFor(["cat"])), false);
  await assert.rejects(
    () => profileNamed("codx"),
    (error: TamqError) => error.reason === "profile_unknown" && /codex/.test(error.hint!),
  );
});

Deno.test("[B-09] the command behind a runner decides", () => {
  const names: [string[], string][] = [
    [["codex"], "codex"],
    [["/opt/x/bin/codex.js", "resume"], "codex"],
    [["node", "--require", "x.js", "/x/gemini.mjs"], "gemini"],
    [["env", "-u", "TERM", "A=1", "claude", "--debug"], "claude"],
    [["npx", "-y", "@openai/codex@0.171.0"], "codex"],
    [["deno", "run", "-A", "tests/agents/fake_ink.ts", "log"], "fake_ink"],
    [["python3", "codex"], "python3"],
    [[], ""],
  ];
  for (const [argv, name] of names) assert.equal(commandName(argv), name, argv.join(" "));
});

Deno.test("[E-05] flags of a profile are added once, shown, and not to other modes", async () => {
  const codex = (await builtInProfile("codex"))!;
  assert.deepEqual(launchWith(codex, ["codex", "--model", "x"]), {
    argv: ["codex", "--no-alt-screen", "--no-daemon", "--model", "x"],
    env: {},
    added: ["--no-alt-screen", "--no-daemon"],
  });
  assert.deepEqual(launchWith(codex, ["node", "/x/codex.js", "--no-daemon"]).argv, [
    "node",
    "/x/codex.js",
    "--no-alt-screen",
    "--no-daemon",
  ]);
  assert.deepEqual(launchWith(codex, ["codex", "exec", "hi"]).added, []);
  const claude = (await builtInProfile("claude"))!;
  assert.deepEqual(launchWith(claude, ["claude"]).added, [
    "CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN=1",
  ]);
  // What the operator set stays.
  assert.deepEqual(launchWith(claude, ["claude"], () => "0").env, {});
  assert.deepEqual(launchWith(await profileFor(["bash"]), ["bash"]).added, []);
});

const MINE = `
name = "mine"
match = ["mychat", "codex"]
[launch]
flags = ["--inline"]
[input]
submit_delay_ms = 120
queues = true
[status.busy]
rows = ['^thinking']
[screen]
reply = '# '
echo = '\\$ '
prompt = '\\$ '
`;

Deno.test("[B-09] the operator's own profiles come first; none is fine", async () => {
  await withTempDir(async (dir) => {
    assert.deepEqual(await loadUserProfiles(`${dir}/profiles`), []);
    await Deno.mkdir(`${dir}/profiles`);
    await Deno.writeTextFile(`${dir}/profiles/README`, "not a profile");
    await Deno.writeTextFile(`${dir}/profiles/mine.toml`, MINE);
    const own = await loadUserProfiles(`${dir}/profiles`);
    const profile = await profileFor(["codex"], own);
    assert.ok(isAgentProfile(profile));
    assert.equal(profile.name, "mine");
    assert.equal(profile.pasteEnterMs, 120);
    assert.equal(profile.input.queues, true);
    assert.equal(profile.input.submit, "\r");
    assert.equal(profile.screen.reply!.test("# words"), true);
    assert.equal(profile.screen.reply!.test("  # words"), false, "marks stand at a row's start");
    await Deno.writeTextFile(`${dir}/profiles/other.toml`, MINE.replace("mine", "other"));
    await assert.rejects(
      () => loadUserProfiles(`${dir}/profiles`),
      (error: TamqError) =>
        error.message.includes("other.toml") && error.message.includes('match: "mychat"'),
    );
  });
});

Deno.test("[C-03] a wrong profile is told file, key and what is allowed", () => {
  const wrong: [string, RegExp, RegExp?][] = [
    ["name = ", /x\.toml: not valid TOML/],
    ['name = "a"', /x\.toml: match: /],
    ['name = "A b"\nmatch = ["a"]', /x\.toml: name: must be 1 to 32/],
    ['name = "a"\nmatch = []', /x\.toml: match: /],
    ['name = "a"\nmatch = ["a"]\nmatsh = 1', /unknown key "matsh"/, /did you mean "match"/],
    ['name = "a"\nmatch = ["a"]\n[input]\npaste = "fast"', /input\.paste: .*bracketed.*plain/],
    ['name = "a"\nmatch = ["a"]\n[input]\nsubmit_delay_ms = 99999', /input\.submit_delay_ms: /],
    ["name = 'a'\nmatch = ['a']\n[screen]\nreply = '('", /screen\.reply: is no regular expression/],
    ["name = 'a'\nmatch = ['a']\n[status.busy]\nrow = ['x']", /status\.busy\.row/, /rows/],
    ["name = 'a'\nmatch = ['a']\n[launch.env]\n'A B' = 'x'", /launch\.env\.A B/],
    ["name = 'a'\nmatch = ['a']\n[screen]\necho = 'x'", /screen\.reply: missing/],
  ];
  for (const [text, message, hint] of wrong) {
    assert.throws(
      () => parseProfile(text, "x.toml"),
      (error: TamqError) =>
        error.reason === "profile_invalid" && message.test(error.message) &&
        (hint === undefined || hint.test(error.hint ?? "")),
      `${text} should be told ${message}`,
    );
  }
});

Deno.test("[B-09] the documented example is a valid profile with every key", async () => {
  const text = await Deno.readTextFile(new URL("../../docs/profiles.md", import.meta.url));
  const example = /```toml\n([\s\S]*?)```/.exec(text)![1]!;
  const profile = parseProfile(example, "docs/profiles.md");
  assert.equal(profile.name, "mychat");
  const flat = JSON.stringify(profile, (_, value) => value instanceof RegExp ? `${value}` : value);
  assert.equal(flat.includes("undefined"), false);
  for (const [key, value] of Object.entries({ ...profile.screen, ...profile.input })) {
    assert.notEqual(value, undefined, key);
  }
});
