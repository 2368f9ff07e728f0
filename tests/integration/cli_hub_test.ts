/** `tamq hub …` as a person uses it: real processes, a private state directory. */
import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

Deno.test("[K-19][K-21][C-01][L-02] tamq hub serves detached, keeps tasks, plans and messages, and stops", async () => {
  await using world = await World.create();
  const hub = (...args: string[]) => world.tamq(["hub", ...args]);
  const must = async (...args: string[]) => (await world.mustTamq(["hub", ...args])).trim();
  assert.equal((await hub("status")).code, 3);
  try {
    const starts = await Promise.all([
      must("serve", "--detach"),
      must("serve", "--detach"),
      must("serve", "--detach"),
    ]);
    const pids = new Set(starts.map((line) => /pid (\d+)/.exec(line)![1]));
    assert.equal(pids.size, 1, starts.join("; "));
    assert.equal(starts.filter((line) => line.includes("State Hub started")).length, 1);
    assert.equal(Deno.lstatSync(`${world.dir}/run/tamq-hub.sock`).mode! & 0o777, 0o600);
    const status = JSON.parse(await must("status", "--json"));
    assert.equal(status.address, `${world.dir}/run/tamq-hub.sock`);

    await must("plan", "add", "Release", "--id", "rel", "--active");
    await must("task", "add", "API", "--repo", "alpha", "--id", "api", "--ready", "--plan", "rel");
    await must(
      "task",
      "add",
      "Use it",
      "--repo",
      "beta",
      "--id",
      "use",
      "--depends=api",
      "--ready",
    );
    const rows = (await must("task", "list", "--json")).split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(rows.map((task) => [task.task_id, task.unsatisfied]), [["api", []], ["use", [
      "api",
    ]]]);
    assert.match(await must("task", "list"), /use +ready +beta +5 +waits for api +Use it/);
    assert.equal((await hub("task", "done", "use")).code, 1, "its dependency is not done");
    await must("task", "start", "api");
    assert.equal(await must("task", "done", "api"), "api is done");
    const open = await must("task", "list", "--actionable", "--json");
    assert.equal(JSON.parse(open).task_id, "use");
    await must("task", "block", "use", "--kind", "human", "--note", "which one?");
    assert.match(await must("task", "show", "use"), /blocked +human since [\s\S]*│ which one\?/);
    await must("task", "edit", "use", "--priority", "1", "--needs-human");
    await must("task", "ready", "use");
    assert.match(await must("task", "list"), /use +ready +beta +1 +needs a person/);
    await must("task", "edit", "use", "--no-needs-human");

    await must("message", "add", "hello", "--to", "beta", "--body", "look", "--ask");
    const message = JSON.parse(await must("message", "list", "--state", "unread", "--json"));
    assert.equal(message.requests_action, true);
    assert.match(await must("message", "ack", message.message_id), /is acknowledged$/);
    assert.match(await must("plan", "show", "rel"), /Release[\s\S]*api +done/);
    const unknown = await hub("task", "show", "nope", "--json");
    assert.equal(unknown.code, 1);
    assert.equal(JSON.parse(unknown.stderr).reason, "unknown_task");
  } finally {
    assert.match(await must("stop"), /^(State Hub stopped|no State Hub)/);
  }
  assert.equal(await must("stop"), "no State Hub was running");
  assert.equal(Deno.lstatSync(`${world.dir}/state/tamq/hub/hub.log`).mode! & 0o777, 0o600);
});
