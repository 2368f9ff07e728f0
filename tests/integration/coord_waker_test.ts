/** Decisions, leases and clocks of the engine, against a real State Hub and a scripted transport. */
import assert from "node:assert/strict";
import { writeHandle } from "../../lib/coord/leases.ts";
import { onProbe } from "../../lib/base/probe.ts";
import { type CoordRig, withCoord } from "../helpers/coord_rig.ts";

const held = ({ store }: CoordRig) => store.leases.held();
const handle = (rig: CoordRig) => {
  const [lease] = held(rig);
  assert.ok(lease, "a lease is held");
  return { leaseId: lease.leaseId, token: lease.fencingToken };
};
const worker = (rig: CoordRig, type: "acknowledge" | "renew") => {
  const own = handle(rig);
  return rig.store.commit(() => rig.leases.worker(own, { type }));
};
const triggerOf = (rig: CoordRig, id: string) => rig.store.triggers.ofSource(id)[0]!;

Deno.test("[K-02][K-06] a task seen again and again is one trigger, one lease, one message", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    for (let i = 0; i < 5; i++) await rig.step();
    rig.store.setCursor(undefined); // the whole feed once more
    await rig.step();
    assert.equal(rig.store.triggers.list({ limit: 10 }).length, 1);
    assert.equal(rig.transport.all.length, 1);
    assert.equal(rig.transport.all[0]!.times, 1);
    assert.equal(rig.store.leases.list(false, 10).length, 1);
  });
});

Deno.test("[K-07] a wake that waits for a busy agent neither expires nor is sent anew", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    for (let minutes = 0; minutes < 120; minutes++) {
      rig.clock.advance(60_000 / 2);
      await rig.step();
      rig.clock.advance(60_000 / 2);
      await rig.step();
    }
    assert.equal(rig.transport.all.length, 1);
    assert.equal(held(rig)[0]!.state, "offered");
    assert.equal(triggerOf(rig, "t").attempts, 0);
  });
});

Deno.test("[K-07][K-05] the answer is due from when the message is shown; then the next lease has a new id, with growing pauses, to the cap", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    const seen: string[] = [];
    for (const pause of [5, 15, 60]) {
      const sent = rig.transport.all.at(-1)!;
      seen.push(sent.request.lease_id);
      rig.clock.advance(100_000); // it waits for a busy agent: that does not count
      await rig.step();
      sent.state = "injected";
      await rig.step();
      rig.clock.advance(29_000);
      await rig.step();
      assert.equal(held(rig).length, 1, "still time to answer");
      rig.clock.advance(1000);
      await rig.step();
      assert.equal(held(rig).length, 0);
      assert.equal(rig.store.leases.get(sent.request.lease_id)!.state, "retry_wait");
      rig.clock.advance(pause * 1000 - 1);
      await rig.step();
      assert.equal(held(rig).length, 0, "backing off");
      rig.clock.advance(1);
      await rig.step();
      assert.equal(held(rig).length, 1);
    }
    const last = rig.transport.all.at(-1)!;
    assert.equal(last.request.trigger.reason, "retry_due");
    last.state = "injected";
    await rig.step();
    rig.clock.advance(30_000);
    await rig.step();
    assert.equal(triggerOf(rig, "t").state, "stopped");
    rig.clock.advance(86_400_000);
    await rig.step();
    assert.equal(rig.transport.all.length, 4, "max_attempts is 4");
    assert.equal(new Set(rig.transport.all.map((sent) => sent.request.lease_id)).size, 4);
    const stop = rig.receiptsOf("t").filter((receipt) => receipt.kind === "stop");
    assert.deepEqual(stop.map((receipt) => receipt.reason), ["attempts_exhausted"]);
  });
});

