/** mTLS for real: who reaches a handler, and who does not. */
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import grpc from "@grpc/grpc-js";
import { fromBinary } from "@bufbuild/protobuf";
import { systemClock } from "../../lib/base/clock.ts";
import { FAILURE_CODES, TamqError } from "../../lib/base/errors.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { Authority } from "../../lib/fleet/ca.ts";
import { Credentials } from "../../lib/fleet/credentials.ts";
import { FAILURES } from "../../lib/fleet/failure.ts";
import { FailureSchema } from "../../lib/fleet/gen/common_pb.ts";
import { AgentService } from "../../lib/fleet/gen/agent_pb.ts";
import type { Role } from "../../lib/fleet/identity.ts";
import { connect, type Handlers, ServerBuilder } from "../../lib/fleet/rpc.ts";
import { buf } from "../../scripts/fleet_proto.ts";
import { makePki, type Pki } from "../helpers/fleet_pki.ts";
import { withTempDir } from "../helpers/temp.ts";

/** Of grpc-js a back-off timer may outlive its closed channel by a moment; it holds nothing. */
function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: false, sanitizeResources: false });
}

interface Rig {
  readonly pki: Pki;
  readonly serverDir: string;
  readonly credentials: Credentials;
  readonly address: string;
  /** URIs of the callers that reached the handler. */
  readonly reached: string[];
  /** What the handler throws. */
  fail?: TamqError;
  call(credentials: grpc.ChannelCredentials): Promise<string>;
}

async function withServer(body: (rig: Rig) => Promise<void>): Promise<void> {
  await withTempDir(async (dir) => {
    const pki = await makePki(dir);
    const serverDir = await pki.give("agent", "a1");
    using credentials = await Credentials.open(serverDir, systemClock);
    const reached: string[] = [];
    const rig: Rig = {
      pki,
      serverDir,
      credentials,
      reached,
      address: "",
      async call(channel) {
        const { client, close } = connect(AgentService, rig.address, channel);
        try {
          return (await client.getAgentStatus({}, { deadlineMs: 5000 })).agentId;
        } finally {
          close();
        }
      },
    };
    const handlers = {
      getAgentStatus: (_: unknown, { peer }: { peer: { uri: string } }) => {
        reached.push(peer.uri);
        if (rig.fail !== undefined) return Promise.reject(rig.fail);
        return Promise.resolve({ agentId: peer.uri });
      },
    };
    const rest = Object.keys(AgentService.method)
      .filter((name) => name !== "getAgentStatus")
      .map((name) => [name, () => Promise.reject(new Error("unused"))]);
    const server = await new ServerBuilder({
      credentials: credentials.server(),
      address: "127.0.0.1:0",
      admit: (certificate) => credentials.admit(certificate, ["dispatcher"]),
      onError: () => {},
    }).add(
      AgentService,
      { ...Object.fromEntries(rest), ...handlers } as unknown as Handlers<typeof AgentService>,
    ).start();
    Object.assign(rig, { address: `127.0.0.1:${server.port}` });
    try {
      await body(rig);
    } finally {
      await server.stop(1000);
    }
  });
}

async function channelOf(dir: string, role: Role = "agent"): Promise<grpc.ChannelCredentials> {
  return (await Credentials.open(dir, systemClock)).channel(role);
}

/** A certificate of the authority with something missing or wrong. */
async function odd(pki: Pki, options: { uri?: string; notAfter?: number }) {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const raw = x509.PemConverter.decodeFirst(await Deno.readTextFile(`${pki.dir}/ca.key`));
  const signer = await crypto.subtle.importKey("pkcs8", raw, algorithm, false, ["sign"]);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: "4711",
    subject: "CN=odd",
    issuer: new x509.X509Certificate(pki.authority.certificate).subject,
    publicKey: keys.publicKey,
    signingKey: signer,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(options.notAfter ?? Date.now() + 86_400_000),
    extensions: options.uri === undefined
      ? []
      : [new x509.SubjectAlternativeNameExtension([{ type: "url", value: options.uri }])],
  });
  const key = x509.PemConverter.encode(
    await crypto.subtle.exportKey("pkcs8", keys.privateKey),
    "PRIVATE KEY",
  );
  return grpc.credentials.createSsl(
    Buffer.from(pki.authority.certificate),
    Buffer.from(key),
    Buffer.from(certificate.toString("pem")),
    { checkServerIdentity: () => undefined },
  );
}

test("[G-16] the peer is who its certificate names", async () => {
  await withServer(async ({ pki, call, reached }) => {
    const uri = await call(await channelOf(await pki.give("dispatcher", "d1")));
    assert.equal(uri, "tamq://lab/dispatcher/d1");
    assert.deepEqual(reached, [uri]);
  });
});

