/** Agents in windows that become a newer program: what is on their screens, and what was half done (B-17). */
import assert from "node:assert/strict";
import { GEMINI } from "../../lib/pty/profiles/gemini.ts";
import { agent, become, inWords, logged, script, worldOf } from "../helpers/upgrades.ts";
import type { World } from "../helpers/world.ts";

interface Event {
  readonly event: string;
  readonly text: string;
}

/** A window of alpha with a scripted agent; `events` tells what happened in it. */
async function agentIn(world: World, fake: string, ...options: string[]) {
  const profiles = `${world.dir}/config/tamq/profiles`;
  await Deno.mkdir(profiles, { recursive: true });
  const text = GEMINI.replace(/^name = .*$/m, 'name = "fake"')
    .replace(/^match = .*$/m, `match = ["${fake}"]`).replace(/^flags = .*$/m, "");
  await Deno.writeTextFile(`${profiles}/fake.toml`, text);
  const log = `${world.dir}/agent`;
  await world.open(agent(`${fake}.ts`, log, ...options), "alpha");
  const texts = async (event: string) =>
    (await logged<Event>(`${log}.events`)).filter((one) => one.event === event)
      .map((one) => one.text);
  return {
    texts,
    received: () => Deno.readTextFile(log),
    count: (event: string, count: number) =>
      world.until(`${count} ${event}`, async () => (await texts(event)).length >= count),
  };
}

/** What the window's gate says; `""`: it is open. */
async function gate(world: World): Promise<string> {
  const { attachments } = JSON.parse(await world.mustTamq(["endpoints", "--json"])) as {
    attachments: { repo: string; gate: { open: boolean; reason: string } }[];
  };
  const { gate } = attachments.find(({ repo }) => repo === "alpha")!;
  return gate.open ? "" : gate.reason;
}
const untilGate = (world: World, reason: string) =>
  world.until(`gate "${reason}"`, async () => await gate(world) === reason);

Deno.test("[B-08][B-17] a message that is just being typed is typed and submitted once; the upgrade waits for it", async () => {
  await using world = await worldOf("alpha");
  const { texts, received, count } = await agentIn(world, "fake_chat", "--swallow-enter=1");
  await untilGate(world, "");
  await world.mustTamq(["send", "--to", "alpha", "hello there"]);
  // The first Enter is lost: the broker watches for its effect for a second and a half.
  await count("swallowed", 1);
  const quick = await script(`${world.dir}/quick`, `echo '{"formats":[1],"version":"0.2.0"}'`);
  const during = await become(world, { program: [quick], waitMs: 0 });
  assert.deepEqual(inWords(during), ["alpha unchanged delivery_in_progress"]);
  assert.deepEqual(inWords(await become(world)), ["alpha upgraded"]);
  await count("answered", 1);
  const [row] = await world.untilHistory(1);
  assert.equal(row!.attempt_count, 1);
  assert.deepEqual(await texts("submitted"), ["From:local/o: hello there"]);
  assert.equal((await received()).split("\x1b[200~").length - 1, 1);
});

Deno.test("[B-08][B-17] a dialog in which Enter means yes is a dialog to the next program as well", async () => {
  await using world = await worldOf("alpha");
  const { texts, count } = await agentIn(world, "fake_chat");
  await untilGate(world, "");
  await world.type("alpha", "ask<touch pwned>");
  await untilGate(world, "dialog_open");
  await world.mustTamq(["send", "--to", "alpha", "later"]);
  assert.deepEqual(inWords(await become(world)), ["alpha upgraded"]);
  await untilGate(world, "dialog_open");
  assert.deepEqual(inWords(await become(world)), ["alpha upgraded"]);
  await untilGate(world, "dialog_open");
  assert.deepEqual(await texts("approved"), []);
  await world.tmux("send-keys", "-t", await world.window("alpha"), "n");
  await count("submitted", 2);
  assert.deepEqual(await texts("denied"), ["touch pwned"]);
  assert.deepEqual(await texts("submitted"), [
    "ask<touch pwned>",
    "From:local/o: later",
  ]);
});

Deno.test("[B-06][B-17] an agent at work: its answer is one message, and no later upgrade makes it two", async () => {
  await using world = await worldOf("alpha", "beta");
  const { count } = await agentIn(world, "fake_chat");
  await world.open(agent("line_worker.ts", `${world.dir}/beta.log`), "beta");
  await world.mustTamq(["allow", "alpha", "beta"]);
  await untilGate(world, "");
  for (const n of [1, 2]) {
    const body = `work<3000> say<To.:beta: answer ${n}\\nsecond row\\n\\nthe end>`;
    await world.mustTamq(["send", "--to", "alpha", body]);
    await count("submitted", n);
    assert.deepEqual(inWords(await become(world)), ["alpha upgraded", "beta upgraded"]);
    await count("answered", n);
    const rows = await world.untilHistory(2 * n);
    assert.deepEqual(
      rows.filter((row) => row.sender_repo === "alpha").map(({ body }) => body).sort(),
      Array.from({ length: n }, (_, i) => `answer ${i + 1}\nsecond row`),
    );
  }
  // The operator's half-typed line is still known for one: a message waits behind it.
  await world.tmux("send-keys", "-t", await world.window("alpha"), "-l", "half a line");
  await untilGate(world, "operator_typing");
  assert.deepEqual(inWords(await become(world)), ["alpha upgraded", "beta upgraded"]);
  await untilGate(world, "operator_typing");
});
