/** What a worker starts and forgets stays below its broker (B-04, T-27). */
import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

Deno.test("[B-04] [T-27] a daemon that left its parent and its session is still its window's", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.open("bash --norc", "alpha", "beta");
  await world.untilScreen("beta", "bash-");
  const words = (...args: string[]) => world.argv(args).map((word) => `'${word}'`).join(" ");
  // Double fork and a session of its own: the parent is gone before tamq runs.
  const script = `${world.dir}/daemon.sh`;
  await Deno.writeTextFile(
    script,
    `while kill -0 "$1" 2>/dev/null; do :; done\n${words("send", "To:alpha: from a daemon")}\n` +
      `${words("retry", "0123456789abcdefghjkmnpqrs")} 2>'${world.dir}/retry'\n`,
  );
  await world.type("beta", `(p=$BASHPID; setsid sh '${script}' $p &)`);
  const [row] = await world.untilHistory(1);
  assert.equal(row!.sender_repo, "beta");
  const refusal = await world.until("the refusal", async () => {
    const text = await Deno.readTextFile(`${world.dir}/retry`).catch(() => "");
    return text.includes("\n") && text;
  });
  assert.match(refusal, /window of beta may not do this/);
  // Ended orphans are collected: the broker has no zombie among its children.
  const { pid } = JSON.parse(await world.mustTamq(["ping", "--json"])) as { pid: number };
  assert.ok(pid > 0);
  const endpoints = JSON.parse((await world.mustTamq(["endpoints", "--json"])).split("\n")[0]!);
  const broker = endpoints.attachments.find((a: { repo: string }) => a.repo === "beta").broker_pid;
  await world.until("no zombie", async () => {
    const states = (await world.must(["ps", "-o", "stat=", "--ppid", String(broker)])).split("\n");
    return !states.some((state) => state.startsWith("Z"));
  });
});
