/** `tamq inbox`, and `tamq send` in an editor. */
import assert from "node:assert/strict";
import { runInside } from "../helpers/cli.ts";
import { type Row, World } from "../helpers/world.ts";

Deno.test("[Q-04, C-01, E-07] inbox: what waits and why, then what came; the window's own repository; also with the service stopped", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const none = await world.tamq(["inbox", "alpha"]);
  assert.deepEqual([none.code, none.stdout], [0, ""]);
  await world.open("cat", "alpha");
  await world.mustTamq(["send", "To:alpha: came first"]);
  await world.mustTamq(["send", "To:alpha: came second"]);
  await world.mustTamq(["send", "To:beta: not alpha's"]);
  await world.untilHistory(3, (row) => row.target_repo === "beta" || row.state === "injected");
  await world.mustTamq(["pause"]);
  await world.mustTamq(["send", "To:alpha: waits first\nwith a second line"]);
  await world.mustTamq(["send", "To:alpha: waits second"]);

  const rows = async (...args: string[]) => {
    const text = await world.mustTamq(["inbox", "--json", ...args]);
    return text.split("\n").slice(0, -1).map((line) => JSON.parse(line) as Row);
  };
  const all = await rows("alpha");
  assert.deepEqual(all.map(({ body }) => body.split("\n")[0]), [
    "waits first",
    "waits second",
    "came second",
    "came first",
  ]);
  assert.deepEqual(all.map(({ waiting_reason }) => waiting_reason), [
    "paused",
    "paused",
    null,
    null,
  ]);
  assert.deepEqual((await rows("-n1", "alpha")).length, 3);

  const text = await world.mustTamq(["inbox", "alpha"]);
  const lines = text.split("\n");
  assert.match(lines[0]!, /^WAITING$/);
  assert.match(
    lines[1]!,
    /^ {2}[0-9a-z]{26} {2}local\/o +pending \(paused\) +\d+s ago +waits first ⏎ with a second line$/,
  );
  assert.ok(lines.includes("RECENT"));
  assert.match(await world.mustTamq(["inbox", "--full", "alpha"]), /^ {2}│ with a second line$/m);

  // Without a name: the window's, or a usage error.
  const outside = await world.tamq(["inbox"]);
  assert.equal(outside.code, 2);
  assert.match(outside.stderr, /no repository is given, and this is no window of tamq's/);
  const tamq = world.argv(["inbox", "--json"]).map((word) => `'${word}'`).join(" ");
  await world.open(`sh -c "${tamq} > ${world.dir}/in-window; cat"`, "beta");
  await world.until(
    "inbox in the window",
    async () =>
      (await Deno.readTextFile(`${world.dir}/in-window`).catch(() => "")).includes("not alpha's"),
  );

  const unknown = await world.tamq(["inbox", "alpa"]);
  assert.equal(unknown.code, 1);
  assert.match(
    unknown.stderr,
    /no repository "alpa" is registered.*\nhint: did you mean "alpha"\?/,
  );

  await world.mustTamq(["stop"]);
  assert.equal((await rows("alpha")).length, 4);
  const narrow = await runInside(["inbox", "alpha", "--color", "never"], {
    env: world.env,
    columns: 40,
  });
  for (const line of narrow.stdout.split("\n")) assert.ok(line.length <= 40, line);
});

/** An editor that writes down what it was shown and puts `text` above the scissors. */
async function editor(world: World, text: string, status = 0): Promise<string> {
  const path = `${world.dir}/an editor`;
  await Deno.writeTextFile(
    path,
    `#!/bin/sh
for last; do :; done
cp "$last" '${world.dir}/shown'
stat -c %a "$last" > '${world.dir}/mode'
${text === "" ? "" : `{ cat '${world.dir}/text'; sed '1d' '${world.dir}/shown'; } > "$last"`}
exit ${status}
`,
    { mode: 0o700 },
  );
  await Deno.writeTextFile(`${world.dir}/text`, text);
  return `'${path}' --wait`;
}

