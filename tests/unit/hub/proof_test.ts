import assert from "node:assert/strict";
import fc from "fast-check";
import {
  MAX_SKEW_MS,
  NonceGuard,
  ProofKey,
  readCredentials,
  sameSecret,
  writeCredentials,
} from "../../../lib/hub/proof.ts";
import { EventParser } from "../../../lib/coord/statehub_events.ts";
import { Revisions } from "../../../lib/coord/statehub_revisions.ts";
import type { Change } from "../../../lib/hub/schema.ts";

Deno.test("[K-19] proofs differ when any part differs, and by what they are for", async () => {
  const key = await ProofKey.of("token-of-thirty-two-characters-xx");
  const claim = {
    method: "GET",
    host: "127.0.0.1:8000",
    target: "/v1/hub",
    timeMs: 1,
    nonce: "n",
    bodyDigest: "d",
  };
  const macs = new Set([await key.request(claim)]);
  for (const [part, value] of Object.entries(claim)) {
    macs.add(await key.request({ ...claim, [part]: typeof value === "number" ? 2 : `${value}x` }));
  }
  macs.add(await key.answer({ nonce: "n", status: 200, bodyDigest: "d" }));
  macs.add(await key.answer({ nonce: "n", status: 404, bodyDigest: "d" }));
  macs.add(await (await ProofKey.of("another-token-of-that-same-length")).request(claim));
  assert.equal(macs.size, 10);
});

Deno.test("[K-19] a nonce is accepted once while it could be replayed; a full memory accepts none", () => {
  const guard = new NonceGuard(3);
  assert.equal(guard.accept("a", 0), true);
  assert.equal(guard.accept("a", 2 * MAX_SKEW_MS - 1), false);
  assert.equal(guard.accept("b", 1), true);
  assert.equal(guard.accept("c", 1), true);
  assert.equal(guard.accept("d", 1), false, "full: fails closed");
  assert.equal(guard.accept("d", 2 * MAX_SKEW_MS), true, "the oldest has become harmless");
});

Deno.test("[K-19] secrets compare equal exactly when they are; credentials survive the header", () => {
  const text = fc.string({ unit: "grapheme" });
  fc.assert(fc.property(text, text, (a, b) => {
    assert.equal(sameSecret(a, b), a === b);
    assert.equal(sameSecret(a, a), true);
  }));
  const credentials = { timeMs: 123, nonce: "n".repeat(26), mac: "0".repeat(64) };
  assert.deepEqual(readCredentials(writeCredentials(credentials)), credentials);
  fc.assert(fc.property(fc.string(), (text) => {
    assert.equal(readCredentials(text), undefined);
  }));
});

Deno.test("[K-01] events come out the same whatever the pieces they arrive in", () => {
  const stream = ': hello\n\nid: 1\nevent: change\ndata: {"a":1}\n\n' +
    "id: 2\r\ndata: one\r\ndata:two\r\n\r\n: alive\n\ndata\n\nid: 3\rdata: x\r\rdata: unfinished";
  const whole = new EventParser().push(stream);
  assert.deepEqual(whole, [
    { id: "1", event: "change", data: '{"a":1}' },
    { id: "2", event: "message", data: "one\ntwo" },
    { id: "2", event: "message", data: "" },
    { id: "3", event: "message", data: "x" },
  ]);
  fc.assert(fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (sizes) => {
    const parser = new EventParser();
    const events = [];
    for (let at = 0, i = 0; at < stream.length; i++) {
      const size = sizes[i % sizes.length]!;
      events.push(...parser.push(stream.slice(at, at + size)));
      at += size;
    }
    assert.deepEqual(events, whole);
  }));
});

Deno.test("[K-01] an event or a line without end is cut off", () => {
  const parser = new EventParser(100);
  assert.throws(() => parser.push("data: " + "x".repeat(200)), { reason: "answer_too_large" });
  const lines = new EventParser(100);
  assert.throws(() => {
    for (let i = 0; i < 50; i++) lines.push("data: xxxx\n");
  }, { reason: "answer_too_large" });
  const comments = new EventParser(100);
  for (let i = 0; i < 50; i++) comments.push(": alive and well\n\n");
});

Deno.test("[K-01] revisions are remembered for a bounded number of sources", () => {
  const change = (id: string, revision: number) =>
    ({ kind: "task", source_id: id, record: { revision, wake: { revision: 1 } } }) as Change;
  const revisions = new Revisions(2);
  revisions.check(change("a", 5));
  assert.throws(() => revisions.check(change("a", 4)), { reason: "revision_regressed" });
  revisions.check(change("b", 1));
  revisions.check(change("a", 5));
  revisions.check(change("c", 1)); // forgets b, the one longest not seen
  assert.throws(() => revisions.check(change("a", 4)), { reason: "revision_regressed" });
});
