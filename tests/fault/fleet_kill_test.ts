/** Kill points of an execution: whichever process dies wherever, nothing is executed twice. */
import assert from "node:assert/strict";
import { withFleet } from "../helpers/fleet_world.ts";

/** Of grpc-js a back-off timer may outlive its closed channel by a moment; it holds nothing. */
function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: false, sanitizeResources: false });
}

test("[G-06] [G-08] permit, execute, query: an execution ends applied, executed once", async () => {
  await withFleet(async (world) => {
    await world.dispatcher();
    await world.approve();
    await world.agent();
    await world.submit("e1");
    await world.settled("e1", "applied");
    const { steps, execution } = await world.explain("e1");
    const states = steps.map(({ what }) => what);
    assert.deepEqual(states.slice(0, 3), ["reserved", "permitted", "unknown"]);
    assert.equal(execution?.receipt?.messageId, "m-e1");
    // The same execution again is the same one.
    await world.submit("e1");
    assert.deepEqual(world.executed(), ["e1"]);
  });
});

for (const point of ["fleet.recorded_unknown", "fleet.before_adapter"]) {
  test(`[G-06] [G-20] the agent dies at ${point}: UNKNOWN, and executed by nobody`, async () => {
    await withFleet(async (world) => {
      await world.dispatcher();
      await world.approve();
      const first = await world.agent({ kill: point });
      await world.submit("e1");
      assert.equal((await first.ended()).signal, "SIGKILL");
      const second = await world.agent();
      await second.event("fleet.joined");
      await world.submit("e2");
      await world.settled("e2", "applied");
      const { execution } = await world.explain("e1");
      assert.equal(execution?.state, "unknown");
      assert.deepEqual(world.executed(), ["e2"]);
    });
  });
}

for (const point of ["fleet.after_adapter"]) {
  test(`[G-06] [G-20] the agent dies at ${point}: evidence settles it, executed once`, async () => {
    await withFleet(async (world) => {
      await world.dispatcher();
      await world.approve();
      const first = await world.agent({ kill: point });
      await world.submit("e1");
      assert.equal((await first.ended()).signal, "SIGKILL");
      await world.agent();
      await world.settled("e1", "applied");
      assert.deepEqual(world.executed(), ["e1"]);
    });
  });
}

for (const point of ["fleet.before_execute", "fleet.after_execute"]) {
  test(`[G-06] [G-15] [G-20] the dispatcher dies at ${point}: no second execution, no new id, no new permit`, async () => {
    await withFleet(async (world) => {
      const first = await world.dispatcher({ kill: point });
      await world.approve();
      const agent = await world.agent();
      await agent.event("fleet.joined");
      // The answer may die with the dispatcher; then the same request is sent again, not another.
      await world.submit("e1").catch((error) => assert.equal(error.code, "UNAVAILABLE"));
      assert.equal((await first.ended()).signal, "SIGKILL");
      await world.dispatcher();
      await world.submit("e1");
      // Its permit is of the epoch before: what the agent has is all there will be.
      const happened = point === "fleet.after_execute";
      await world.submit("e2");
      await world.settled("e2", "applied");
      await world.settled("e1", happened ? "applied" : "unknown");
      assert.deepEqual(world.executed(), happened ? ["e1", "e2"] : ["e2"]);
      const { execution, steps } = await world.explain("e1");
      assert.equal(steps.filter(({ what }) => what === "permitted").length, 1);
      assert.equal(execution?.binding?.executionId, "e1");
    });
  });
}

test("[G-06] [G-20] the answer is lost, not the execution: found by query, sent once", async () => {
  await withFleet(async (world) => {
    await world.dispatcher({ callMs: 300 });
    await world.approve();
    const agent = await world.agent();
    await agent.event("fleet.joined");
    agent.signal("SIGSTOP");
    await world.submit("e1");
    await world.settled("e1", "unknown");
    agent.signal("SIGCONT");
    await world.settled("e1", "applied");
    assert.deepEqual(world.executed(), ["e1"]);
  });
});
