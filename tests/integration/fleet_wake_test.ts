/** The whole way: an operator's command, a dispatcher, an agent, its message service, a window. */
import assert from "node:assert/strict";
import { call } from "../../lib/client.ts";
import { runInside } from "../helpers/cli.ts";
import { meta, withFleet } from "../helpers/fleet_world.ts";
import { ServiceProcess, settingsIn, textLines } from "../helpers/service.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** See fleet_window_entry.ts. */
class WindowProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #lines: AsyncGenerator<string>;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;

  constructor(socket: string, repo: string) {
    const entry = `${ROOT}tests/helpers/fleet_window_entry.ts`;
    const args = ["run", "-A", "--no-check", "--quiet", "--frozen", "--config", `${ROOT}deno.json`];
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [...args, entry, socket, repo],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#lines = textLines(this.#child.stdout);
    this.#input = this.#child.stdin.getWriter();
  }
  async said(): Promise<unknown> {
    return JSON.parse((await this.#lines.next()).value ?? "null");
  }
  async written(): Promise<void> {
    await this.#input.write(new TextEncoder().encode("\n"));
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
    await this.#lines.return(undefined);
    await this.#input.close().catch(() => {});
  }
}

/** Of grpc-js a back-off timer may outlive its closed channel by a moment; it holds nothing. */
function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: false, sanitizeResources: false });
}

test("[G-08] [G-06] tamq fleet run wakes the worker on the agent's host, once, and says so", async () => {
  await withFleet(async (world) => {
    const tls = await world.pki.give("operator", "cli");
    const fleet = async (...args: string[]) => {
      const result = await runInside(
        ["fleet", ...args, "--tls", tls, "--dispatcher", `127.0.0.1:${world.dispatcherPort}`],
        { env: { HOME: world.dir, TAMQ_STATE_DIR: `${world.dir}/cli` } },
      );
      assert.equal(result.stderr, "", args.join(" "));
      return result;
    };
    const settings = await settingsIn(`${world.dir}/a`);
    const repos = JSON.stringify({ api: "/repos/api" });
    await using _service = await ServiceProcess.start(settings, { env: { TEST_REPOS: repos } });
    await using api = new WindowProcess(settings.socket, "api");
    assert.deepEqual(await api.said(), { attached: "api" });

    await world.dispatcher();
    assert.match((await fleet("agents")).stdout, /no agents/);
    await fleet("approve", "a1", "--cell", "cell1", "--address", `127.0.0.1:${world.agentPort}`);
    assert.equal((await fleet("status")).code, 1, "nobody has joined yet");
    const agent = await world.agent({ executed: "" });
    await agent.event("fleet.joined");
    assert.equal((await fleet("status")).code, 0);

    await fleet("drain", "a1");
    const ran = JSON.parse(
      (await fleet("run", "a1", "api", "the build is red", "--id", "e1", "--json")).stdout,
    );
    assert.equal(ran.state, "reserved");
    await fleet("resume", "a1");
    assert.deepEqual(await api.said(), { body: "the build is red" });
    await world.settled("e1", "accepted");
    await api.written();
    await world.settled("e1", "applied");

    // The same command again is the same execution, and another prompt under its id is refused.
    await fleet("run", "a1", "api", "the build is red", "--id", "e1");
    await assert.rejects(world.submit("e1", "another prompt"), { code: "ABORTED" });
    const { messages } = await call(settings.socket, "history", {});
    assert.equal(messages.length, 1);
    assert.equal(messages[0]?.provenance, "coordination_engine");

    const list = (await fleet("executions", "--json")).stdout.trim().split("\n").map((line) =>
      JSON.parse(line)
    );
    assert.deepEqual(list.map(({ execution_id, state }) => [execution_id, state]), [[
      "e1",
      "applied",
    ]]);
    assert.equal(list[0].message_id, messages[0]?.message_id);
    assert.match((await fleet("explain", "e1")).stdout, /permitted +permit_issued/);

    // A repository that is open nowhere: nothing was sent, and that is known.
    await fleet("run", "a1", "web", "hello", "--id", "e2");
    await world.settled("e2", "failed");
    // A stop of what waits at its agent is for the agent; what has no permit yet is released.
    await fleet("drain", "a1");
    await fleet("run", "a1", "api", "never mind", "--id", "e3");
    assert.match((await fleet("release", "e3")).stdout, /released/);
    assert.equal((await world.explain("e3")).execution?.state, "released");
  });
});

test("[G-16] tamq fleet ca makes, issues and revokes; wrong certificates say what is wrong", async () => {
  await withFleet(async (world) => {
    const dir = `${world.dir}/other`;
    const env = { HOME: world.dir, TAMQ_STATE_DIR: `${world.dir}/cli` };
    const ca = (...args: string[]) => runInside(["fleet", "ca", ...args, "--dir", dir], { env });
    assert.equal((await ca("init", "lab")).code, 0);
    const again = await ca("init", "lab");
    assert.equal(again.code, 4);
    assert.match(again.stderr, /authority is there already/);
    assert.equal((await ca("init", "Not A Name")).code, 2);
    const out = `${world.dir}/ops`;
    const made = await ca("issue", "operator", "ops", "--out", out, "--json");
    assert.equal(JSON.parse(made.stdout).uri, "tamq://lab/operator/ops");
    for (const name of ["key.pem", "cert.pem"]) {
      assert.equal((await Deno.stat(`${out}/${name}`)).mode! & 0o777, 0o600, name);
    }
    assert.equal((await Deno.stat(`${dir}/ca.key`)).mode! & 0o777, 0o600);
    assert.equal((await ca("issue", "driver", "x")).code, 2);
    assert.equal((await ca("revoke", "operator", "nobody")).code, 1);
    const revoked = await ca("revoke", "operator", "ops", "--json");
    assert.equal(JSON.parse(revoked.stdout).revoked, 1);

    // The same name from another authority opens nothing.
    await world.dispatcher();
    const address = ["--dispatcher", `127.0.0.1:${world.dispatcherPort}`];
    const refused = await runInside(["fleet", "status", "--tls", out, ...address], { env });
    assert.equal(refused.code, 3);
    const agent = await world.pki.give("agent", "a1");
    const wrong = await runInside(["fleet", "status", "--tls", agent, ...address], { env });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /is no certificate of an? operator[\s\S]*fleet ca issue operator/);
  });
});

test("[G-16] a running dispatcher takes up a revocation list and a new certificate that are copied in", async () => {
  await withFleet(async (world) => {
    const tls = await world.pki.give("dispatcher", "d1");
    const dispatcher = await world.dispatcher({ tls });
    await world.operator.getFleet({ meta: meta() });
    const from = dispatcher.log.length;
    await world.pki.put(
      tls,
      await world.pki.authority.issue({ role: "dispatcher", name: "d1" }, 9),
    );
    await dispatcher.event("fleet.credentials_loaded", from);
    await world.operator.getFleet({ meta: meta() });

    const seen = dispatcher.log.length;
    await world.pki.revoke(tls, await world.pki.authority.serialsOf("tamq://lab/operator/ops"));
    await dispatcher.event("fleet.credentials_loaded", seen);
    // Also on the connection that was open all the time.
    await assert.rejects(world.operator.getFleet({ meta: meta() }), {
      code: "UNAUTHENTICATED",
      reason: "certificate_revoked",
    });
    assert.equal((await dispatcher.end()).code, 0);
  });
});