test("[G-16] no, foreign, expired, nameless, revoked certificates and wrong roles never reach a handler", async () => {
  await withServer(async (rig) => {
    const { pki, call, reached } = rig;
    const ca = Buffer.from(pki.authority.certificate);
    const any = { checkServerIdentity: () => undefined };
    const never = async (
      name: string,
      channel: grpc.ChannelCredentials,
      code: "UNAVAILABLE" | "UNAUTHENTICATED",
      reason?: string,
    ) => {
      await assert.rejects(call(channel), (error: TamqError) => {
        assert.equal(error.code, code, name);
        if (reason !== undefined) assert.equal(error.reason, reason, name);
        return true;
      });
      assert.deepEqual(reached, [], name);
    };
    await never("none", grpc.credentials.createSsl(ca, null, null, any), "UNAVAILABLE");
    const tools = { clock: systemClock, random: systemRandom };
    const other = await Authority.init(`${pki.dir}/other`, "lab", tools);
    const foreign = await other.issue({ role: "dispatcher", name: "d1" }, 1);
    await never(
      "foreign",
      grpc.credentials.createSsl(
        ca,
        Buffer.from(foreign.key),
        Buffer.from(foreign.certificate),
        any,
      ),
      "UNAVAILABLE",
    );
    const uri = "tamq://lab/dispatcher/d1";
    await never("expired", await odd(pki, { uri, notAfter: Date.now() - 1000 }), "UNAVAILABLE");
    await never("nameless", await odd(pki, {}), "UNAUTHENTICATED", "certificate_name");
    await never(
      "other fleet",
      await odd(pki, { uri: "tamq://elsewhere/dispatcher/d1" }),
      "UNAUTHENTICATED",
      "certificate_fleet",
    );
    await never(
      "wrong role",
      await channelOf(await pki.give("agent", "a2")),
      "UNAUTHENTICATED",
      "certificate_role",
    );
    const dir = await pki.give("dispatcher", "d9");
    const revoked = await channelOf(dir);
    const serials = await pki.authority.serialsOf("tamq://lab/dispatcher/d9");
    assert.equal(serials.length, 1);
    await pki.revoke(rig.serverDir, serials);
    await rig.credentials.reload();
    await never("revoked", revoked, "UNAUTHENTICATED", "certificate_revoked");
    // The same rig does let a good one through.
    await call(await channelOf(await pki.give("dispatcher", "d2")));
    assert.deepEqual(reached, ["tamq://lab/dispatcher/d2"]);
  });
});

test("[G-16] a client speaks to nobody but a server of the role and name it looks for", async () => {
  await withServer(async ({ pki, call, reached }) => {
    const dir = await pki.give("dispatcher", "d1");
    await assert.rejects(call(await channelOf(dir, "operator")), { code: "UNAVAILABLE" });
    // The address of one agent with the certificate of another.
    const mine = await Credentials.open(dir, systemClock);
    await assert.rejects(call(mine.channel("agent", "a2")), { code: "UNAVAILABLE" });
    assert.deepEqual(reached, []);
  });
});

test("[G-16] certificates are exchanged in a running server and client; a broken set changes nothing", async () => {
  await withServer(async ({ pki, serverDir, credentials, call }) => {
    const dir = await pki.give("dispatcher", "d1");
    const mine = await Credentials.open(dir, systemClock);
    await call(mine.channel("agent"));
    const before = new x509.X509Certificate(await Deno.readTextFile(`${serverDir}/cert.pem`));
    await pki.put(serverDir, await pki.authority.issue({ role: "agent", name: "a1" }, 10));
    await credentials.reload();
    // The client trusts the new one alone: the old one is revoked on its list.
    await pki.revoke(dir, [before.serialNumber]);
    await mine.reload();
    await call(mine.channel("agent"));
    await Deno.writeTextFile(`${serverDir}/key.pem`, await Deno.readTextFile(`${dir}/key.pem`));
    await assert.rejects(credentials.reload(), { reason: "fleet_credentials" });
    await call(mine.channel("agent"));
  });
});

test("[G-01] each of the ten codes crosses the wire with its rule, a bug as in doubt", async () => {
  await withServer(async (rig) => {
    const channel = await channelOf(await rig.pki.give("dispatcher", "d1"));
    for (const code of FAILURE_CODES) {
      rig.fail = new TamqError(code, "some_reason", "what failed", { hint: "what next" });
      await assert.rejects(rig.call(channel), {
        code,
        reason: "some_reason",
        message: "what failed",
        hint: "what next",
      });
    }
    rig.fail = new Error("a secret detail") as TamqError;
    await assert.rejects(rig.call(channel), (error: TamqError) => {
      assert.equal(error.code, "UNAVAILABLE");
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });
});

test("[G-01] a foreign client (buf curl, in Go) sees each of the ten codes and its reason", async () => {
  await withServer(async (rig) => {
    const dir = await rig.pki.give("dispatcher", "go");
    const url = `https://${rig.address}/tamq.fleet.AgentService/GetAgentStatus`;
    const tls = ["--insecure", "--cert", `${dir}/cert.pem`, "--key", `${dir}/key.pem`];
    // Servers are named by URI, which only our own clients check.
    const args = ["curl", "--protocol", "grpc", "--schema", ".", ...tls, "-d", "{}", url];
    for (const code of FAILURE_CODES) {
      rig.fail = new TamqError(code, "some_reason", "what failed");
      const { code: status, output } = await buf(args);
      assert.notEqual(status, 0, code);
      const said = JSON.parse(output);
      assert.equal(said.code, code.toLowerCase());
      const [detail] = said.details;
      assert.equal(detail.type, "tamq.fleet.Failure", output);
      const failure = fromBinary(
        FailureSchema,
        Uint8Array.from(atob(detail.value), (char) => char.charCodeAt(0)),
      );
      assert.deepEqual([failure.reason, failure.code], ["some_reason", FAILURES[code].wire]);
    }
    rig.fail = undefined;
    assert.match((await buf(args)).output, /tamq:\/\/lab\/dispatcher\/go/);
  });
});
