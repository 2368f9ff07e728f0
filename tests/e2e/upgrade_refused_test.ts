/** A broker that cannot become another program stays what it is and works on; the reason is told (B-17). */
import assert from "node:assert/strict";
import { agent, become, inWords, logged, processes, script, worldOf } from "../helpers/upgrades.ts";

Deno.test("[B-17][E-07] a program that is missing, broken, foreign, too new or gone at the last moment is not become", async () => {
  await using world = await worldOf("alpha");
  const log = `${world.dir}/alpha.log`;
  await world.open(agent("line_worker.ts", log), "alpha");
  await world.untilScreen("alpha", "ready");
  const before = await processes(world, "alpha");
  const check = async (name: string, text: string, expected: string) => {
    const path = text === "" ? `${world.dir}/${name}` : await script(`${world.dir}/${name}`, text);
    const [told] = inWords(await become(world, { program: [path] }));
    assert.equal(told, expected.replaceAll("PROGRAM", path));
    // It works on: what is typed comes back, messages go both ways, and nobody was replaced.
    await world.mustTamq(["send", "--to", "alpha", `after ${name}`]);
    await world.until(
      "the message",
      async () =>
        (await logged<string>(log)).filter((line) => line.endsWith(`after ${name}`)).length === 1,
    );
    assert.deepEqual(await processes(world, "alpha"), before);
  };
  await check("missing", "", "alpha unchanged cannot run PROGRAM: there is no such file");
  await check(
    "broken",
    "echo 'error: module not found' >&2; exit 1",
    "alpha unchanged PROGRAM does not run here: error: module not found",
  );
  await check(
    "foreign",
    "echo hello",
    "alpha unchanged PROGRAM is no tamq that can go on from this one",
  );
  await check(
    "newer",
    `echo '{"formats":[2,3],"version":"7.0.0"}'`,
    "alpha unchanged version 7.0.0 does not go on from this one (format 1): " +
      "end the command in the window and start it again",
  );
  // It answers the check, and cannot be run any more when it comes to it.
  await check(
    "fleeting",
    `rm -- "$0"; echo '{"formats":[1],"version":"0.2.0"}'`,
    "alpha unchanged cannot run PROGRAM: No such file or directory",
  );
  // The next one that can be become is.
  assert.deepEqual(inWords(await become(world)), ["alpha upgraded"]);
  assert.deepEqual(await processes(world, "alpha"), before);
});

Deno.test("[B-17] keys that nobody has read yet are waited for, in bounded time; none is lost", async () => {
  await using world = await worldOf("alpha");
  const log = `${world.dir}/alpha.log`;
  await world.open(agent("line_worker.ts", log), "alpha");
  await world.untilScreen("alpha", "ready");
  const [, worker] = await processes(world, "alpha");
  // A stopped reader: the terminal takes some thousand bytes, the broker keeps the rest.
  Deno.kill(Number(worker), "SIGSTOP");
  const lines = Array.from({ length: 60 }, (_, i) => `line ${i} ${"x".repeat(990)}`);
  for (const line of lines) await world.type("alpha", line);
  const [told] = inWords(await become(world, { waitMs: 300 }));
  assert.equal(told, "alpha unchanged worker_not_reading");
  Deno.kill(Number(worker), "SIGCONT");
  assert.deepEqual(inWords(await become(world)), ["alpha upgraded"]);
  await world.until("all lines", async () => (await logged(log)).length >= lines.length);
  assert.deepEqual(await logged(log), lines);
});

Deno.test("[B-17][T-27] a command in a worker's window may not replace the others' brokers", async () => {
  await using world = await worldOf("alpha");
  await world.open("bash --norc", "alpha");
  await world.untilScreen("alpha", "bash-");
  const [broker] = await processes(world, "alpha");
  const service = JSON.parse(await world.mustTamq(["ping", "--json"])) as { pid: number };
  const words = world.argv(["upgrade", "--json"]).join(" ");
  await world.type("alpha", `${words}; echo status $?`);
  const shown = await world.untilScreen("alpha", "status 5");
  assert.match(shown, /worker_refused/);
  assert.equal((await processes(world, "alpha"))[0], broker);
  // Nor was the service stopped for it.
  const after = JSON.parse(await world.mustTamq(["ping", "--json"])) as { pid: number };
  assert.equal(after.pid, service.pid);
});
