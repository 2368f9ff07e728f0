import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

Deno.test("[B-15] windows opened with --record are marked, recorded through tmux, and readable afterwards", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const said = await world.mustTamq(["--record", "--command", "bash --norc", "alpha"]);
  assert.match(said, /what is shown is recorded in .*\/recordings\n/);
  await world.open("cat", "beta");
  const windows = (await world.mustTamq(["endpoints"])).split("\n");
  assert.ok(windows.find((line) => line.startsWith("alpha"))!.includes("RECORDED"));
  assert.ok(!windows.find((line) => line.startsWith("beta"))!.includes("RECORDED"));
  assert.match(await world.mustTamq(["status"]), /alpha .*RECORDED/);
  await world.type("alpha", "echo recorded-$((40+2))");
  await world.untilScreen("alpha", "recorded-42");
  const listed = JSON.parse(await world.mustTamq(["record", "list", "--json"]));
  assert.deepEqual([listed.repo, listed.active], ["alpha", true]);
  await world.type("alpha", "exit");
  await world.until("the end of the recording", async () => {
    const now = JSON.parse(await world.mustTamq(["record", "list", "--json"]));
    return now.active === false;
  });
  // The prompt's line and its answer, played into another window of the same server.
  const argv = world.argv(["record", "play", "--speed", "100", "alpha"]);
  const quoted = argv.map((word) => `'${word}'`).join(" ");
  await world.tmux("new-window", "-d", "-n", "player", `${quoted}; printf 'played=%s\\n' $?; cat`);
  await world.until("the end of the player", async () => {
    const screen = await world.tmux("capture-pane", "-p", "-S", "-", "-t", "=tamq:=player");
    return screen.includes("played=0") && screen.includes("recorded-42");
  });
});

Deno.test("[B-15] --capture reaches the window's broker, and start says where it writes", async () => {
  await using world = await World.create(["alpha"]);
  const said = await world.mustTamq(["--capture", "--command", "cat", "alpha"]);
  assert.match(said, /also written to files in .*\/captures\n/);
  await world.mustTamq(["send", "To:alpha: captured text"]);
  await world.untilHistory(1);
  const file = `${world.dir}/state/tamq/captures/alpha.jsonl`;
  const line = await world.until("the line", async () => await Deno.readTextFile(file));
  assert.match(line, /"event":"delivered".*"outcome":"written".*"body":"captured text"/);
});