Deno.test("[K-06][T-18] an answer that is lost is asked for again with the same lease id and the same bytes", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    rig.transport.loseAnswer = true;
    await rig.task("t");
    await rig.step();
    assert.equal(held(rig)[0]!.messageId, null);
    await rig.step();
    assert.equal(rig.transport.all.length, 1);
    assert.equal(held(rig)[0]!.messageId, "m1", "found by its key, not sent anew");
  });
});

Deno.test("[K-06][K-08] while the transport is silent an offer is neither given up nor repeated", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    rig.transport.down = true;
    for (let i = 0; i < 50; i++) {
      rig.clock.advance(60_000);
      await rig.step();
    }
    rig.transport.down = false;
    await rig.step();
    assert.equal(rig.transport.all.length, 1);
    assert.equal(held(rig)[0]!.state, "offered");
  });
});

Deno.test("[K-04][K-07] a task that needs a person while its wake still waits: the wake is withdrawn", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    await rig.edit("t", { needs_human: true });
    await rig.step();
    await rig.step();
    assert.equal(rig.transport.all[0]!.state, "failed");
    assert.equal(held(rig).length, 0);
    assert.equal(triggerOf(rig, "t").state, "gated");
    assert.equal(rig.transport.all.length, 1);
  });
});

Deno.test("[K-07] where cancelling loses the race the time to answer starts, and no second wake is sent", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    rig.transport.cancelLoses = true;
    await rig.edit("t", { needs_human: true });
    await rig.step();
    assert.equal(held(rig).length, 1, "kept: the worker may have seen it");
    rig.transport.all[0]!.state = "injected";
    await rig.step();
    rig.clock.advance(30_000);
    await rig.step();
    await rig.step();
    assert.equal(held(rig).length, 0);
    assert.equal(rig.transport.all.length, 1);
  });
});

Deno.test("[K-04] a gate that shuts while a worker is at it ends its lease", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    rig.transport.all[0]!.state = "injected";
    await rig.step();
    assert.ok((await worker(rig, "acknowledge")).ok);
    const own = handle(rig);
    await rig.edit("t", { status: "active" });
    await rig.step();
    assert.equal(held(rig).length, 1, "taking the task up changes nothing");
    await rig.edit("t", { needs_human: true });
    await rig.step();
    assert.equal(held(rig).length, 0);
    const late = await rig.store.commit(() => rig.leases.worker(own, { type: "renew" }));
    assert.equal(late.ok === false && late.error.reason, "lease_lost");
  });
});

Deno.test("[K-07] the lease of an agent that is seen at work is renewed for it; of an idle one it runs out", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    rig.transport.all[0]!.state = "injected";
    await rig.step();
    await worker(rig, "acknowledge");
    rig.transport.live = [];
    rig.transport.open("alpha", { busy: "agent_busy" });
    for (let i = 0; i < 60; i++) {
      rig.clock.advance(30_000);
      await rig.step();
    }
    assert.equal(held(rig)[0]!.state, "running");
    rig.transport.live = [];
    rig.transport.open("alpha");
    rig.clock.advance(120_000);
    await rig.step();
    assert.equal(held(rig).length, 0);
    assert.equal(triggerOf(rig, "t").decision, "retry_wait");
  });
});

Deno.test("[K-10][K-11] let go with a checkpoint, the work is taken up again from it, by the next lease", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    rig.transport.all[0]!.state = "injected";
    await rig.step();
    await worker(rig, "acknowledge");
    const own = handle(rig);
    await rig.store.commit(() =>
      rig.leases.checkpoint(own, {
        summary: "half of the parser",
        files_changed: ["lib/parser.ts"],
        next_action: "its tests",
        blocked_reason: null,
      })
    );
    await rig.store.commit(() => rig.leases.worker(own, { type: "release", result: "checkpoint" }));
    rig.clock.advance(5000);
    await rig.step();
    const again = rig.transport.all[1]!.request;
    assert.notEqual(again.lease_id, own.leaseId);
    for (const words of ["half of the parser", "lib/parser.ts", "its tests", "checkpoint_resume"]) {
      assert.ok(again.prompt.includes(words), words);
    }
    assert.equal(held(rig)[0]!.resumed, true);
    assert.equal(triggerOf(rig, "t").attempts, 0, "no attempt is lost by yielding");
  });
});

