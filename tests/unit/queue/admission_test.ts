import assert from "node:assert/strict";
import { TamqError } from "../../../lib/base/errors.ts";
import type { Origin } from "../../../lib/queue.ts";
import { type QueueRig, withQueue } from "../../helpers/queue_rig.ts";

type Fields = Parameters<QueueRig["request"]>[0];

/** `ok`, or `CODE reason`; also proves that a refusal stored nothing. */
async function attempt(rig: QueueRig, fields: Fields, origin: Origin = {}): Promise<string> {
  const count = () => Number(rig.db.prepare("SELECT count(*) AS n FROM messages").get()!.n);
  const before = count();
  try {
    await rig.send(fields, origin);
    return "ok";
  } catch (error) {
    assert.ok(error instanceof TamqError, String(error));
    assert.equal(count(), before);
    return `${error.code} ${error.reason}`;
  }
}

async function hint(rig: QueueRig, fields: Fields): Promise<string> {
  try {
    await rig.send(fields);
  } catch (error) {
    return (error as TamqError).hint ?? "";
  }
  throw new Error("not refused");
}

Deno.test("[T-08] body and metadata out of bounds are refused and store nothing", () =>
  withQueue(async (rig) => {
    const binary = "INVALID_ARGUMENT body_binary";
    assert.equal(await attempt(rig, { body: "" }), "INVALID_ARGUMENT body_empty");
    assert.equal(await attempt(rig, { body: "x".repeat(8193) }), "INVALID_ARGUMENT body_too_large");
    assert.equal(await attempt(rig, { body: "\u001b[2J" }), binary);
    assert.equal(await attempt(rig, { body: "a\u0003" }), binary);
    assert.equal(await attempt(rig, { body: "\ud800" }), "INVALID_ARGUMENT body_not_utf8");
    assert.equal(await attempt(rig, { body: "é".repeat(4096) }), "ok");
    const metadata = (bytes: number) => ({ k: "x".repeat(bytes - 8) });
    assert.equal(await attempt(rig, { metadata: metadata(4096) }), "ok");
    assert.equal(
      await attempt(rig, { metadata: metadata(4097) }),
      "INVALID_ARGUMENT metadata_too_large",
    );
  }));

Deno.test("[T-07] [E-07] targets must be in the registry as it is at each admission", () =>
  withQueue(async (rig) => {
    assert.equal(await attempt(rig, { target_repo: "betta" }), "NOT_FOUND unknown_target");
    assert.match(await hint(rig, { target_repo: "betta" }), /"beta"/);
    assert.equal(await attempt(rig, { target_repo: "local" }), "NOT_FOUND unknown_target");
    rig.registry.rows.push("betta");
    assert.equal(await attempt(rig, { target_repo: "betta" }), "ok");
    rig.registry.rows.push("betta");
    assert.equal(
      await attempt(rig, { target_repo: "betta" }),
      "FAILED_PRECONDITION ambiguous_repository",
    );
    rig.registry.rows = ["alpha"];
    assert.equal(await attempt(rig, { target_repo: "beta" }), "NOT_FOUND unknown_target");
  }));

Deno.test("[T-07] senders must be registered too, and a repository of a reserved name is a conflict", () =>
  withQueue(async (rig) => {
    const { origin } = await rig.attach({ repo: "alpha" });
    const fields = { sender_repo: "alpha", provenance: "worker" } as const;
    assert.equal(await attempt(rig, fields, origin), "ok");
    rig.registry.rows = ["beta"];
    assert.equal(await attempt(rig, fields, origin), "NOT_FOUND unknown_sender");
    rig.registry.rows = ["beta", "local"];
    assert.equal(await attempt(rig, {}), "ok", "a conflict of names stops nobody else");
    assert.equal(
      await attempt(rig, { target_repo: "local" }),
      "FAILED_PRECONDITION reserved_name",
    );
  }));

