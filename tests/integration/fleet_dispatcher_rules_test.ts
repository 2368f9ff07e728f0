/** Each dispatcher operation's identity, replay rule and fence, against a real store. */
import assert from "node:assert/strict";
import type { TamqError } from "../../lib/base/errors.ts";
import { queueFacts } from "../../lib/fleet/dispatcher/facts.ts";
import { release, submit } from "../../lib/fleet/dispatcher/permits.ts";
import { ResultCode } from "../../lib/fleet/gen/common_pb.ts";
import { sha256 } from "../../lib/fleet/idempotency.ts";
import { PROMPT, type Rig, withRig } from "../helpers/fleet_rig.ts";

const conflict = { code: "ABORTED", reason: "idempotency_conflict" };
const ASSET = { sha256: sha256("cast"), sizeBytes: 4n, contentType: "application/x-asciicast" };

Deno.test("[G-04] an identical activation returns the same generation and credential; a new one moves on", async () => {
  await withRig(async (rig) => {
    const first = await rig.activate("b1", "act-1");
    const again = await rig.activate("b1", "act-1");
    assert.equal(first.result, ResultCode.APPLIED);
    assert.equal(first.session?.sessionGeneration, 1n);
    assert.deepEqual(again.session, first.session);
    assert.deepEqual(again.credential, first.credential);
    assert.equal(first.credential?.uri, "tamq://lab/agent/a1");
    await assert.rejects(rig.activate("b2", "act-1"), conflict);
    assert.equal((await rig.activate("b1", "act-2")).session?.sessionGeneration, 2n);
    // The conflict has fenced nobody.
    assert.equal((await rig.activate("b1", "act-3")).session?.sessionGeneration, 3n);
  });
});

Deno.test("[G-16] nobody acts without approval, for another cell, or under another's name", async () => {
  await withRig(async (rig) => {
    const request = { activationOperationId: "x", cellId: "cell1", bootId: "b9" };
    await assert.rejects(
      rig.dispatcher.activateAgent({ ...request, meta: rig.meta({ agentId: "a2" }) }),
      { code: "PERMISSION_DENIED", reason: "identity_mismatch" },
    );
    await assert.rejects(
      rig.dispatcher.activateAgent({ ...request, cellId: "cell2", meta: rig.meta() }),
      { code: "PERMISSION_DENIED", reason: "cell_mismatch" },
    );
    await assert.rejects(
      rig.dispatcher.getBootstrap({ meta: rig.meta({ protocolVersion: "1.0" }) }),
      { code: "INVALID_ARGUMENT", reason: "protocol_mismatch" },
    );
    const { store } = rig.core;
    await assert.rejects(submit(rig.core, rig.binding("e", { agentId: "a2" }), PROMPT), {
      code: "PERMISSION_DENIED",
      reason: "agent_not_approved",
    });
    assert.equal(await store.commit((tx) => tx.get("execution", "e")), undefined);
  });
});

Deno.test("[G-14] bootstrap is read-only and keeps operation and trace", async () => {
  await withRig(async (rig) => {
    const meta = rig.meta({ operationId: "first", trace: { traceId: "T", spanId: "S" } });
    const [one, two] = [
      await rig.dispatcher.getBootstrap({ meta }),
      await rig.dispatcher.getBootstrap({ meta }),
    ];
    assert.deepEqual(one, two);
    assert.equal(one.meta?.operationId, "first");
    assert.equal(one.meta?.trace?.traceId, "T");
    assert.deepEqual(one.session, rig.session);
  });
});

Deno.test("[G-09] one permit a reservation: replayed by key, refused by another, never for other content", async () => {
  await withRig(async (rig) => {
    const asked = await rig.reserve("e1");
    const meta = rig.meta();
    const first = await rig.dispatcher.getExecutionPermit({ meta, ...asked });
    assert.deepEqual(await rig.dispatcher.getExecutionPermit({ meta, ...asked }), first);
    const permit = first.permit!;
    assert.equal(permit.dispatcherEpoch, rig.core.epoch);
    assert.equal(permit.sessionGeneration, 1n);
    assert.equal(permit.reservationId, asked.reservationId);
    assert.ok(permit.fencingToken >= 1n);
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta, ...asked, expectedRevision: 2n }),
      conflict,
    );
    await assert.rejects(rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...asked }), {
      code: "ALREADY_EXISTS",
      reason: "permit_exists",
    });
    const other = await rig.reserve("e2");
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...other, binding: rig.binding("e9") }),
      conflict,
    );
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...other, expectedRevision: 5n }),
      { code: "ABORTED", reason: "stale_revision" },
    );
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta: rig.meta({ idempotencyKey: "" }), ...other }),
      { code: "INVALID_ARGUMENT", reason: "key_missing" },
    );
    const second = await rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...other });
    assert.ok(second.permit!.fencingToken > permit.fencingToken);
  });
});

