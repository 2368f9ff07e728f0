/** Stale parties as real processes that were stopped, were replaced, and come back late. */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import { Credentials } from "../../lib/fleet/credentials.ts";
import { OperatorService } from "../../lib/fleet/gen/operator_pb.ts";
import { connect } from "../../lib/fleet/rpc.ts";
import { freePort, meta, shareDispatcher, Switch, withFleet } from "../helpers/fleet_world.ts";

/** Of grpc-js a back-off timer may outlive its closed channel by a moment; it holds nothing. */
function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: false, sanitizeResources: false });
}

test("[G-15] [G-18] [G-20] a dispatcher that comes back after its successor executes nothing and changes nothing", async () => {
  await withFleet(async (world) => {
    const old = await world.dispatcher({ stop: "fleet.before_execute" });
    using road = new Switch(world.dispatcherPort);
    await world.approve();
    const agent = await world.agent({ dispatcher: `127.0.0.1:${road.port}` });
    await agent.event("fleet.joined");
    // It has issued a permit and is about to send it.
    await world.submit("e1").catch((error) => assert.equal(error.code, "DEADLINE_EXCEEDED"));
    await old.event("test.stopping");

    const dir = `${world.dir}/d2`;
    await shareDispatcher(world, dir);
    const port = freePort();
    await world.dispatcher({ dir, listen: `127.0.0.1:${port}` });
    road.turn(port);
    using credentials = await Credentials.open(
      await world.pki.give("operator", "ops2"),
      systemClock,
    );
    const link = connect(OperatorService, `127.0.0.1:${port}`, credentials.channel("dispatcher"));
    const first = world.operator;
    world.operator = link.client;
    try {
      await world.submit("e2");
      await world.settled("e2", "applied");
      await world.settled("e1", "unknown");

      const seen = old.log.length;
      old.signal("SIGCONT");
      // The agent refuses the late permit of the old epoch …
      await old.event("fleet.execution_waits", seen);
      // … and the store every change by the old instance.
      await assert.rejects(
        first.releaseExecution({ meta: meta(), executionId: "e1" }),
        { code: "ABORTED", reason: "epoch_superseded" },
      );
      await world.submit("e3");
      await world.settled("e3", "applied");
      assert.deepEqual(world.executed(), ["e2", "e3"]);
      const { execution, steps } = await world.explain("e1");
      assert.equal(execution?.state, "unknown");
      assert.equal(steps.filter(({ what }) => what === "permitted").length, 1);
    } finally {
      link.close();
    }
  });
});

test("[G-16] [G-17] an agent that comes back after a newer boot is fenced, says so and ends", async () => {
  await withFleet(async (world) => {
    await world.dispatcher();
    await world.approve();
    const old = await world.agent();
    await old.event("fleet.joined");
    await world.submit("e1");
    await world.settled("e1", "applied");
    old.signal("SIGSTOP");

    const port = freePort();
    const dir = `${world.dir}/a2`;
    await Deno.mkdir(dir, { mode: 0o700 });
    const address = `127.0.0.1:${port}`;
    const young = await world.agent({ dir, listen: address });
    await young.event("fleet.joined");
    // Its own word about where it listens has moved nothing: the operator does.
    const { agents } = await world.operator.getFleet({ meta: meta() });
    assert.equal(agents[0]?.address, `127.0.0.1:${world.agentPort}`);
    assert.equal(agents[0]?.session?.sessionGeneration, 2n);
    await world.operator.approveAgent({ meta: meta(), agentId: "a1", cellId: "cell1", address });

    old.signal("SIGCONT");
    const { why } = await old.event("fleet.stopping");
    assert.equal(why, "fenced");
    assert.equal((await old.ended()).code, 0);
    await world.submit("e2");
    await world.settled("e2", "applied");
    assert.deepEqual(world.executed(), ["e1", "e2"]);
    const after = await world.operator.getFleet({ meta: meta() });
    assert.equal(after.agents[0]?.session?.sessionGeneration, 2n);
  });
});

test("[G-05] [G-19] a drained agent gets no permit, keeps its reservation, and takes it up when resumed", async () => {
  await withFleet(async (world) => {
    await world.dispatcher();
    await world.approve();
    const agent = await world.agent();
    await agent.event("fleet.joined");
    const { AdmissionState } = await import("../../lib/fleet/gen/agent_pb.ts");
    const set = (state: number) =>
      world.operator.setAgentAdmission({ meta: meta(), agentId: "a1", state });
    const drained = await set(AdmissionState.DRAINING);
    assert.equal(drained.admissionGeneration, 2n);
    await world.submit("e1");
    const { execution } = await world.explain("e1");
    assert.deepEqual([execution?.state, execution?.permitId], ["reserved", ""]);
    assert.equal((await set(AdmissionState.OPEN)).admissionGeneration, 3n);
    await world.settled("e1", "applied");
    assert.deepEqual(world.executed(), ["e1"]);
  });
});
