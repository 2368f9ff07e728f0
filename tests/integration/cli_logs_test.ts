/** `tamq logs` as a process, beside real services. */
import assert from "node:assert/strict";
import { keepParts } from "../../lib/base/log_file.ts";
import { textLines } from "../helpers/service.ts";
import { World } from "../helpers/world.ts";

interface Line {
  time: string;
  level: string;
  source: string;
  event: string;
  fields: Record<string, string>;
}

Deno.test("[C-05] logs: the last lines of all services in the order of time, by level, source, age and number", async () => {
  await using world = await World.create(["alpha"]);
  const none = await world.tamq(["logs"]);
  assert.deepEqual([none.code, none.stdout], [0, ""]);
  assert.match(none.stderr, /^nothing is logged yet in /);
  await world.mustTamq(["serve", "--detach"]);
  await world.mustTamq(["hub", "serve", "--detach"]);
  await world.mustTamq(["hub", "stop"]);
  await Deno.writeTextFile(
    `${world.env.XDG_STATE_HOME}/tamq/tamq.log`,
    '2020-01-01T00:00:00.000Z warn  old.thing window=alpha text="\\\\x1b[2J"\n',
    { append: true },
  );
  const rows = async (...args: string[]) => {
    const text = await world.mustTamq(["logs", "--json", ...args]);
    return text.split("\n").slice(0, -1).map((line) => JSON.parse(line) as Line);
  };
  const all = await rows();
  assert.deepEqual(
    all.filter(({ event }) => /ready|stopped/.test(event)).map(({ source, event }) => [
      source,
      event,
    ]),
    [["service", "service.ready"], ["hub", "hub.ready"], ["hub", "hub.stopped"]],
  );
  assert.deepEqual((await rows("--level", "warn")).map(({ event }) => event), ["old.thing"]);
  assert.deepEqual((await rows("window")).map(({ fields }) => fields.window), ["alpha"]);
  assert.ok((await rows("--since", "1h")).every(({ event }) => event !== "old.thing"));
  assert.deepEqual((await rows("-n1", "hub")).map(({ event }) => event), ["hub.stopped"]);

  const text = await world.mustTamq(["logs", "window"]);
  assert.match(
    text,
    /^2020-01-01T00:00:00.000Z warn {2}window {2}old.thing window=alpha text=.*x1b/,
  );
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(text, /\u001b/);
  const coloured = await world.mustTamq(["logs", "window", "--color", "always"]);
  assert.ok(coloured.includes("\u001b[33mwarn \u001b[0m"));
  const wrong = await world.tamq(["logs", "everything"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /"everything" is no SOURCE: one of service, window, engine, hub/);
});

Deno.test("[C-05] logs -f shows what comes, over a rotation and from an engine that starts later; Ctrl-C ends it with status 0", async () => {
  await using world = await World.create(["alpha"]);
  await world.mustTamq(["serve", "--detach"]);
  const [program, ...args] = world.argv(["logs", "-f", "--json"]);
  await using child = new Deno.Command(program!, {
    args,
    env: world.env,
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const lines = textLines(child.stdout)[Symbol.asyncIterator]();
  const until = async (event: string) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, `it ended before ${event}`);
      const line = JSON.parse(value) as Line;
      if (line.event === event) return line;
    }
  };
  await until("service.ready");
  const log = `${world.env.XDG_STATE_HOME}/tamq/tamq.log`;
  keepParts(log);
  await Deno.writeTextFile(log, "2030-01-01T00:00:00.000Z info  written.after it=1\n");
  assert.equal((await until("written.after")).fields.it, "1");
  await world.mustTamq(["stop"]); // it still writes to the part that was moved aside
  await until("service.stopped");
  await world.mustTamq(["hub", "serve", "--detach"]);
  await until("hub.ready");
  child.kill("SIGINT");
  assert.equal((await child.status).code, 0);
  assert.equal((await lines.next()).done, true);
  assert.equal(await new Response(child.stderr).text(), "");
  await world.mustTamq(["hub", "stop"]);
});
