/**
 * Canaries: texts that must never leave the places that are made for them. They are planted in all
 * that passes through the product, a whole life of it runs, and then every file that it wrote and
 * everything that it prints about itself is searched (C-05, K-14, K-16).
 */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { CoordWorld } from "../helpers/coord_world.ts";
import type { Result } from "../helpers/world.ts";

/** Databases may hold these: that is where messages and tasks live. */
const BODIES = {
  sent: "CANARYsentbody",
  refused: "CANARYrefusedbody",
  worker: "CANARYworkerbody",
  operator: "CANARYoperatorbody",
  away: "CANARYspooledbody",
  replayed: "CANARYreplayedbody",
  title: "CANARYtasktitle",
  description: "CANARYtaskdescription",
  hubMessage: "CANARYhubmessage",
  summary: "CANARYcheckpointsummary",
  metadata: "CANARYcorrelation",
};
/** No file of ours may hold these. */
const SECRETS = {
  terminal: "CANARYterminaloutput",
  keys: "CANARYkeystrokes",
  environment: "CANARYenvironment",
  credential: "CANARYcredential",
  badLine: "CANARYbadline",
  unknown: "CANARYunknownname",
};
const ALL = [...Object.values(BODIES), ...Object.values(SECRETS)];

/** Every regular file below, with its bytes as text: an ASCII canary stays whole in any encoding. */
function* filesBelow(dir: string): Generator<{ path: string; text: string }> {
  for (const entry of Deno.readDirSync(dir)) {
    const path = `${dir}/${entry.name}`;
    if (entry.isDirectory) yield* filesBelow(path);
    else if (entry.isFile) {
      yield { path, text: new TextDecoder("latin1").decode(Deno.readFileSync(path)) };
    }
  }
}

const found = (text: string, canaries: readonly string[]) =>
  canaries.filter((canary) => text.includes(canary));

/** The receipts of a database, as text. */
function receiptsOf(path: string): string {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
      .map((row) => String(row.name)).filter((name) => /receipt/.test(name));
    assert.ok(tables.length > 0, `${path} has receipts`);
    const rows = tables.flatMap((name) => db.prepare(`SELECT * FROM ${name}`).all());
    assert.ok(rows.length > 0, `${path} has receipts`);
    return JSON.stringify(rows);
  } finally {
    db.close();
  }
}

/** A State Hub that answers with all that it was told: what a careless or hostile one may do. */
function echoingHub(): Disposable & { readonly base: string; readonly asked: Promise<string> } {
  const asked = Promise.withResolvers<string>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    const told = request.headers.get("authorization") ?? "";
    asked.resolve(told);
    return Response.json({
      error: {
        code: "FAILED_PRECONDITION",
        reason: "not_now",
        message: `you said ${told}`,
        hint: told,
        retry: "never",
      },
    }, { status: 400 });
  });
  return {
    base: `http://127.0.0.1:${server.addr.port}`,
    asked: asked.promise,
    [Symbol.dispose]: () => void server.shutdown(),
  };
}

