/** What happens between two programs, while nobody is at the terminal's other end (B-17). */
import assert from "node:assert/strict";
import { agent, become, inWords, logged, processes, script, worldOf } from "../helpers/upgrades.ts";
import type { World } from "../helpers/world.ts";

const quoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ");

/**
 * Has alpha's window become the program under test, which does not begin before `during` is over.
 * `reaping`: what stands in between collects children, as a shell does.
 */
async function inTheGap(
  world: World,
  during: () => Promise<unknown>,
  reaping = false,
): Promise<string[]> {
  const [begun, go] = [`${world.dir}/begun`, `${world.dir}/go`];
  await world.must(["mkfifo", go]);
  const wait = reaping ? `cat ${go}` : `read -r _ < ${go}`;
  const path = await script(
    `${world.dir}/slow`,
    `if [ "$1" = broker ]; then : > ${begun}; ${wait}; fi
exec ${quoted(world.argv([]))} "$@"`,
  );
  const done = become(world, { program: [path], repos: ["alpha"] });
  const exists = () => Deno.stat(begun).then(() => true, () => false);
  await world.until("the gap", exists);
  await during();
  await Deno.writeTextFile(go, "\n");
  return inWords(await done);
}

Deno.test("[B-01][B-17] keys, output and a new size that come in the gap are there behind it", async () => {
  await using world = await worldOf("alpha", "beta");
  const log = `${world.dir}/alpha.log`;
  await world.open(agent("line_worker.ts", log), "alpha");
  await world.open("cat", "beta");
  await world.mustTamq(["allow", "alpha", "beta"]);
  await world.untilScreen("alpha", "ready");
  const window = await world.window("alpha");
  const [broker, worker] = await processes(world, "alpha");
  // The line is begun before and ended behind: the operator's half line is known to the next one.
  await world.tmux("send-keys", "-t", window, "-l", "To:beta: from");
  await world.untilScreen("alpha", "To:beta: from");
  const outcome = await inTheGap(world, async () => {
    await world.tmux("send-keys", "-t", window, "-l", " the operator");
    await world.tmux("resize-window", "-t", window, "-x", "93", "-y", "31");
  });
  assert.deepEqual(outcome, ["alpha upgraded"]);
  await world.tmux("send-keys", "-t", window, "Enter");
  const [row] = await world.untilHistory(1);
  assert.deepEqual([row!.body, row!.provenance], ["from the operator", "operator"]);
  await world.type("alpha", "say row 1\\nrow 2");
  await world.untilScreen("alpha", "row 2");
  assert.deepEqual(await logged(log), ["To:beta: from the operator", "say row 1\\nrow 2"]);
  await world.until("the size", async () => {
    const size = await world.run(["stty", "-F", `/proc/${worker}/fd/0`, "size"]);
    return size.stdout.trim() === "31 93";
  });
  assert.equal((await processes(world, "alpha"))[0], broker);
});

for (const reaping of [false, true]) {
  Deno.test(`[B-12][B-17] a worker that ends in the gap${reaping ? ", its end collected by another" : ""}: its last words are sent, its window closes`, async () => {
    await using world = await worldOf("alpha", "beta");
    const speak = `${world.dir}/speak`;
    const words = `printf 'To:beta: half, '; while [ ! -e ${speak} ]; do sleep 0.02; done; ` +
      `printf 'whole\\nand good-bye\\n'; exit 7`;
    await world.open(quoted(["sh", "-c", words]), "alpha");
    await world.open(agent("line_worker.ts", `${world.dir}/beta.log`), "beta");
    await world.mustTamq(["allow", "alpha", "beta"]);
    await world.untilScreen("alpha", "half");
    const [, worker] = await processes(world, "alpha");
    await inTheGap(world, async () => {
      await Deno.writeTextFile(speak, "");
      await world.until("its end", async () => {
        const stat = await Deno.readTextFile(`/proc/${worker}/stat`).catch(() => "gone");
        return stat === "gone" || stat.includes(") Z ");
      });
    }, reaping);
    const [row] = await world.untilHistory(1);
    assert.equal(row!.body, "half, whole\nand good-bye");
    await world.until(
      "the window's end",
      async () =>
        !(await world.tmux("list-windows", "-a", "-F", "#{@tamq_repo}")).includes("alpha"),
    );
    assert.equal((await world.history()).length, 1);
  });
}

Deno.test("[B-15][B-17] a recording goes on in a second file, and both can be played", async () => {
  await using world = await worldOf("alpha");
  const log = `${world.dir}/alpha.log`;
  await world.mustTamq(["start", "--record", "--command", agent("line_worker.ts", log), "alpha"]);
  await world.untilScreen("alpha", "ready");
  await world.type("alpha", "say before it");
  await world.untilScreen("alpha", "\nbefore it");
  assert.deepEqual(inWords(await become(world)), ["alpha upgraded"]);
  await world.type("alpha", "say behind it");
  await world.untilScreen("alpha", "\nbehind it");
  const casts = await world.until("both", async () => {
    const dir = `${world.dir}/state/tamq/recordings`;
    const names = [...Deno.readDirSync(dir)].map(({ name }) => name);
    const texts = await Promise.all(names.map((name) => Deno.readTextFile(`${dir}/${name}`)));
    const second = texts.find((text) => text.includes("behind it"));
    const first = texts.find((text) => text.includes("before it") && text !== second);
    return first !== undefined && second !== undefined && [first, second];
  });
  assert.ok(casts[0]!.endsWith("]\n"));
  for (const cast of casts) {
    for (const line of cast.split("\n").slice(0, -1)) JSON.parse(line);
  }
});
