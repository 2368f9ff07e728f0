/** The adapter against a real message service and windows without terminals. */
import assert from "node:assert/strict";
import { call } from "../../lib/client.ts";
import { CoordinationEngineAdapter, resolveEndpoint } from "../../lib/coord/adapter.ts";
import type { WireEndpoint } from "../../lib/protocol/schema.ts";
import { settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";
import { ScriptedAnswers } from "../helpers/scripted_answers.ts";

const REQUEST = {
  lease_id: "lease-1",
  target_repo: "alpha",
  trigger: {
    id: "trigger-1",
    source: "task",
    source_id: "t",
    source_revision: "3",
    target_repo: "alpha",
    reason: "task_actionable",
    observed_at: "2030-01-01T00:00:00.000Z",
  },
  prompt: "do it\nnow",
} as const;

const PING = {
  protocol: "0.1",
  version: "1",
  capabilities: ["bounded_delivery_ack_v1", "idempotent_send_v1", "something_new_v9"],
  service_id: "s",
  pid: 1,
  started_at: "",
};

function endpoint(id: string, ...repos: string[]): WireEndpoint {
  return {
    endpoint_id: id,
    tmux_session: "s",
    protocol: "0.1",
    capabilities: [],
    repos,
    attachments: [],
  };
}

Deno.test("[T-05][T-23][K-10] a wake is a send with exactly the contract's fields; the same again is the same message", async () => {
  await withTempDir(async (dir) => {
    await using service = new ScriptedAnswers(`${dir}/s.sock`, {
      ping: PING,
      endpoints: {
        endpoints: [endpoint("tmux-amq-7", "beta", "alpha"), endpoint("tmux-amq-8", "c")],
      },
      send: { message_id: "m1", deduplicated: false, state: "pending" },
    });
    const adapter = new CoordinationEngineAdapter({ socket: () => `${dir}/s.sock` });
    const ack = await adapter.wake(REQUEST);
    assert.deepEqual({ ...ack, accepted_at: "" }, {
      lease_id: "lease-1",
      session_id: "tmux-amq-7",
      accepted_at: "",
      capability: "started",
    });
    const checkpoint = {
      lease_id: "l0",
      summary: "s",
      files_changed: [],
      blocked_reason: null,
      recorded_at: "2030-01-01T00:00:00.000Z",
    };
    assert.equal((await adapter.wake({ ...REQUEST, checkpoint })).capability, "resumed");
    assert.deepEqual(service.ops(), ["ping", "endpoints", "send", "ping", "endpoints", "send"]);
    const sends = service.requests.filter((request) => request.op === "send");
    assert.deepEqual(sends[0], sends[1]);
    assert.deepEqual(sends[0], {
      op: "send",
      protocol: "0.1",
      client_id: "coordination-engine",
      idempotency_key: "lease-1",
      correlation_id: "trigger-1",
      sender_repo: "coordination-engine",
      target_repo: "alpha",
      endpoint_id: "tmux-amq-7",
      provenance: "coordination_engine",
      metadata: { lease_id: "lease-1", trigger_id: "trigger-1", source_revision: "3" },
      body: "do it\nnow",
    });
  });
});

Deno.test("[T-04][T-05] another major version or a missing capability stops the wake before any message", async () => {
  for (
    const [ping, reason] of [
      [{ ...PING, protocol: "1.0" }, "protocol_mismatch"],
      [{ ...PING, capabilities: ["idempotent_send_v1"] }, "capability_missing"],
    ] as const
  ) {
    await withTempDir(async (dir) => {
      await using service = new ScriptedAnswers(`${dir}/s.sock`, { ping });
      const adapter = new CoordinationEngineAdapter({ socket: () => `${dir}/s.sock` });
      await assert.rejects(adapter.wake(REQUEST), { reason });
      assert.deepEqual(service.ops(), ["ping"]);
    });
  }
});

Deno.test("[T-05] none live is unavailable and creates nothing; several need a name and nobody is chosen", async () => {
  await withTempDir(async (dir) => {
    const answers: Record<string, unknown> = { ping: PING, endpoints: { endpoints: [] } };
    await using service = new ScriptedAnswers(`${dir}/s.sock`, answers);
    const adapter = new CoordinationEngineAdapter({ socket: () => `${dir}/s.sock` });
    assert.equal((await adapter.wake(REQUEST)).capability, "unavailable");
    answers.endpoints = {
      endpoints: [endpoint("tmux-amq-1", "alpha"), endpoint("tmux-amq-2", "alpha")],
    };
    await assert.rejects(adapter.wake(REQUEST), { reason: "ambiguous_endpoint" });
    assert.ok(!service.ops().includes("send"));
    answers.send = { message_id: "m", deduplicated: false, state: "pending" };
    assert.equal((await adapter.wake(REQUEST, "tmux-amq-2")).session_id, "tmux-amq-2");
    assert.equal((await adapter.wake(REQUEST, "tmux-amq-3")).capability, "unavailable");
  });
  assert.equal(resolveEndpoint([endpoint("a", "beta")], "alpha"), undefined);
});

Deno.test("[K-10] nobody listens: the wake fails and can be tried again", async () => {
  await withTempDir(async (dir) => {
    const { socket } = await settingsIn(dir);
    const adapter = new CoordinationEngineAdapter({ socket: () => socket });
    await assert.rejects(adapter.wake(REQUEST), { reason: "service_unavailable" });
    await assert.rejects(call(socket, "ping", {}), { reason: "service_unavailable" });
  });
});