Deno.test("[C-05][C-06][K-14][K-16][K-21][L-06] canaries in bodies, terminals, environment, configuration, credentials and tasks reach no log, status or receipt, and no file but the databases", async () => {
  using badHub = echoingHub();
  await using coord = await CoordWorld.create(
    ["alpha", "beta", "gamma"],
    `[statehub]
credential_command = ["sh", "-c", "printf CANARYcred; printf ential"]

[coordination]
statehub_poll_interval_seconds = 0.2
`,
  );
  const { world } = coord;
  world.env.SOME_API_KEY = SECRETS.environment;
  const state = `${world.dir}/state/tamq`;
  const outputs: Record<string, Result> = {};
  const print = async (...args: string[]) => {
    const result = await world.tamq(args);
    outputs[args.join(" ")] = result;
    return result;
  };

  const [program, ...words] = world.argv(["watch", "--json"]);
  // Everything at its most talkative.
  await coord.hub("serve", "--detach", "--verbose");
  await world.mustTamq(["serve", "--detach", "--verbose"]);
  await coord.coord("serve", "--detach", "--verbose");
  await using watching = new Deno.Command(program!, {
    args: words,
    env: world.env,
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const watched = watching.output();
  await coord.worker("alpha");
  const worker = new URL("../agents/line_worker.ts", import.meta.url).pathname;
  await world.open(
    `${Deno.execPath()} run -A --quiet --no-lock ${worker} ${world.dir}/lines`,
    "beta",
  );
  await world.untilScreen("beta", "ready");

  // Delivered, failed, withdrawn, refused.
  await world.mustTamq([
    "send",
    `To:beta: ${BODIES.sent}`,
    "--correlation",
    BODIES.metadata,
  ]);
  await world.untilScreen("beta", BODIES.sent);
  const long = await world.mustTamq(["send", "--to", "beta"], {
    stdin: `${BODIES.sent} ${"long ".repeat(1000)}`,
  });
  await world.until(
    "the failure",
    async () =>
      (await world.history()).some((row) =>
        row.message_id === long.trim() && row.last_failure_reason !== null
      ),
  );
  const waiting = (await world.mustTamq(["send", `To:gamma: ${BODIES.sent}`])).trim();
  await world.mustTamq(["cancel", waiting]);
  assert.equal((await print("send", "--to", "alpha", `${BODIES.refused}\u001b`)).code, 2);
  assert.equal((await print("send", `To:${SECRETS.unknown}: ${BODIES.refused}`)).code, 1);

  // Terminals: output, keys, blocks, the operator's line, a name that nobody has.
  await world.type("beta", `${SECRETS.keys}`);
  await world.type("beta", `say ${SECRETS.terminal}`);
  await world.type("beta", `say To:alpha: ${BODIES.worker}\\n`);
  await world.type("beta", `To:alpha: ${BODIES.operator}`);
  await world.type("beta", `say To:${SECRETS.unknown}: ${BODIES.refused}\\n`);
  await world.type("beta", `To:${SECRETS.unknown}: ${BODIES.refused}`);
  for (const body of [BODIES.worker, BODIES.operator]) {
    await world.until(body, async () => (await world.history()).some((row) => row.body === body));
  }

  // While the service is away the spool holds a body; afterwards it does not.
  await world.mustTamq(["stop"]);
  await world.type("beta", `say To:alpha: ${BODIES.away}\\n`);
  const spooled = () =>
    [...filesBelow(`${state}/spool`)].some(({ text }) => text.includes(BODIES.away));
  await world.until("the spool", () => Promise.resolve(spooled()));
  await world.mustTamq(["serve", "--detach", "--verbose"]);
  await world.until(
    "it to be sent",
    async () => (await world.history()).some((row) => row.body === BODIES.away),
  );
  await world.until("the spool to be empty", () => Promise.resolve(!spooled()));

  // The loop: task, wake, checkpoint, completion; a gate; a message of the hub.
  await coord.hub(
    ...["task", "add", BODIES.title, "--repo", "alpha", "--id", "one", "--ready"],
    ...["--description", BODIES.description],
  );
  await coord.untilDone("one");
  await coord.hub(
    ...["task", "add", BODIES.title, "--repo", "alpha", "--id", "gated", "--ready"],
    ...["--action", "destructive"],
  );
  await coord.hub(
    ...["message", "add", BODIES.hubMessage, "--to", "alpha", "--body", BODIES.hubMessage, "--ask"],
  );
  await coord.until("a gate and published receipts", async () => {
    const [status] = await coord.rows("coord", "status");
    return (await coord.rows("coord", "triggers", "--state", "gated")).length > 0 &&
      (status!.projection as { waiting: number }).waiting === 0;
  });
  await print("coord", "explain", "one", "--json");
  await print("coord", "explain", "one");
  await print("coord", "leases", "--all", "--json");
  await print("coord", "triggers", "--json");
  await print("coord", "status", "--json");

  // A hub that says back what it was told.
  await coord.coord("stop");
  await world.must(world.argv(["coord", "serve", "--detach", "--verbose"]), {
    env: { STATEHUB_API_BASE: badHub.base },
  });
  assert.equal(await badHub.asked, `Bearer ${SECRETS.credential}`);
  await world.until(
    "the engine to have understood",
    async () => (await Deno.readTextFile(`${state}/coord/coord.log`)).includes("hub.unreachable"),
  );

  // The same windows under brokers that became a program anew; then one more message.
  const upgraded = await print("upgrade", "--json");
  assert.equal(upgraded.code, 0, upgraded.stdout + upgraded.stderr);
  await world.type("beta", `say To:alpha: ${BODIES.worker} again\\n`);
  await world.until(
    "a message after the upgrade",
    async () =>
      (await world.history()).some((row) =>
        row.body === `${BODIES.worker} again` && row.state === "injected"
      ),
  );

  // Keeping and removing.
  await world.mustTamq(["export", `${world.dir}/all.jsonl`]);
  await Deno.writeTextFile(
    `${world.dir}/again.jsonl`,
    `{"sender_repo":"local","target_repo":"gamma","body":"${BODIES.replayed}"}\n${SECRETS.badLine}\n`,
  );
  const endpoint = /tmux-amq-\d+/.exec(await world.mustTamq(["endpoints"]))![0];
  await print("replay", `${world.dir}/again.jsonl`, "--endpoint", endpoint);
  await print("purge", "--before", "0s", "--yes");
  await print("doctor");
  await print("doctor", "--json");
  await print("status");
  await print("status", "--json");
  await print("endpoints", "--json");
  await print("who");
  await print("config", "show");
  await world.mustTamq(["stop"]);
  await coord.coord("stop");
  await coord.hub("stop");
  await print("logs", "--json");
  await print("logs");

  watching.kill("SIGINT");
  const { code, stdout, stderr } = await watched;
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  outputs["watch --json"] = { code, stdout: text(stdout), stderr: text(stderr) };
  assert.match(text(stdout), /"type":"message"/);

  // Nothing that describes the product's own doings holds any of them.
  outputs["tmux"] = {
    code: 0,
    stdout: await world.tmux("list-windows", "-a", "-F", "#{pane_start_command} #{@tamq_repo}"),
    stderr: "",
  };
  for (const [name, { stdout, stderr }] of Object.entries(outputs)) {
    // A refused line of a command is told to whoever typed it.
    const typed = ALL.filter((canary) => name.includes(canary));
    assert.deepEqual(found(stdout + stderr, ALL.filter((one) => !typed.includes(one))), [], name);
  }
  assert.ok(outputs["logs --json"]!.stdout.includes("delivery.settled"), "the logs were read");
  for (const name of ["tamq.sqlite3", "coord.sqlite3", "hub/hub.sqlite3"]) {
    assert.deepEqual(found(receiptsOf(`${state}/${name}`), ALL), [], `receipts of ${name}`);
  }

  const seen: string[] = [];
  for (const dir of ["state", "run"]) {
    for (const { path, text } of filesBelow(`${world.dir}/${dir}`)) {
      seen.push(path.slice(world.dir.length + 1));
      assert.deepEqual(found(text, Object.values(SECRETS)), [], path);
      if (/\.sqlite3(-wal|-shm|\.v\d+\..*\.backup)?$/.test(path)) continue;
      assert.deepEqual(found(text, Object.values(BODIES)), [], path);
    }
  }
  for (const name of ["tamq.log", "coord/coord.log", "hub/hub.log", "tamq.sqlite3"]) {
    assert.ok(seen.includes(`state/tamq/${name}`), `${name} was searched, of ${seen}`);
  }
  // The search finds what is there.
  const exported = await Deno.readTextFile(`${world.dir}/all.jsonl`);
  for (const name of ["sent", "worker", "operator", "away", "metadata"] as const) {
    assert.ok(exported.includes(BODIES[name]), name);
  }
});
