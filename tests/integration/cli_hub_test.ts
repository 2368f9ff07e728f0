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
    await must("task", "edit", "use", "--title", "Use it well", "--agent", "claude");
    assert.equal(
      JSON.parse(await must("task", "list", "--agent", "claude", "--json")).title,
      "Use it well",
    );
    await must("task", "draft", "use");

    // Gates of plans and messages, and notes of plans, as of tasks.
    await must("plan", "edit", "rel", "--needs-human", "--action", "financial", "--label", "q1,q2");
    assert.match(
      await must("plan", "list", "--status", "active"),
      /rel +active +- +needs a person/,
    );
    await must("plan", "edit", "rel", "--no-needs-human", "--description", "all of it");
    const noted = await must(
      "plan",
      "note",
      "rel",
      "wait for the audit",
      "--review",
      "--author",
      "anna",
    );
    assert.match(await must("plan", "list"), /rel +active +- +review requested/);
    assert.match(
      await must("plan", "show", "rel"),
      /anna +requests review[\s\S]*│ wait for the audit/,
    );
    await must("plan", "resolve", "rel", /noted (\S+)/.exec(noted)![1]!);
    const [plan] = (await must("plan", "show", "rel", "--json")).split("\n");
    const { needs_human, required_actions, labels, notes } = JSON.parse(plan!);
    assert.deepEqual({ needs_human, required_actions, labels }, {
      needs_human: false,
      required_actions: ["financial"],
      labels: ["q1", "q2"],
    });
    assert.ok(notes[0].resolved_at);
    await must("plan", "pause", "rel");
    await must("plan", "draft", "rel");
    await must("plan", "add", "Next", "--id", "next", "--repo", "beta", "--ready", "--needs-human");
    assert.equal(
      JSON.parse(await must("plan", "list", "--repo", "beta", "--json")).status,
      "ready",
    );
    assert.equal((await hub("plan", "edit", "rel")).code, 2, "nothing to change");
    const gated = ["--needs-human", "--action", "destructive,live", "--agent", "claude"];
    await must("message", "add", "drop it", "--to", "alpha", "--ask", "--task", "use", ...gated);
    const asking = JSON.parse(await must("message", "list", "--repo", "alpha", "--ask", "--json"));
    assert.equal(asking.sender, "operator");
    assert.equal(asking.needs_human, true);
    assert.deepEqual(asking.required_actions, ["destructive", "live"]);
    assert.deepEqual([asking.target_agent, asking.task_id], ["claude", "use"]);
    const shown = await must("message", "show", asking.message_id, "--read");
    assert.match(shown, /needs human +yes\nactions +destructive, live/);

    const unknown = await hub("task", "show", "nope", "--json");
    assert.equal(unknown.code, 1);
    assert.equal(JSON.parse(unknown.stderr).reason, "unknown_task");
    assert.match(JSON.parse(unknown.stderr).hint, /tamq hub task list$/);
    for (const [what, id] of [["task", "api"], ["plan", "rel"]] as const) {
      const repo = what === "task" ? ["--repo", "alpha"] : [];
      const taken = await hub(what, "add", "again", "--id", id, ...repo);
      assert.equal(taken.code, 4);
      assert.match(taken.stderr, new RegExp(`choose another id, .*: tamq hub ${what} edit`));
    }
  } finally {
    assert.match(await must("stop"), /^(State Hub stopped|no State Hub)/);
  }
  assert.equal(await must("stop"), "no State Hub was running");
  const left = [...Deno.readDirSync(`${world.dir}/run`)].map(({ name }) => name);
  assert.deepEqual(left.filter((name) => name.includes("hub")), []);
  assert.equal(Deno.lstatSync(`${world.dir}/state/tamq/hub/hub.log`).mode! & 0o777, 0o600);
});