Deno.test("[K-11][K-04] a checkpoint that only a person can unblock shuts a gate that no retry opens", async () => {
  for (
    const [reason, gate] of [
      ["human", "human_review"],
      ["secret", "secrets"],
      ["destructive", "destructive"],
      ["policy", "policy_decision"],
    ] as const
  ) {
    await withCoord(async (rig) => {
      rig.transport.open("alpha");
      await rig.task("t");
      await rig.step();
      rig.transport.all[0]!.state = "injected";
      await rig.step();
      await worker(rig, "acknowledge");
      const own = handle(rig);
      await rig.store.commit(() =>
        rig.leases.checkpoint(own, { summary: "s", files_changed: [], blocked_reason: reason })
      );
      // Whether it lets go or just falls silent.
      if (reason === "human") {
        await rig.store.commit(() =>
          rig.leases.worker(own, { type: "release", result: "checkpoint" })
        );
      }
      for (let i = 0; i < 20; i++) {
        rig.clock.advance(300_000);
        await rig.step();
      }
      assert.equal(rig.transport.all.length, 1, reason);
      assert.equal(triggerOf(rig, "t").state, "gated");
      assert.deepEqual(triggerOf(rig, "t").gates, [gate]);
    });
  }
});

Deno.test("[K-10][K-04] a text that holds a secret is never sent, and the secret stands in no receipt", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    const secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx";
    await rig.task("t", { description: `use ${secret}` });
    await rig.step();
    assert.equal(rig.transport.all.length, 0);
    assert.equal(triggerOf(rig, "t").decision, "secret_in_prompt");
    assert.ok(!JSON.stringify(rig.receiptsOf("t")).includes(secret));
  });
});

Deno.test("[T-05][K-09] no window: nothing is made and it waits; two: nobody is chosen; wrong folder: a gate", async () => {
  await withCoord(async (rig) => {
    await rig.task("t");
    await rig.step();
    assert.equal(triggerOf(rig, "t").decision, "session_absent");
    assert.equal(rig.store.leases.list(false, 5).length, 0);
    rig.transport.open("alpha", { endpoint: "tmux-amq-1" });
    rig.transport.open("alpha", { endpoint: "tmux-amq-2" });
    await rig.step();
    assert.equal(triggerOf(rig, "t").decision, "endpoint_ambiguous");
    rig.transport.live = rig.transport.live.slice(1);
    await rig.step();
    assert.equal(rig.transport.all[0]!.endpoint_id, "tmux-amq-2");

    await rig.task("elsewhere", { repo: "beta" });
    rig.transport.open("beta", { path: "/somewhere/else" });
    await rig.step();
    assert.equal(triggerOf(rig, "elsewhere").decision, "identity_mismatch");
    assert.equal(triggerOf(rig, "elsewhere").state, "gated");
    await rig.task("stranger", { repo: "gamma" });
    await rig.step();
    assert.equal(triggerOf(rig, "stranger").decision, "repository_unregistered");
    assert.equal(rig.transport.all.length, 1);
  });
});

Deno.test("[T-05] a wake that could not be sent, and a second window meanwhile: nobody is chosen; the same lease goes to the one that stays", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha", { endpoint: "tmux-amq-1" });
    const off = onProbe("coord.claimed", () => rig.transport.down = true);
    await rig.task("t");
    await rig.step();
    off();
    rig.transport.down = false;
    rig.transport.open("alpha", { endpoint: "tmux-amq-2" });
    await rig.step();
    assert.equal(rig.transport.all.length, 0, "neither");
    rig.transport.live = rig.transport.live.slice(1);
    await rig.step();
    assert.deepEqual(rig.transport.all.map((sent) => sent.endpoint_id), ["tmux-amq-2"]);
    assert.equal(rig.store.leases.list(false, 5).length, 1);
  });
});

