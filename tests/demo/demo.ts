/**
 * The main job in front of your eyes: throw-away repositories, a private tmux server, a registry in
 * a temporary folder, two scripted workers that exchange messages. Your own tmux, gita and state
 * stay untouched, and everything is removed at the end.
 */
import { CoordWorld } from "../helpers/coord_world.ts";
import { World } from "../helpers/world.ts";

const WORKER = new URL("../agents/line_worker.ts", import.meta.url).pathname;

function say(text: string): void {
  console.log(text);
}

function show(title: string, screen: string): void {
  say(`\n--- ${title}`);
  for (const line of screen.trimEnd().split("\n")) {
    if (line.trim() !== "") say(`    | ${line.slice(0, 100)}`);
  }
}

/** Tasks that wake workers: two repositories, three dependent tasks, one more left to a person. */
async function coordination(): Promise<void> {
  say("\n6. State Hub and coordination engine, with two more repositories and scripted workers.");
  await using coord = await CoordWorld.create(["gamma", "delta"]);
  say("   $ tamq hub serve --detach; tamq serve --detach; tamq coord serve --detach");
  await coord.start();
  await coord.worker("gamma");
  await coord.worker("delta");
  say("   $ tamq hub task add 'Do api' --repo gamma --id api --ready");
  say("   $ tamq hub task add 'Do use' --repo delta --id use --ready --depends api");
  say("   $ tamq hub task add 'Do docs' --repo gamma --id docs --ready --depends use");
  say("   $ tamq hub task add 'Do drop' --repo delta --id drop --ready --action destructive");
  await coord.task("api", "gamma");
  await coord.task("use", "delta", "--depends", "api");
  await coord.task("docs", "gamma", "--depends", "use");
  await coord.task("drop", "delta", "--action", "destructive");
  await coord.untilDone("docs");
  await coord.until("the last lease to end", async () => {
    return (await coord.rows("coord", "leases")).length === 0;
  });
  for (
    const args of [["hub", "task", "list"], ["coord", "explain", "use"], ["coord", "triggers"]]
  ) {
    say(`\n   $ tamq ${args.join(" ")}\n`);
    say((await coord.world.mustTamq(args)).trimEnd());
  }
}

async function main(): Promise<void> {
  for (const tool of ["tmux", "gita", "git"]) {
    const found = await new Deno.Command("sh", {
      args: ["-c", `command -v ${tool}`],
      stdout: "null",
    })
      .output();
    if (!found.success) {
      console.error(`demo: ${tool} is missing; run .ci/setup first (it installs what is needed)`);
      Deno.exit(3);
    }
  }

  say("1. Two repositories, registered with gita, in a temporary folder.");
  await using world = await World.create(["alpha", "beta"]);
  say(`   ${world.dir}/repos/{alpha,beta}`);

  say("\n2. tamq opens a tmux window for each and starts the message service.");
  const command = (name: string, reply: string) =>
    [
      Deno.execPath(),
      "run",
      "-A",
      "--quiet",
      "--no-lock",
      WORKER,
      `${world.dir}/${name}.log`,
      reply,
    ]
      .map((word) => `'${word}'`).join(" ");
  say("   $ tamq --command WORKER alpha");
  await world.open(command("alpha", "thanks"), "alpha");
  say("   $ tamq --command WORKER beta");
  await world.open(
    command("beta", "To:alpha: rebased on main\\nthree commits, no conflict\\n"),
    "beta",
  );
  await world.untilScreen("alpha", "ready");
  await world.untilScreen("beta", "ready");

  say(
    "\n3. The worker in alpha prints a block addressed to beta; beta's worker reads it and answers.",
  );
  await world.type("alpha", "say To:beta: please rebase\\nthe branch is stale\\n");
  await world.untilScreen("alpha", "From:beta: rebased on main");

  say("\n4. A person types a line in alpha's window, and another one sends from any shell.");
  await world.type("alpha", "To:beta: hello from the operator");
  say("   $ tamq send 'To:beta: and one from the command line'");
  await world.mustTamq(["send", "To:beta: and one from the command line"]);
  await world.untilScreen("beta", "and one from the command line");

  say(
    "\n5. The service is stopped; what is printed meanwhile is kept and arrives after its start.",
  );
  say("   $ tamq stop");
  await world.mustTamq(["stop"]);
  await world.type("alpha", "say To:beta: written while the service was down\\n");
  say("   $ tamq serve --detach");
  await world.mustTamq(["serve", "--detach"]);
  await world.untilScreen("beta", "written while the service was down");
  await world.untilHistory(5);

  show("the window of alpha", await world.screen("alpha"));
  show("the window of beta", await world.screen("beta"));
  say("\n   $ tamq history\n");
  say(await world.mustTamq(["history"]));
  await coordination();
  say("\nDone. Everything the demonstration made is being removed.");
}

await main();