Deno.test("[T-07] an unreadable registry admits nothing", () =>
  withQueue(async (rig) => {
    rig.registry.names = () => {
      throw new TamqError("UNAVAILABLE", "registry_unavailable", "cannot read it");
    };
    assert.equal(await attempt(rig, {}), "UNAVAILABLE registry_unavailable");
  }));

Deno.test("[B-04] worker and operator speak only through their own window's broker", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    const denied = "PERMISSION_DENIED sender_mismatch";
    for (const provenance of ["worker", "operator"] as const) {
      const mine = { sender_repo: "alpha", provenance };
      assert.equal(await attempt(rig, mine, alpha.origin), "ok");
      assert.equal(await attempt(rig, mine, { adopted: { repo: "alpha" } }), "ok");
      assert.equal(await attempt(rig, mine, alpha.workerOrigin), denied);
      assert.equal(await attempt(rig, mine, {}), denied);
      assert.equal(await attempt(rig, mine, { adopted: { repo: "beta" } }), denied);
      assert.equal(await attempt(rig, { sender_repo: "gamma", provenance }, alpha.origin), denied);
    }
  }));

Deno.test("[B-04] cli from inside a window is that repository, from outside it is local", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    const denied = "PERMISSION_DENIED sender_mismatch";
    const id = await rig.send({ sender_repo: "local" }, alpha.workerOrigin);
    assert.equal(rig.state(id).sender_repo, "alpha");
    assert.equal(await attempt(rig, { sender_repo: "alpha" }, alpha.workerOrigin), "ok");
    assert.equal(await attempt(rig, { sender_repo: "beta" }, alpha.workerOrigin), denied);
    assert.equal(rig.state(await rig.send()).sender_repo, "local");
    assert.equal(await attempt(rig, { sender_repo: "alpha" }), denied);
    assert.equal(await attempt(rig, { sender_repo: "coordination-engine" }), denied);
  }));

Deno.test("[B-04] engine and replay are bound to their client ids, and no window may pose as them", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    const denied = "PERMISSION_DENIED sender_mismatch";
    const engine = {
      client_id: "coordination-engine",
      sender_repo: "coordination-engine",
      provenance: "coordination_engine",
    } as const;
    assert.equal(await attempt(rig, engine), "ok");
    assert.equal(await attempt(rig, engine, alpha.workerOrigin), denied);
    assert.equal(await attempt(rig, { ...engine, client_id: "other" }), denied);
    assert.equal(await attempt(rig, { ...engine, sender_repo: "alpha" }), denied);
    assert.equal(await attempt(rig, { client_id: "coordination-engine" }), denied);
    const replay = {
      client_id: "tamq-replay",
      sender_repo: "alpha",
      provenance: "replay",
    } as const;
    assert.equal(await attempt(rig, replay), "ok");
    assert.equal(await attempt(rig, { ...replay, client_id: "other" }), denied);
    assert.equal(
      await attempt(rig, { ...replay, sender_repo: "nobody" }),
      "NOT_FOUND unknown_sender",
    );
    assert.equal(
      await attempt(rig, { ...replay, sender_repo: "beta" }, alpha.workerOrigin),
      denied,
    );
    assert.equal(await attempt(rig, { client_id: "tamq-replay" }), denied);
  }));

Deno.test("[T-10] an identical repeat returns the same id; sender, target or body may not differ", () =>
  withQueue(async (rig) => {
    const alpha = await rig.attach({ repo: "alpha" });
    const request = rig.request({ idempotency_key: "k" });
    const first = await rig.queue.send(request, {});
    assert.equal(first.deduplicated, false);
    assert.equal(first.state, "pending");
    assert.deepEqual(await rig.queue.send({ ...request }, {}), { ...first, deduplicated: true });
    const before = rig.queue.message(first.message_id);
    const conflict = "ABORTED idempotency_conflict";
    assert.equal(await attempt(rig, { ...request, body: "other" }), conflict);
    assert.equal(await attempt(rig, { ...request, target_repo: "gamma" }), conflict);
    assert.equal(await attempt(rig, request, alpha.workerOrigin), conflict); // another sender
    assert.deepEqual(rig.queue.message(first.message_id), before);
    // The key belongs to its client; correlation and metadata are not part of the identity.
    const other = await rig.queue.send({ ...request, client_id: "another" }, {});
    assert.equal(other.deduplicated, false);
    const loose = { ...request, correlation_id: "x", metadata: { a: 1 } };
    assert.equal((await rig.queue.send(loose, {})).message_id, first.message_id);
  }));