Deno.test("[G-09] no permit after the reservation was released or fenced, not even as a replay", async () => {
  await withRig(async (rig) => {
    const released = await rig.reserve("e1");
    await release(rig.core, "e1");
    await assert.rejects(rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...released }), {
      code: "FAILED_PRECONDITION",
      reason: "reservation_released",
    });
    const fenced = await rig.reserve("e2");
    const meta = rig.meta();
    await rig.dispatcher.getExecutionPermit({ meta, ...fenced });
    await assert.rejects(release(rig.core, "e2"), { reason: "permit_exists" });
    await rig.join("b2", "act-2");
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ ...fenced, meta: { ...meta, session: rig.session } }),
      { code: "FAILED_PRECONDITION", reason: "reservation_fenced" },
    );
    // Nobody can say whether it ran: UNKNOWN, and the same execution (G-20).
    const { value } = (await rig.core.store.commit((tx) => tx.get("execution", "e2")))!;
    assert.equal(value.state, "unknown");
  });
});

Deno.test("[G-06] the same execution twice is one; with another prompt it is a conflict", async () => {
  await withRig(async (rig) => {
    const { reservationId } = await submit(rig.core, rig.binding("e1"), PROMPT);
    assert.equal((await submit(rig.core, rig.binding("e1"), PROMPT)).reservationId, reservationId);
    await assert.rejects(
      submit(rig.core, rig.binding("e1", { targetRepo: "web" }), PROMPT),
      conflict,
    );
    await assert.rejects(submit(rig.core, rig.binding("e1"), "another prompt"), {
      reason: "content_mismatch",
    });
  });
});

Deno.test("[G-12] a fact is kept once: its duplicate gets the first receipt, other content conflicts", async () => {
  await withRig(async (rig) => {
    await rig.reserve("e1");
    const content = new TextEncoder().encode("what happened");
    const fact = { factId: "f1", executionId: "e1", kind: "note", content };
    const contentSha256 = sha256(content);
    const report = (more: object = {}) =>
      rig.dispatcher.reportExecutionEvent({ ...fact, contentSha256, meta: rig.meta(), ...more });
    const first = await report();
    assert.equal(first.result, ResultCode.ACCEPTED);
    assert.deepEqual((await report()).receipt, first.receipt);
    const other = new TextEncoder().encode("something else");
    await assert.rejects(report({ content: other, contentSha256: sha256(other) }), {
      code: "ABORTED",
      reason: "fact_conflict",
    });
    await assert.rejects(report({ content: other }), { reason: "content_mismatch" });
    await assert.rejects(report({ factId: "f2", executionId: "none" }), { code: "NOT_FOUND" });
  });
});

Deno.test("[G-13] [G-21] an upload completes only once its fact is queued; checksum and id are kept", async () => {
  const published: string[] = [];
  let down = true;
  const queue = {
    publish: (fact: { factId: string; content: Uint8Array }) => {
      if (down) return Promise.reject(new Error("no quorum"));
      published.push(new TextDecoder().decode(fact.content));
      return Promise.resolve();
    },
  };
  const objects = {
    grant: ({ uploadId, sha256 }: { uploadId: string; sha256: string }) =>
      Promise.resolve({
        method: "PUT",
        url: `https://store.example/${uploadId}`,
        headers: { "x-amz-content-sha256": sha256 },
        expiresAt: 1,
      }),
  };
  await withRig(async (rig) => {
    await rig.reserve("e1");
    const meta = () => rig.meta();
    const complete = (asset = ASSET, uploadId = "u1") =>
      rig.dispatcher.completeUpload({ meta: meta(), uploadId, asset });
    const request = (asset = ASSET) =>
      rig.dispatcher.requestUpload({ meta: meta(), uploadId: "u1", executionId: "e1", asset });
    await assert.rejects(complete(), { code: "NOT_FOUND", reason: "unknown_upload" });
    const { grant } = await request();
    assert.equal(grant?.method, "PUT");
    assert.equal(grant?.headers["x-amz-content-sha256"], ASSET.sha256);
    assert.deepEqual((await request()).grant, grant);
    await assert.rejects(request({ ...ASSET, sizeBytes: 5n }), conflict);
    await assert.rejects(complete({ ...ASSET, sha256: sha256("other") }), conflict);
    await assert.rejects(complete(), { code: "UNAVAILABLE", reason: "fact_not_queued" });
    await assert.rejects(complete(), { code: "UNAVAILABLE" });
    down = false;
    const done = await complete();
    assert.equal(done.result, ResultCode.APPLIED);
    assert.equal(published.length, 1);
    assert.equal(JSON.parse(published[0]!).sha256, ASSET.sha256);
    // Repeated, it is the same receipt and is not queued again.
    assert.deepEqual((await complete()).receipt, done.receipt);
    assert.equal(published.length, 1);
  }, { queue, objects });
});