Deno.test("[K-04][K-09] a gate of identity is decided anew when registry or window changed, not before, and opens no other gate", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("gamma", { path: "/repos/gamma" });
    rig.transport.open("beta", { path: "/somewhere/else" });
    await rig.task("stranger", { repo: "gamma" });
    await rig.task("careful", { repo: "gamma", required_actions: ["destructive"] });
    await rig.task("elsewhere", { repo: "beta" });
    await rig.step();
    const states = () =>
      ["stranger", "careful", "elsewhere"].map((id) => triggerOf(rig, id).decision);
    const before = ["repository_unregistered", "repository_unregistered", "identity_mismatch"];
    assert.deepEqual(states(), before);
    const count = () => ["stranger", "careful", "elsewhere"].flatMap(rig.receiptsOf).length;
    const receipts = count();
    for (let i = 0; i < 5; i++) {
      rig.clock.advance(60_000);
      await rig.step();
    }
    assert.deepEqual(states(), before);
    assert.equal(count(), receipts, "nothing is tried while nothing changed");

    rig.registry.repositories.gamma = "/repos/gamma";
    await rig.step();
    assert.deepEqual(rig.transport.all.map(({ request }) => request.trigger.source_id), [
      "stranger",
    ]);
    assert.equal(triggerOf(rig, "careful").state, "gated");
    assert.deepEqual(triggerOf(rig, "careful").gates, ["destructive"]);
    assert.ok(rig.receiptsOf("stranger").some(({ reason }) => reason === "identity_changed"));
    assert.equal(triggerOf(rig, "elsewhere").decision, "identity_mismatch");

    rig.transport.live = rig.transport.live.filter(({ repos }) => !repos.includes("beta"));
    await rig.step();
    assert.equal(triggerOf(rig, "elsewhere").decision, "session_absent");
    rig.transport.open("beta");
    await rig.step();
    assert.equal(rig.transport.all.length, 2);
    // Also when it changes between two looks, just after it was decided.
    await rig.task("late", { repo: "delta" });
    rig.transport.open("delta");
    await rig.observer.look(rig.hub);
    while (await rig.waker.turn()) { /* the rest */ }
    assert.equal(triggerOf(rig, "late").decision, "repository_unregistered");
    rig.registry.repositories.delta = "/repos/delta";
    await rig.step();
    assert.equal(rig.transport.all.length, 3);
    rig.registry.repositories.gamma = "ambiguous";
    await rig.step();
    assert.equal(rig.transport.all[0]!.state, "failed", "withdrawn");
  });
});

Deno.test("[K-07] one piece of work a repository at a time, the most urgent first; the others do not pile up", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    for (const [id, priority] of [["low", 9], ["mid", 5], ["top", 0]] as const) {
      await rig.task(id, { priority });
    }
    const order: string[] = [];
    for (let i = 0; i < 3; i++) {
      await rig.step();
      assert.equal(rig.transport.all.length, i + 1);
      const sent = rig.transport.all[i]!;
      order.push(sent.request.trigger.source_id);
      sent.state = "injected";
      await rig.step();
      await worker(rig, "acknowledge");
      const own = handle(rig);
      await rig.store.commit(() =>
        rig.leases.worker(own, { type: "release", result: "completed" })
      );
    }
    assert.deepEqual(order, ["top", "mid", "low"]);
  });
});