Deno.test("[T-10] a repeat is recognised after a restart and after its names left the registry", () =>
  withQueue(async (rig) => {
    const request = rig.request();
    const first = await rig.queue.send(request, {});
    await rig.restart();
    rig.registry.rows = [];
    assert.deepEqual(await rig.queue.send(request, {}), { ...first, deduplicated: true });
  }));

Deno.test("[T-10] concurrent identical sends give one message", () =>
  withQueue(async (rig) => {
    const request = rig.request();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => rig.queue.send({ ...request }, {})),
    );
    assert.equal(new Set(answers.map((answer) => answer.message_id)).size, 1);
    assert.equal(answers.filter((answer) => !answer.deduplicated).length, 1);
    assert.equal(rig.queue.summary().states.pending, 1);
  }));

Deno.test("[T-10] fields cannot be shifted into each other under one digest", () =>
  withQueue(async (rig) => {
    rig.registry.rows.push('beta","x', "x");
    await rig.send({ idempotency_key: "k", target_repo: 'beta","x', body: "y" });
    assert.equal(
      await attempt(rig, { idempotency_key: "k", target_repo: "beta", body: 'x","y' }),
      "ABORTED idempotency_conflict",
    );
  }));

Deno.test("[T-18] an endpoint that is not live is unavailable, and nothing is stored", () =>
  withQueue(async (rig) => {
    const missing = { endpoint_id: "tmux-amq-77" };
    assert.equal(await attempt(rig, missing), "UNAVAILABLE endpoint_unavailable");
    await rig.attach({ repo: "alpha", server: 77 }); // lives, but without the target
    assert.equal(await attempt(rig, missing), "UNAVAILABLE endpoint_unavailable");
    const beta = await rig.attach({ repo: "beta", server: 77 });
    assert.equal(await attempt(rig, missing), "ok");
    assert.equal(beta.deliveries.length, 1);
    await rig.queue.detach(beta.attached);
    assert.equal(await attempt(rig, missing), "UNAVAILABLE endpoint_unavailable");
  }));

Deno.test("[T-18] several endpoints of the target: the sender's own, else refused with their names", () =>
  withQueue(async (rig) => {
    const one = await rig.attach({ repo: "beta", server: 1 });
    const two = await rig.attach({ repo: "beta", server: 2 });
    const alpha = await rig.attach({ repo: "alpha", server: 2 });
    const gamma = await rig.attach({ repo: "gamma", server: 3 });
    assert.equal(await attempt(rig, {}), "FAILED_PRECONDITION ambiguous_endpoint");
    await assert.rejects(rig.send({}), /tmux-amq-1, tmux-amq-2/);
    const worker = (sender_repo: string) => ({ sender_repo, provenance: "worker" }) as const;
    assert.equal(
      await attempt(rig, worker("gamma"), gamma.origin),
      "FAILED_PRECONDITION ambiguous_endpoint",
    );
    await rig.send(worker("alpha"), alpha.origin);
    assert.deepEqual([one.deliveries.length, two.deliveries.length], [0, 1]);
    await rig.send({ endpoint_id: "tmux-amq-1" });
    assert.deepEqual([one.deliveries.length, two.deliveries.length], [1, 1]);
  }));