Deno.test("[G-21] without an object store nothing is granted", async () => {
  await withRig(async (rig) => {
    await rig.reserve("e1");
    await assert.rejects(
      rig.dispatcher.requestUpload({
        meta: rig.meta(),
        uploadId: "u",
        executionId: "e1",
        asset: ASSET,
      }),
      { code: "FAILED_PRECONDITION", reason: "uploads_off" },
    );
  });
});

Deno.test("[G-15] a dispatcher that was replaced changes nothing more; sessions of its epoch are over", async () => {
  await withRig(async (rig) => {
    const asked = await rig.reserve("e1");
    const { core, dispatcher } = await rig.takeOver();
    assert.notEqual(core.epoch, rig.core.epoch);
    const superseded = { code: "ABORTED", reason: "epoch_superseded" };
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...asked }),
      superseded,
    );
    await assert.rejects(rig.activate("b1", "act-2"), superseded);
    await assert.rejects(submit(rig.core, rig.binding("e2"), PROMPT), superseded);
    await assert.rejects(release(rig.core, "e1"), superseded);
    await assert.rejects(dispatcher.getExecutionPermit({ meta: rig.meta(), ...asked }), {
      code: "ABORTED",
      reason: "stale_epoch",
    });
    await rig.join("b1", "act-2", dispatcher);
    const { permit } = await dispatcher.getExecutionPermit({ meta: rig.meta(), ...asked });
    assert.equal(permit?.dispatcherEpoch, core.epoch);
  });
});

Deno.test("[G-17] an older boot or generation is fenced for good, and releases nothing", async () => {
  await withRig(async (rig) => {
    const old = rig.session;
    const asked = await rig.reserve("e1");
    // A newer session of the same boot is enough.
    await rig.join("b1", "act-1b");
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta: rig.meta({ session: old }), ...asked }),
      { code: "UNAUTHENTICATED", reason: "session_fenced" },
    );
    await rig.join("b2", "act-2");
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta: rig.meta({ session: old }), ...asked }),
      { code: "UNAUTHENTICATED", reason: "session_fenced" },
    );
    await assert.rejects(rig.activate("b1", "act-3"), { code: "ABORTED", reason: "boot_fenced" });
    // Its own activation repeated says what it said, and gives no leave.
    assert.deepEqual((await rig.activate("b1", "act-1")).session, old);
    await assert.rejects(
      rig.dispatcher.getExecutionPermit({ meta: rig.meta({ session: old }), ...asked }),
      (error: TamqError) => error.code === "UNAUTHENTICATED",
    );
    await rig.dispatcher.getExecutionPermit({ meta: rig.meta(), ...asked });
  });
});

Deno.test("[G-12] [G-21] a reported fact is queued once, after an outage of the queue as well; without one the store is it", async () => {
  const published: string[] = [];
  let down = true;
  const queue = {
    publish: ({ factId }: { factId: string }) => {
      if (down) return Promise.reject(new Error("no quorum"));
      published.push(factId);
      return Promise.resolve();
    },
  };
  const content = new TextEncoder().encode("what happened");
  const fact = { factId: "f1", executionId: "e1", kind: "note", content };
  const report = async (rig: Rig) => {
    await rig.reserve("e1");
    await rig.dispatcher.reportExecutionEvent({
      ...fact,
      contentSha256: sha256(content),
      meta: rig.meta(),
    });
    return (await rig.core.store.commit((tx) => tx.get("fact", "f1")))!.value.queuedAt;
  };
  await withRig(async (rig) => {
    assert.equal(await report(rig), undefined);
    await assert.rejects(queueFacts(rig.core, 10), /no quorum/);
    down = false;
    assert.equal(await queueFacts(rig.core, 10), 1);
    assert.equal(await queueFacts(rig.core, 10), 0);
    assert.deepEqual(published, ["f1"]);
  }, { queue });
  await withRig(async (rig) => assert.notEqual(await report(rig), undefined));
});
