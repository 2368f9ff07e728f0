/** The whole loop in real windows: hub change, wake, acknowledgement, completion, next wake. */
import assert from "node:assert/strict";
import { callEngine } from "../../lib/coord/client.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import { runInside } from "../helpers/cli.ts";
import { CoordWorld } from "../helpers/coord_world.ts";

const FAST = `[coordination]
retry_backoff_seconds = [0.2]
`;

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

  // The dependent task is ready once the first is done; its worker has a word for the engine yet.
  const steps = await coord.until("five steps of alpha", async () => {
    const found = (await coord.steps("alpha")).filter(({ args }) => args !== undefined);
    return found.length >= 5 && found;
  });
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
  // A person is told the command that opens the gate.
  assert.ok(
    (await coord.world.mustTamq(["coord", "explain", "gated"])).includes(
      `tamq coord approve ${gated[0]!.id} --action destructive --why TEXT`,
    ),
  );
});

Deno.test("[K-07][K-09][K-11][T-27] a worker speaks for its own lease alone; it yields, is woken again from its checkpoint, and cannot approve", async () => {
  await using coord = await CoordWorld.create(["alpha", "beta"], FAST);
  await coord.start();
  await coord.worker("alpha", "yield");
  await coord.worker("beta", "deaf");
  await coord.task("one", "alpha");
  await coord.untilDone("one");
  const wakes = await coord.wakes("alpha");
  assert.equal(wakes.length, 2);
  assert.match(wakes[1]!, /Go on from the checkpoint .*half of it.*the rest/);
  // The task is done before the worker tells the engine so.
  await coord.until("a receipt of each step", async () => {
    const [points] = await coord.rows("coord", "explain", "one");
    const kinds = (points!.receipts as { kind: string }[]).map((receipt) => receipt.kind);
    return ["trigger", "lease", "wake", "checkpoint", "completion"].every((kind) =>
      kinds.includes(kind)
    );
  });

  await coord.task("two", "beta");
  const [lease] = await coord.until("beta to be offered a lease", async () => {
    const rows = await coord.rows("coord", "leases");
    return rows.length > 0 && rows;
  });
  const outcome = async (repo: string, words: string) => {
    const before = (await coord.steps(repo)).length;
    await coord.world.type(repo, `run ${words}`);
    return await coord.until(`"${words}" in ${repo}`, async () => {
      const step = (await coord.steps(repo)).slice(before).find(({ args }) => args !== undefined);
      return step;
    });
  };
  // From the wrong window, from no window, and from the right one.
  const stolen = await outcome("alpha", `coord ack ${lease!.lease} --json`);
  assert.equal(JSON.parse(stolen.stderr!).reason, "lease_not_yours");
  const outside = await coord.world.tamq(["coord", "ack", String(lease!.lease), "--json"]);
  assert.equal(JSON.parse(outside.stderr).reason, "not_in_window");
  assert.equal(outside.code, 5);
  const own = await outcome("beta", `coord ack ${lease!.lease} --json`);
  assert.equal(own.code, 0, own.stderr ?? "");
  assert.equal((await outcome("beta", "coord lease --json")).code, 0);

  await coord.task("gated", "alpha", "--action", "destructive");
  const [trigger] = await coord.until("the gate", async () => {
    const rows = await coord.rows("coord", "triggers", "--state", "gated");
    return rows.length > 0 && rows;
  });
  const approve = ["coord", "approve", String(trigger!.id), "--action", "destructive", "--why"];
  const inside = await outcome("beta", [...approve, "mine", "--json"].join(" "));
  assert.equal(inside.code, 5);
  const answers = (typed: (challenge: string) => string) =>
    runInside([...approve, "backup made"], { env: coord.world.env, answers: [typed("?")] });
  const wrong = await answers(() => "yes");
  assert.equal(wrong.code, 5, wrong.stderr);
  assert.equal((await coord.rows("coord", "triggers", "--state", "gated")).length, 1);
  const identity = await runInside(
    ["coord", "approve", String(trigger!.id), "--action", "identity", "--why", "x", "--json"],
    { env: coord.world.env, answers: [] },
  );
  assert.equal(JSON.parse(identity.stderr).reason, "never_approvable");
  // The word is shown on the terminal; a person types it.
  const socket = `${coord.world.dir}/run/tamq-coord.sock`;
  const request = { trigger_id: String(trigger!.id), action: "destructive" };
  const { challenge } = await callEngine(socket, "challenge", request);
  const guess = { ...request, why: "backup made" };
  await assert.rejects(
    callEngine(socket, "approve", { ...guess, challenge: "aaaaaa" }),
    { reason: "challenge_wrong" },
  );
  const approved = await callEngine(socket, "approve", { ...guess, challenge: String(challenge) });
  assert.ok(Date.parse(String(approved.expires_at)) > Date.now());
  await assert.rejects(
    callEngine(socket, "approve", { ...guess, challenge: String(challenge) }),
    { reason: "challenge_wrong" },
  );
  await coord.untilDone("gated");
  // The reason is the operator's own note: no receipt of the engine or in the hub repeats it.
  await coord.until("all receipts to be published", async () => {
    const [status] = await coord.rows("coord", "status");
    return (status!.projection as { waiting: number }).waiting === 0;
  });
  using hub = new StateHubClient({ address: { unix: `${coord.world.dir}/run/tamq-hub.sock` } });
  const { items } = (await hub.call("listReceipts", { query: { limit: 500 } })).value;
  assert.ok(items.some(({ kind }) => kind === "approval"));
  const told = JSON.stringify([items, await coord.rows("coord", "explain", "gated")]);
  assert.doesNotMatch(told, /backup made|half of it|the rest/);
});