function drafts(world: World): string[] {
  try {
    return [...Deno.readDirSync(`${world.dir}/state/tamq/drafts`)].map(({ name }) => name);
  } catch {
    return [];
  }
}

Deno.test("[C-01, C-05, C-07] send without arguments opens the editor on a template; the text is sent and the draft removed", async () => {
  await using world = await World.create(["alpha"]);
  await world.mustTamq(["serve", "--detach"]);
  const send = async (args: string[], text: string, status = 0) => {
    const VISUAL = await editor(world, text, status);
    const env = { ...world.env, EDITOR: "/nonexistent", VISUAL };
    return await runInside(["send", ...args], { env, answers: [] });
  };
  const sent = await send([], "To:alpha: first\n# a heading of the text\nlast\n\n");
  assert.equal(sent.code, 0, sent.stderr);
  assert.equal((await world.history())[0]!.body, "first\n# a heading of the text\nlast");
  const shown = await Deno.readTextFile(`${world.dir}/shown`);
  assert.match(shown, /^To:\n# -+ >8 -+\n# Write To:REPO: .*\n(# .*\n)*# Repositories: alpha\n$/);
  assert.equal((await Deno.readTextFile(`${world.dir}/mode`)).trim(), "600");
  assert.deepEqual(drafts(world), []);

  const named = await send(["--to", "alpha", "--edit", "begun"], "finished\n");
  assert.equal(named.code, 0, named.stderr);
  assert.match(await Deno.readTextFile(`${world.dir}/shown`), /^begun\n# -+ >8/);
  assert.equal((await world.history())[1]!.body, "finished");

  // Nothing, or an editor that gives up: nothing is sent, status 1.
  for (const text of ["", "To:\n", "To:alpha:\n", "\n \n"]) {
    const nothing = await send([], text);
    assert.deepEqual([nothing.code, nothing.stdout], [1, ""], text);
    assert.match(nothing.stderr, /no text was written; nothing was sent/);
  }
  const gaveUp = await send([], "", 1);
  assert.equal(gaveUp.code, 1);
  assert.match(gaveUp.stderr, /ended with status 1; nothing was sent/);
  assert.deepEqual(drafts(world), []);
  assert.equal((await world.history()).length, 2);

  // What was written is not lost when it cannot be sent.
  const wrong = await send([], "To:alfa: kept\n");
  assert.equal(wrong.code, 1);
  const path = /your text is in (\S+): tamq send --file FILE/.exec(wrong.stderr)?.[1];
  assert.equal(await Deno.readTextFile(path!), "To:alfa: kept\n");
  assert.equal(Deno.statSync(path!).mode! & 0o777, 0o600);
});

Deno.test("[C-01] send: an editor that needs a shell, is missing, or has no terminal is refused with the way out", async () => {
  await using world = await World.create(["alpha"]);
  const send = (EDITOR: string, args: string[] = []) =>
    runInside(["send", ...args], { env: { ...world.env, EDITOR }, answers: [] });
  const shell = await send("vi; touch pwned");
  assert.equal(shell.code, 2);
  assert.match(shell.stderr, /only a shell understands/);
  const missing = await send("/nonexistent/editor");
  assert.equal(missing.code, 1);
  assert.match(
    missing.stderr,
    /"\/nonexistent\/editor" cannot be run.*\nhint: set VISUAL or EDITOR/,
  );
  assert.deepEqual(drafts(world), []);
  const piped = await world.tamq(["send", "--edit"], { env: { EDITOR: "true" } });
  assert.equal(piped.code, 2);
  assert.match(piped.stderr, /--edit needs a terminal/);
  assert.equal((await world.tamq(["send"], { env: { EDITOR: "true" } })).code, 2);
  assert.match((await send("true", ["--edit", "--file", "x"])).stderr, /exclude each other/);
});
