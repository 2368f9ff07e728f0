/** Running windows become a newer program under their workers' feet (B-17); real tmux, real brokers. */
import assert from "node:assert/strict";
import { agent, inWords, logged, type Outcome, processes, worldOf } from "../helpers/upgrades.ts";
import type { World } from "../helpers/world.ts";

async function upgrade(world: World, ...args: string[]): Promise<readonly Outcome[]> {
  const { stdout, stderr } = await world.tamq(["upgrade", "--json", ...args]);
  assert.equal(stderr, "");
  return (JSON.parse(stdout) as { windows: Outcome[] }).windows;
}

/** The numbers of the rows that the worker's window shows, in order. */
const rows = (screen: string) =>
  [...screen.matchAll(/row (\d+)/g)].map((found) => Number(found[1]));

Deno.test("[B-17] twenty upgrades in a row: no byte of the worker's is lost, no message lost or sent twice", async () => {
  await using world = await worldOf("alpha", "beta");
  const logs = { alpha: `${world.dir}/alpha.log`, beta: `${world.dir}/beta.log` };
  await world.open(agent("counting_worker.ts", "beta", logs.alpha), "alpha");
  await world.open(agent("line_worker.ts", logs.beta), "beta");
  await world.mustTamq(["allow", "alpha", "beta"]);
  await world.untilScreen("beta", "ready");
  await world.untilScreen("alpha", "row 1");
  const before = [await processes(world, "alpha"), await processes(world, "beta")];

  const sent = { alpha: [] as string[], beta: [] as string[] };
  let notes = 0;
  const send = async () => {
    const body = `note ${++notes}`;
    for (const repo of ["alpha", "beta"] as const) {
      const { code } = await world.tamq(["send", "--to", repo, body]);
      if (code === 0) sent[repo].push(body);
      else assert.equal(code, 3); // the service is away for a moment
    }
  };
  for (let i = 0; i < 20; i++) {
    await send();
    const during = send();
    const done = await upgrade(world);
    await during;
    assert.deepEqual(inWords(done), ["alpha upgraded", "beta upgraded"], `upgrade ${i}`);
  }
  await send();

  // The same processes, told by the kernel: nobody was replaced.
  assert.deepEqual([await processes(world, "alpha"), await processes(world, "beta")], before);
  // Every row that the worker printed stands in its window, once and in order.
  const seen = rows((await world.screen("alpha")).replace(/^part of .*\n/gm, (line) => line));
  assert.ok(seen.length > 500, `${seen.length} rows`);
  assert.deepEqual(seen, seen.map((_, i) => i + 1));

  // Every block, whole, once and in order.
  const last = seen.at(-1)!;
  const blocks = Math.floor(last / 70);
  const history = await world.until("all blocks", async () => {
    const text = await world.mustTamq(["history", "--json", "--limit", "10000", "--repo", "beta"]);
    const found = text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))
      .filter((row) => row.sender_repo === "alpha");
    return found.length >= blocks && found.every((row) => row.state === "injected") && found;
  });
  const bodies = history.map((row) => row.body as string)
    .sort((a, b) => Number(/\d+/.exec(a)) - Number(/\d+/.exec(b)));
  for (const [i, body] of bodies.entries()) {
    const parts = Array.from({ length: 60 }, (_, k) => `part of ${i + 1}, row ${70 * i + 11 + k}`);
    assert.equal(body, [`block ${i + 1}`, ...parts].join("\n"));
  }

  // … and typed into the other program once; so were the operator's notes, both ways.
  const heads = async (log: string, sender: string) =>
    (await logged<string>(log)).flatMap((line) =>
      line.startsWith(`From:${sender}: `) ? [line.slice(sender.length + 7).split(" ⏎ ")[0]!] : []
    ).sort((a, b) => Number(a.split(" ")[1]) - Number(b.split(" ")[1]));
  const expected = bodies.map((_, i) => `block ${i + 1}`);
  await world.until(
    "all blocks read",
    async () => (await heads(logs.beta, "alpha")).length >= expected.length,
  );
  assert.deepEqual((await heads(logs.beta, "alpha")).slice(0, expected.length), expected);
  const admitted = (await world.history()).filter((row) => row.sender_repo === "local");
  for (const repo of ["alpha", "beta"] as const) {
    // One whose answer was lost with the service may have been stored all the same.
    const stored = admitted.filter((row) => row.target_repo === repo).map(({ body }) => body)
      .sort((a, b) => Number(a.split(" ")[1]) - Number(b.split(" ")[1]));
    assert.deepEqual(stored.filter((body) => sent[repo].includes(body)), sent[repo]);
    const read = () => heads(logs[repo], "local/o");
    await world.until("all notes read", async () => (await read()).length >= stored.length);
    assert.deepEqual(await read(), stored);
    assert.ok(stored.length > 20);
  }
});
