/** The whole loop in real windows: hub change, wake, acknowledgement, completion, next wake. */
import assert from "node:assert/strict";
import { CoordWorld } from "../helpers/coord_world.ts";

Deno.test("[K-01][K-06][K-07][K-18][K-20][T-05][T-09][T-23] a ready task wakes its worker once; when it is done the dependent's worker is woken; a gated task wakes nobody", async () => {
  await using coord = await CoordWorld.create(["alpha", "beta"]);
  await coord.start();
  await coord.worker("alpha");
  await coord.worker("beta");
  await coord.task("one", "alpha");
  await coord.task("two", "beta", "--depends", "one");
  await coord.task("gated", "beta", "--action", "destructive");
  await coord.untilDone("two");
  assert.equal((await coord.wakes("alpha")).length, 1);
  assert.equal((await coord.wakes("beta")).length, 1);

  const steps = (await coord.steps("alpha")).filter(({ args }) => args !== undefined);
  assert.deepEqual(steps.map(({ code }) => code), [0, 0, 0, 0, 0], JSON.stringify(steps));
  const leases = await coord.until("both leases to be over", async () => {
    const rows = await coord.rows("coord", "leases", "--all");
    return rows.every((row) => row.state === "completed") && rows;
  });
  assert.equal(leases.length, 2);
  for (const lease of leases) {
    const [shown] = await coord.rows("message", lease.local_message_id as string);
    const message = (shown!.message ?? shown) as Record<string, unknown>;
    assert.equal(message.client_id, "coordination-engine");
    assert.equal(message.sender_repo, "coordination-engine");
    assert.equal(message.provenance, "coordination_engine");
    assert.equal(message.idempotency_key, lease.lease_id);
    assert.equal(message.correlation_id, lease.trigger_id);
    const metadata = message.metadata as Record<string, unknown>;
    assert.equal(metadata.lease_id, lease.lease_id);
    assert.equal(metadata.trigger_id, lease.trigger_id);
    assert.match(String(metadata.source_revision), /^\d+$/);
    assert.match(String(lease.coordination_endpoint_id), /^[0-9a-z]{26}$/);
  }

  const gated = await coord.rows("coord", "triggers", "--state", "gated");
  assert.deepEqual(gated.map((row) => [row.source_id, row.gates]), [["gated", ["destructive"]]]);
  const [why] = await coord.rows("coord", "explain", "gated");
  assert.match(String(why!.why), /the policy leaves to a person \(gates: destructive\)/);
  assert.deepEqual(why!.leases, []);
  // The hub has the receipts, and in them nothing but identifiers and states.
  assert.equal((await coord.rows("coord", "status"))[0]!.projection !== undefined, true);
});
