import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

/** An operator at a tmux of their own: a client in a pane of an outer server, which types and looks. */
async function operatorAt(world: World, window: string) {
  const outer = (...args: string[]) =>
    world.must(["tmux", "-L", "outer", "-f", "/dev/null", ...args]);
  await outer("new-session", "-d", "-x", "120", "-y", "40", "env -u TMUX tmux attach -t =tamq");
  const screen = () => outer("capture-pane", "-p");
  const shows = (text: string | RegExp) =>
    world.until(`${text} on the operator's screen`, async () => {
      const now = await screen();
      return (typeof text === "string" ? now.includes(text) : text.test(now)) && now;
    });
  await world.until("the client", async () => (await world.tmux("list-clients")) !== "");
  await world.tmux("select-window", "-t", window);
  return {
    screen,
    shows,
    keys: (...keys: string[]) => outer("send-keys", ...keys),
    type: (text: string) => outer("send-keys", "-l", "--", text),
    [Symbol.asyncDispose]: () => outer("kill-server").then(() => {}),
  };
}

Deno.test("[B-03, B-04] a popup of tmux sends as the window's operator; the program there sees nothing", async () => {
  await using world = await World.create(["alpha", "beta", "gamma"]);
  await world.open("cat", "alpha", "beta");
  const conf = await Deno.readTextFile(`${world.dir}/home/.tmux.conf`);
  const line = await world.mustTamq(["compose", "--bind", "T", "--print"]);
  await world.mustTamq(["compose", "--bind", "T"]);
  await world.mustTamq(["compose", "--bind", "T"]); // ours: replaced
  assert.equal(
    await Deno.readTextFile(`${world.dir}/home/.tmux.conf`),
    conf,
    "tmux.conf is not ours",
  );
  const taken = await world.tamq(["compose", "--bind", "c"]);
  assert.notEqual(taken.code, 0);
  assert.match(taken.stderr, /c is bound already/);

  await using operator = await operatorAt(world, await world.window("alpha"));
  await operator.keys("C-b", "T");
  await operator.shows("From:alpha/o");
  await operator.shows("To (");
  await operator.type("betta");
  await operator.keys("Enter");
  await operator.shows("an empty line ends it");
  await operator.type("first; $(touch pwned)");
  await operator.keys("Enter");
  await operator.type("  second #{pane_id}");
  await operator.keys("Enter", "Enter");
  await operator.shows(/did you mean.*beta/); // the text is kept, the name asked for again
  await operator.type("beta");
  await operator.keys("Enter");
  const [sent] = await world.untilHistory(1);
  assert.deepEqual(
    [sent!.sender_repo, sent!.target_repo, sent!.provenance, sent!.body],
    ["alpha", "beta", "operator", "first; $(touch pwned)\n  second #{pane_id}"],
  );
  await world.untilScreen("beta", "From:alpha/o: first; $(touch pwned)");
  assert.equal((await world.screen("alpha")).trim(), "", "the program in the window saw it");

  // The printed line means the same where a tmux.conf has it.
  await Deno.writeTextFile(`${world.dir}/line.conf`, line);
  await world.tmux("unbind-key", "-T", "prefix", "T");
  await world.tmux("source-file", `${world.dir}/line.conf`);
  await operator.keys("C-b", "T");
  await operator.shows("To (");
  await operator.type("beta");
  await operator.keys("Enter");
  await operator.shows("an empty line ends it");
  await operator.keys("C-c"); // drops it and closes the popup
  await world.until("the popup to close", async () => !(await operator.screen()).includes("To ("));
  assert.equal((await world.history()).length, 1);

  // Without the service the text is kept, and the popup stays until that was read.
  await world.mustTamq(["stop"]);
  await operator.keys("C-b", "T");
  await operator.shows("To (");
  await operator.type("beta");
  await operator.keys("Enter");
  await operator.shows("an empty line ends it");
  await operator.type("not lost");
  await operator.keys("Enter", "Enter");
  await operator.shows("your text is in");
  await operator.keys("Enter");
  await world.until("the popup to close", async () => !(await operator.screen()).includes("To ("));
  const drafts = `${world.dir}/state/tamq/drafts`;
  const texts = [...Deno.readDirSync(drafts)].map(({ name }) =>
    Deno.readTextFileSync(`${drafts}/${name}`)
  );
  assert.deepEqual(texts, ["not lost\n"]);
});

Deno.test("[B-04] a worker cannot write as its window's operator, whatever its environment and arguments say", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("bash --norc", "alpha");
  await world.open("cat", "beta");
  const pane =
    (await world.tmux("list-panes", "-t", await world.window("beta"), "-F", "#{pane_id}"))
      .trim();
  const tamq = world.argv(["compose", "--pane", pane]).map((word) => `'${word}'`).join(" ");
  for (const disguise of ["", "env -u TMUX_PANE ", "setsid -w -c env TMUX_PANE= "]) {
    await world.type("alpha", `clear; ${disguise}${tamq}; echo status=$?`);
    await world.untilScreen("alpha", "To (");
    await world.type("alpha", "alpha");
    await world.untilScreen("alpha", "an empty line ends it");
    await world.type("alpha", "not the operator");
    await world.type("alpha", "");
    await world.untilScreen("alpha", "not sent: a command in the window of alpha may not do this");
    await world.type("alpha", "");
    await world.untilScreen("alpha", "status=1");
  }
  assert.deepEqual(await world.history(), []);
  // Without --pane it is a plain send, and of that window.
  const plain = world.argv(["compose", "--to", "beta"]).map((word) => `'${word}'`).join(" ");
  await world.type("alpha", `clear; ${plain}; echo status=$?`);
  await world.untilScreen("alpha", "an empty line ends it");
  await world.type("alpha", "as the worker");
  await world.type("alpha", "");
  const [sent] = await world.untilHistory(1);
  assert.deepEqual([sent!.sender_repo, sent!.provenance], ["alpha", "cli"]);
});