Deno.test("[K-10][K-14][K-15][C-05] no prompt, no text of a task and no token stands in receipts, logs or what the hub was told; every receipt reaches the hub", async () => {
  await using coord = await CoordWorld.create(["alpha"]);
  await coord.start();
  await coord.worker("alpha");
  await coord.task("one", "alpha", "--description", "CANARY-of-the-task");
  await coord.untilDone("one");
  await coord.until("all receipts to be published", async () => {
    const [status] = await coord.rows("coord", "status");
    return (status!.projection as { waiting: number }).waiting === 0 &&
      (await coord.rows("coord", "leases")).length === 0;
  });
  const state = `${coord.world.dir}/state/tamq`;
  const receipts = JSON.stringify(await coord.rows("coord", "explain", "one"));
  using hub = new StateHubClient({ address: { unix: `${coord.world.dir}/run/tamq-hub.sock` } });
  const { items } = (await hub.call("listReceipts", { query: { limit: 500 } })).value;
  const published = items.filter((item) => item.source_id === "one").map((item) => item.kind);
  for (const kind of ["trigger", "lease", "wake", "checkpoint", "completion"]) {
    assert.ok((published as string[]).includes(kind), `${kind} in ${published}`);
  }
  const woken = items.find((item) => item.kind === "wake" && item.status === "accepted")!;
  assert.ok(woken.local_message_id && woken.coordination_endpoint_id, "the message's identity");
  const texts = [
    receipts,
    JSON.stringify(items),
    await Deno.readTextFile(`${state}/coord/coord.log`),
    await Deno.readTextFile(`${state}/tamq.log`),
    await Deno.readTextFile(`${state}/hub/hub.log`),
  ];
  for (const text of texts) {
    assert.doesNotMatch(text, /CANARY|Before you begin|tamq coord ack|You may:/);
  }
  for (const name of ["coord.sqlite3", "coord/coord.log", "coord/service.lock"]) {
    assert.equal(Deno.lstatSync(`${state}/${name}`).mode! & 0o777, 0o600, name);
  }
  assert.equal(Deno.lstatSync(`${coord.world.dir}/run/tamq-coord.sock`).mode! & 0o777, 0o600);
});

Deno.test("[K-08][K-09][L-02][L-03][K-21] messages flow while no engine runs; several starts give one engine; it stops in order and attaches the service when it is back", async () => {
  await using coord = await CoordWorld.create(["alpha"]);
  await coord.start();
  const starts = await Promise.all([1, 2, 3].map(() => coord.coord("serve", "--detach")));
  assert.ok(starts.every((line) => line.includes("already running")), starts.join());
  await coord.worker("alpha");
  await coord.coord("stop");
  await coord.world.mustTamq(["send", "To:alpha: while no engine runs"]);
  await coord.world.untilScreen("alpha", "while no engine runs");
  assert.equal((await coord.world.tamq(["coord", "status"])).code, 3);
  await coord.task("one", "alpha");
  await coord.coord("serve", "--detach", "--verbose");
  await coord.untilDone("one");
  await coord.until("the attach", async () => {
    const log = await Deno.readTextFile(`${coord.world.dir}/state/tamq/coord/coord.log`);
    return log.includes("endpoint.attached");
  });
  const log = await Deno.readTextFile(`${coord.world.dir}/state/tamq/coord/coord.log`);
  assert.match(log, /engine\.stopped clean=true/);
});
