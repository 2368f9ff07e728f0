/** Malformed traffic: the service neither dies nor hangs nor leaks, and admits nothing that is broken. */
import assert from "node:assert/strict";
import { systemClock, within } from "../../lib/base/clock.ts";
import { TamqError } from "../../lib/base/errors.ts";
import { call } from "../../lib/client.ts";
import { decodeObject } from "../../lib/ipc/frame.ts";
import { parseRequest } from "../../lib/protocol/frame.ts";
import { RawClient } from "../helpers/raw_socket.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { descriptorCount, ServiceProcess, settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";

const encoder = new TextEncoder();

const VALID: readonly Record<string, unknown>[] = [
  { op: "ping", protocol: "0.1" },
  { op: "status", protocol: "0.1" },
  { op: "history", protocol: "0.1", limit: 3, cursor: "1", since: "2030-01-01T00:00:00Z" },
  { op: "message", protocol: "0.1", message_id: "x" },
  { op: "retry", protocol: "0.1", message_id: "x" },
  {
    op: "send",
    protocol: "0.1",
    client_id: "c",
    idempotency_key: "k",
    sender_repo: "local",
    target_repo: "nowhere",
    provenance: "cli",
    metadata: { a: [1, { b: null }] },
    body: "To:beta: ümlaut\nsecond line",
  },
  {
    op: "attach",
    protocol: "0.1",
    capabilities: [],
    repos: ["beta"],
    path: "/repos/beta",
    command: ["x"],
    mode: "trigger",
    tmux: { server_pid: 1, session: "s", window_id: "@1", pane_id: "%1" },
    instance: "i",
    worker_pid: 1,
  },
];

const ODD_VALUES = [
  null,
  true,
  -1,
  1e308,
  2 ** 53,
  "",
  "\u0000",
  "\ud800",
  [],
  {},
  [[]],
  "x".repeat(300),
];

/** A request with its fields, its bytes or its end damaged; sometimes unharmed. */
function damaged(random: Seeded): Uint8Array {
  const request = structuredClone(random.pick(VALID));
  const fields = Object.keys(request);
  switch (random.below(4)) {
    case 0:
      request[random.pick(fields)] = random.pick(ODD_VALUES);
      break;
    case 1:
      delete request[random.pick(fields)];
      break;
    case 2:
      request[random.pick(["__proto__", "constructor", "x", "op ", "Body"])] = random.pick(
        ODD_VALUES,
      );
      break;
  }
  const text = JSON.stringify(request) + random.pick(["\n", "\n", "\n", "\r\n", "\n\n", ""]);
  const bytes = encoder.encode(text);
  for (let i = random.below(4); i > 0; i--) bytes[random.below(bytes.length)] = random.below(256);
  if (random.below(5) === 0) return bytes.slice(0, random.below(bytes.length));
  if (random.below(20) === 0) return encoder.encode("[".repeat(random.below(70_000)) + "\n");
  return bytes;
}

Deno.test("[T-22] a damaged request is understood or refused by a TamqError, nothing else", () => {
  const random = new Seeded();
  for (let i = 0; i < faultCount("PARSES", 50_000); i++) {
    const bytes = damaged(random);
    const line = bytes.subarray(0, (bytes.indexOf(10) + 1 || bytes.length + 1) - 1);
    try {
      parseRequest(decodeObject(line));
    } catch (error) {
      if (!(error instanceof TamqError)) {
        throw new Error(`seed ${random.seed}, case ${i}`, { cause: error });
      }
    }
  }
});

Deno.test("[T-22] damaged traffic neither stops nor stalls nor leaks, and admits nothing", async () => {
  const random = new Seeded();
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    await using service = await ServiceProcess.start(settings, {
      env: { TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) },
    });
    const { socket } = settings;
    const settled = async () => {
      while ((await call(socket, "status", {})).service.connections > 1) { /* again */ }
      return descriptorCount(service.pid);
    };
    const before = await settled();

    const one = async () => {
      using client = await RawClient.open(socket);
      const bytes = damaged(random);
      // In pieces, or at once; then waiting, half-closing, or gone.
      const cut = random.below(2) === 0 ? random.below(bytes.length + 1) : bytes.length;
      await client.write(bytes.subarray(0, cut));
      await client.write(bytes.subarray(cut));
      const way = random.below(3);
      if (way === 0) return;
      await client.conn.closeWrite().catch(() => {});
      const answer = await client.answer();
      if (answer !== undefined) assert.equal(typeof answer.ok, "boolean");
    };
    const total = faultCount("FRAMES", 50_000);
    const turn = async () => {
      for (let i = 0; i < total / 32; i++) await one();
    };
    await within(
      systemClock,
      60_000 + total * 10,
      Promise.all(Array.from({ length: 32 }, turn)),
      () => {
        throw new Error("the service stalls");
      },
    ).catch((cause) => {
      throw new Error(`seed ${random.seed}`, { cause });
    });

    assert.equal((await call(socket, "ping", {})).pid, service.pid);
    assert.ok(await settled() <= before + 1, "descriptors");
    assert.deepEqual((await call(socket, "history", {})).messages, [], `seed ${random.seed}`);
    service.kill("SIGTERM");
    await service.ended();
    const broken = service.log.filter((line) => line.event === "request.failed");
    assert.deepEqual(broken, [], `no request was a surprise; seed ${random.seed}`);
  });
});