Deno.test("[T-18] the identical wake rebinds the same message only when its endpoint is dead", () =>
  withQueue(async (rig) => {
    const one = await rig.attach({ server: 1, open: false });
    const two = await rig.attach({ server: 2 });
    const wake = (endpoint: string) => rig.request({ idempotency_key: "w", endpoint_id: endpoint });
    const first = await rig.queue.send(wake("tmux-amq-1"), {});
    assert.equal(await attempt(rig, wake("tmux-amq-2")), "ABORTED idempotency_conflict");
    // Its window is gone, but its tmux server lives and may be coming back.
    await rig.queue.detach(one.attached);
    assert.equal(await attempt(rig, wake("tmux-amq-2")), "ABORTED idempotency_conflict");
    rig.processes.end(1);
    assert.equal(await attempt(rig, wake("tmux-amq-3")), "UNAVAILABLE endpoint_unavailable");
    assert.equal(two.deliveries.length, 0);
    const again = await rig.queue.send(wake("tmux-amq-2"), {});
    await rig.settled();
    assert.deepEqual(again, { ...first, deduplicated: true });
    assert.equal(rig.state(first.message_id).endpoint_id, "tmux-amq-2");
    assert.deepEqual(two.deliveries.map((delivery) => delivery.messageId), [first.message_id]);
  }));

Deno.test("[T-18] [E-01] a reused tmux pid is another endpoint: nothing is inherited, a wake rebinds", () =>
  withQueue(async (rig) => {
    const old = await rig.attach({ server: 1, open: false });
    const request = rig.request({ endpoint_id: "tmux-amq-1" });
    const { message_id } = await rig.queue.send(request, {});
    await rig.queue.detach(old.attached);
    rig.processes.end(1);
    rig.processes.start(1, "later boot");
    const reborn = await rig.attach({ server: 1 });
    assert.notEqual(reborn.window.endpointRef, old.window.endpointRef);
    await rig.advance(10_000);
    assert.equal(reborn.deliveries.length, 0);
    assert.equal(rig.state(message_id).waiting_reason, "not_attached");
    assert.equal((await rig.queue.send(request, {})).deduplicated, true);
    await rig.settled();
    assert.deepEqual(reborn.deliveries.map((delivery) => delivery.messageId), [message_id]);
  }));

Deno.test("[T-18] rebinding redelivers nothing that was written and resets no attempts", () =>
  withQueue(async (rig) => {
    const one = await rig.attach({ server: 1 });
    const wake = (endpoint: string, key: string) =>
      rig.request({ idempotency_key: key, endpoint_id: endpoint });
    const done = (await rig.queue.send(wake("tmux-amq-1", "done"), {})).message_id;
    await rig.settled();
    await rig.settle(one);
    const tried = (await rig.queue.send(wake("tmux-amq-1", "tried"), {})).message_id;
    await rig.settled();
    await rig.settle(one, "failed");
    await rig.queue.detach(one.attached);
    rig.processes.end(1);
    const two = await rig.attach({ server: 2 });
    await rig.queue.send(wake("tmux-amq-2", "done"), {});
    await rig.queue.send(wake("tmux-amq-2", "tried"), {});
    await rig.advance(5000);
    assert.equal(rig.state(done).state, "injected");
    assert.equal(rig.state(tried).attempt_count, 2);
    assert.deepEqual(two.deliveries.map((delivery) => delivery.messageId), [tried]);
  }));

Deno.test("[L-03] a stopped queue admits nothing and says so", () =>
  withQueue(async (rig) => {
    await rig.queue.stop();
    assert.equal(await attempt(rig, {}), "UNAVAILABLE shutting_down");
    await assert.rejects(rig.attach(), /not running/);
  }));

Deno.test("[T-08] metadata nested without end is refused as such, never taken for a damaged database", () =>
  withQueue(async (rig) => {
    // A thousand levels made SQLite answer "malformed JSON", which was read as a malformed file, and
    // the hint said to move it away.
    const nested = (levels: number) => {
      let value: unknown = 1;
      for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value };
      return { a: value };
    };
    assert.equal(await attempt(rig, { metadata: nested(31) }), "ok");
    for (const levels of [32, 1000, 1900]) {
      assert.equal(
        await attempt(rig, { metadata: nested(levels) }),
        "INVALID_ARGUMENT metadata_too_deep",
      );
    }
  }));
