import assert from "node:assert/strict";
import { operations } from "../../../lib/protocol/operations.ts";
import { brokerFrame } from "../../../lib/protocol/schema.ts";
import { negotiate, requireService } from "../../../lib/protocol/handshake.ts";
import { TamqError } from "../../../lib/base/errors.ts";

const SEND = {
  client_id: "coordination-engine",
  idempotency_key: "lease-1",
  correlation_id: "trigger-1",
  sender_repo: "coordination-engine",
  target_repo: "beta",
  endpoint_id: "tmux-amq-1",
  provenance: "coordination_engine",
  metadata: { lease_id: "1", trigger_id: "2" },
  body: "wake",
};

Deno.test("[T-06] send takes the documented fields and names an unknown one", () => {
  const { request } = operations.send;
  assert.equal(request.safeParse(SEND).success, true);
  const result = request.safeParse({ ...SEND, priority: 1 });
  assert.equal(result.success, false);
  assert.match(JSON.stringify(result.error!.issues), /"priority"/);
});

Deno.test("[T-06] the required fields of send are required, the others are not", () => {
  const { request } = operations.send;
  const optional = ["correlation_id", "endpoint_id", "metadata"];
  for (const name of Object.keys(SEND)) {
    const without: Record<string, unknown> = { ...SEND };
    delete without[name];
    assert.equal(request.safeParse(without).success, optional.includes(name), name);
  }
});

Deno.test("[T-10] ids, keys and names are bounded single lines, and stay what they are as UTF-8", () => {
  const { request } = operations.send;
  const bad = ["a\nb", "a\u0000b", "a\u007fb", "a\u009bb", "\ud800", "\udc00x", "x\udbff"];
  for (const key of ["", "x".repeat(257), ...bad]) {
    assert.equal(request.safeParse({ ...SEND, idempotency_key: key }).success, false);
    assert.equal(request.safeParse({ ...SEND, target_repo: key }).success, false);
  }
  assert.equal(request.safeParse({ ...SEND, idempotency_key: "x".repeat(256) }).success, true);
  assert.equal(request.safeParse({ ...SEND, idempotency_key: "日本🙂" }).success, true);
});

Deno.test("every request but attach and send refuses unknown fields", () => {
  for (const [name, { request }] of Object.entries(operations)) {
    if (name === "attach" || name === "send") continue;
    const required: Record<string, unknown> = {
      message_id: "m",
      sender_repo: "a",
      target_repo: "b",
      repo: "a",
      batch: "b",
      endpoint_id: "e",
      idempotency_key: "k",
      tmux: { server_pid: 1, window_id: "@1" },
      body: "text",
      entries: [{ sender_repo: "a", target_repo: "b", body: "c" }],
      program: ["tamq"],
      wait_ms: 0,
    };
    const { shape } = request as unknown as { shape: object };
    const wanted = (field: string) =>
      field === "message_id" || name === "replay" || name === "upgrade" ||
      (["allow", "unblock", "release", "compose"].includes(name) && field !== "entries");
    const fields = Object.fromEntries(
      Object.entries(required).filter(([field]) => wanted(field) && field in shape),
    );
    assert.equal(request.safeParse(fields).success, true, name);
    assert.equal(request.safeParse({ ...fields, surprise: 1 }).success, false, name);
  }
});

Deno.test("[T-25] a broker's frames are gate and settle, nothing else", () => {
  const good = [
    { type: "gate", open: false, reason: "busy" },
    { type: "settle", lease_token: "t", outcome: "written" },
    { type: "settle", lease_token: "t", outcome: "failed", reason: "dialog", scope: "target" },
  ];
  for (const frame of good) assert.equal(brokerFrame.safeParse(frame).success, true);
  const bad = [
    { type: "gate" },
    { type: "settle", lease_token: "t", outcome: "expired" },
    { type: "settle", lease_token: "t", outcome: "written", extra: 1 },
    { type: "deliver" },
  ];
  for (const frame of bad) assert.equal(brokerFrame.safeParse(frame).success, false);
});

Deno.test("[T-04] majors must match; minors and unknown capabilities do not matter", () => {
  assert.deepEqual(negotiate("0.1"), { newerMinor: false });
  assert.deepEqual(negotiate("0.7"), { newerMinor: true });
  const reason = (version: unknown) => {
    try {
      negotiate(version);
      return "ok";
    } catch (error) {
      return (error as TamqError).reason;
    }
  };
  assert.equal(reason("1.0"), "protocol_mismatch");
  for (const text of [undefined, "", "0", "0.1.2", "x.y", 0.1, "-1.0"]) {
    assert.equal(reason(text), "protocol_invalid");
  }
  const capabilities = ["bounded_delivery_ack_v1", "idempotent_send_v1", "something_new_v9"];
  requireService({ protocol: "0.3", capabilities });
  for (const missing of capabilities.slice(0, 2)) {
    assert.throws(
      () =>
        requireService({
          protocol: "0.1",
          capabilities: capabilities.filter((name) => name !== missing),
        }),
      (error) => error instanceof TamqError && error.reason === "capability_missing",
    );
  }
});