Deno.test("[K-06] a lease is answered by its exact term alone, and only while it lasts", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    const own = handle(rig);
    const say = (token: number, type: "acknowledge" | "renew") =>
      rig.store.commit(() => rig.leases.worker({ ...own, token }, { type }));
    await assert.rejects(say(own.token + 1, "acknowledge"), { reason: "lease_lost" });
    const early = await say(own.token, "renew");
    assert.equal(early.ok === false && early.error.reason, "not_acknowledged");
    assert.ok((await say(own.token, "acknowledge")).ok);
    const repeat = await say(own.token, "acknowledge");
    assert.equal(repeat.ok && repeat.noop, true, "a repeat is a no-op");
    rig.clock.advance(120_000);
    const late = await say(own.token, "renew");
    assert.equal(late.ok === false && late.error.reason, "lease_lost");
    assert.equal(rig.store.leases.get(own.leaseId)!.state, "retry_wait");
    assert.match(writeHandle(own), /^[0-9a-z]{26}\.\d+$/);
  });
});

Deno.test("[K-06] wall-clock jumps expire no lease early and keep none for ever", async () => {
  for (const jump of [3_600_000, -3_600_000, 3 * 86_400_000, -3 * 86_400_000]) {
    await withCoord(async (rig) => {
      rig.transport.open("alpha");
      await rig.task("t");
      await rig.step();
      rig.transport.all[0]!.state = "injected";
      await rig.step();
      await worker(rig, "acknowledge");
      rig.clock.jump(jump);
      await rig.step();
      assert.equal(held(rig).length, 1, `jump ${jump}`);
      rig.clock.advance(119_000);
      await rig.step();
      assert.equal(held(rig).length, 1);
      rig.clock.advance(1000);
      await rig.step();
      assert.equal(held(rig).length, 0);
    });
  }
});

Deno.test("[K-04][K-09] a window that is no longer the registered folder gets nothing of what still waits for it", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    await rig.task("t");
    await rig.step();
    rig.transport.live = [];
    rig.transport.open("alpha", { path: "/somewhere/else" });
    await rig.step();
    await rig.step();
    assert.equal(rig.transport.all[0]!.state, "failed", "withdrawn");
    assert.equal(triggerOf(rig, "t").decision, "identity_mismatch");
    assert.equal(triggerOf(rig, "t").state, "gated");
  });
});

Deno.test("[T-18][K-06] its endpoint gone and another in its place: the identical wake is sent there, no new lease", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha", { endpoint: "tmux-amq-1" });
    await rig.task("t");
    await rig.step();
    rig.transport.live = [];
    await rig.step();
    rig.transport.open("alpha", { endpoint: "tmux-amq-2" });
    await rig.step();
    assert.equal(rig.transport.all.length, 1);
    assert.equal(rig.transport.all[0]!.times, 2);
    assert.equal(rig.store.leases.held().length, 1);
  });
});

Deno.test("[K-01][K-03] a message that asks for action wakes, one that does not waits, and ready plans are offered", async () => {
  await withCoord(async (rig) => {
    rig.transport.open("alpha");
    rig.transport.open("beta");
    const leave = async (requests_action: boolean, target_repo: string) =>
      (await rig.hub.call("createMessage", {
        body: { sender: "me", target_repo, subject: "look", body: "at this", requests_action },
      })).value.message_id;
    const quiet = await leave(false, "alpha");
    const asking = await leave(true, "alpha");
    await rig.hub.call("createWorkplan", {
      body: { workplan_id: "p", title: "Plan", repo: "beta", status: "ready" },
    });
    await rig.step();
    assert.equal(triggerOf(rig, quiet).decision, "no_action_requested");
    const sources = rig.transport.all.map((sent) => sent.request.trigger.source_id).sort();
    assert.deepEqual(sources, [asking, "p"].sort());
    const prompt = rig.transport.all.find((sent) =>
      sent.request.trigger.source_id === asking
    )!.request.prompt;
    assert.match(prompt, /> at this\n[\s\S]*tamq hub message ack /);
    await rig.hub.call("ackMessage", { params: { message_id: asking }, body: {} });
    await rig.step();
    await rig.step();
    assert.equal(triggerOf(rig, asking).decision, "finished");
  });
});
