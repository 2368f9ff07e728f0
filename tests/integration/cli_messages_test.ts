/** Sending, looking and deciding through the real command line and a real service. */
import assert from "node:assert/strict";
import { type Result, World } from "../helpers/world.ts";

function refused(result: Result, code: number, message: RegExp): void {
  assert.equal(result.code, code, result.stderr);
  assert.match(result.stderr, message);
  assert.match(result.stderr, /^tamq: [^\n]+\nhint: [^\n]+\n$/);
  assert.equal(result.stdout, "");
}

Deno.test("[B-07, T-08, T-10, C-01] send: every way to give the text; keys; nothing is altered", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.addRepo("a:b");
  await world.mustTamq(["serve", "--detach"]);
  const sent: string[] = [];
  const send = async (args: string[], stdin?: string | Uint8Array) => {
    const id = (await world.mustTamq(["send", ...args], { stdin })).trim();
    assert.match(id, /^[0-9a-z]{26}$/);
    const shown = JSON.parse(await world.mustTamq(["message", id, "--json"])) as {
      message: {
        body: string;
        target_repo: string;
        sender_repo: string;
        provenance: string;
        client_id: string;
      };
    };
    const { body, target_repo, sender_repo, provenance, client_id } = shown.message;
    assert.deepEqual([sender_repo, provenance, client_id], ["local", "cli", "tamq-cli"]);
    sent.push(id);
    return [target_repo, body];
  };
  await Deno.writeTextFile(`${world.dir}/body`, "of\na file\n\n");
  const big = "ü".repeat(4096);
  assert.deepEqual(await send(["To:alpha: one line"]), ["alpha", "one line"]);
  assert.deepEqual(await send(["To:alpha: first\n\nsecond\n"]), ["alpha", "first\n\nsecond\n"]);
  assert.deepEqual(await send(["To:a:b: longest name wins"]), ["a:b", "longest name wins"]);
  assert.deepEqual(await send(["--to", "beta", "To:alpha: quoted"]), ["beta", "To:alpha: quoted"]);
  assert.deepEqual(await send(["--to", "alpha"], "piped\n"), ["alpha", "piped"]);
  assert.deepEqual(await send(["To:alpha:"], "piped too"), ["alpha", "piped too"]);
  assert.deepEqual(await send(["--to", "alpha", "--file", "-"], "\ttab\n\n"), ["alpha", "\ttab\n"]);
  assert.deepEqual(await send(["--to", "alpha", "-f", `${world.dir}/body`]), [
    "alpha",
    "of\na file\n",
  ]);
  assert.deepEqual(await send(["--to", "alpha", "hello", "two  blanks"]), [
    "alpha",
    "hello two  blanks",
  ]);
  assert.deepEqual(await send(["To:alpha:", "unquoted", "words"]), ["alpha", "unquoted words"]);
  assert.deepEqual(await send([], "To:a:b: piped\nwith more\n"), ["a:b", "piped\nwith more"]);
  assert.deepEqual(await send(["--file", "-"], "To:alpha:\nbelow\n"), ["alpha", "below"]);
  assert.deepEqual(await send([], `To:alpha: ${big}`), ["alpha", big]);
  await Deno.writeTextFile(`${world.dir}/addressed`, "To:beta: from\na file\n");
  assert.deepEqual(await send(["-f", `${world.dir}/addressed`]), ["beta", "from\na file"]);
  assert.deepEqual(await send(["--to", "alpha"], `${big}\n`), ["alpha", big]);
  assert.deepEqual(await send(["--to", "alpha", "--", "-dash"]), ["alpha", "-dash"]);
  assert.deepEqual(await send(["--to", "alpha", "\ufffd is a character"]), [
    "alpha",
    "\ufffd is a character",
  ]);

  const once = JSON.parse(await world.mustTamq(["send", "To:beta: x", "--key", "k", "--json"]));
  const again = await world.tamq(["send", "To:beta: x", "--key", "k"]);
  assert.equal(again.stdout, `${once.message_id}\n`);
  assert.match(again.stderr, /nothing new was sent/);
  refused(await world.tamq(["send", "To:beta: y", "--key", "k"]), 4, /key/);

  const rows = await world.history();
  assert.deepEqual(rows.map((row) => row.message_id), [...sent, once.message_id], "oldest first");
});

Deno.test("[T-08, E-07, C-07] send: bad input is refused by one clear line, and nothing is stored", async () => {
  await using world = await World.create(["alpha", "beta"]);
  await world.mustTamq(["serve", "--detach"]);
  const send = (args: string[], stdin?: string | Uint8Array) =>
    world.tamq(["send", ...args], { stdin });
  refused(await send(["--to", "alpha"], ""), 2, /body is empty/);
  refused(await send(["--to", "alpha"], "\n"), 2, /body is empty/);
  refused(await send(["To:alpha: "]), 2, /body is empty/);
  refused(await send(["--to", "alpha", "x".repeat(8193)]), 2, /8193 bytes; at most 8192/);
  refused(await send(["--to", "alpha"], "x".repeat(100_000)), 2, /more than 8192 bytes/);
  refused(await send(["--to", "alpha"], "ü".repeat(4096) + "x"), 2, /8193 bytes/);
  refused(await send(["--to", "alpha"], new Uint8Array([65, 0xff, 66])), 2, /not valid UTF-8/);
  refused(await send(["To:alpha: \u001b[2Jx"]), 2, /control character U\+001B in line 1/);
  refused(await send(["--to", "alpha"], "a\nb\u0003"), 2, /U\+0003 in line 2/);
  refused(await send(["To:alpa: x"]), 1, /"alpa".*\nhint: did you mean "alpha"/);
  refused(await send(["--to", "nobody", "x"]), 1, /"nobody"/);
  refused(await send(["--to", "alpha", "--endpoint", "tmux-amq-1", "x"]), 3, /tmux-amq-1/);
  refused(await send(["hello"]), 2, /does not begin with To:REPO:/);
  refused(await send([]), 2, /no repository is given/);
  refused(await send([], "no address\n"), 2, /does not begin with To:REPO:/);
  refused(await send([], `To:alpha: ${"x".repeat(8193)}`), 2, /8193 bytes; at most 8192/);
  refused(await send([], "To:alpha: x".padEnd(20_000, "x")), 2, /more than 8192 bytes/);
  refused(await send([], "To:alpha: x\r\ny\r\n"), 2, /CRLF.*line 1\nhint: .*dos2unix/);
  refused(await send(["To:alpha:glued"]), 2, /blank must follow the second colon/);
  refused(await send(["To:alpha: a\nTo:beta: b"]), 2, /line 2 of the text addresses "beta"/);
  refused(await send(["--to", "alpha", "--file", "/nonexistent"]), 1, /no file \/nonexistent/);
  refused(await send(["--to", "alpha", "--file", world.dir]), 2, /cannot read/);
  refused(await send(["--to", "alpha", "--file", "-", "text"]), 2, /given twice/);
  // Bytes of an argument that are not UTF-8 reach Deno 2.9 as U+FFFD: caught, not sent altered.
  // Deno 2.7 refuses them itself, before tamq runs.
  const shell = `exec "$@" "$(printf 'To:alpha: \\377')"`;
  const mangled = await world.run(["bash", "-c", shell, "sh", ...world.argv(["send"])]);
  assert.notEqual(mangled.code, 0);
  assert.match(mangled.stderr, /not valid UTF-8|invalid UTF-8/);

  const json = await send(["--to", "nobody", "x", "--json"]);
  assert.equal(json.code, 1);
  const error = JSON.parse(json.stderr) as Record<string, unknown>;
  assert.deepEqual([error.code, error.reason, error.retry], [
    "NOT_FOUND",
    "unknown_target",
    "never",
  ]);
  assert.deepEqual(await world.history(), []);

  await world.mustTamq(["stop"]);
  refused(await send(["To:alpha: x"]), 3, /no service listens on .*tamq\.sock\nhint: .*tamq serve/);
});

Deno.test("[T-16, T-27, T-15, T-17, C-07] ack, retry, cancel and message: results and refusals", async () => {
  await using world = await World.create(["alpha"]);
  await world.mustTamq(["serve", "--detach"]);
  const send = async (text: string) => (await world.mustTamq(["send", `To:alpha: ${text}`])).trim();
  const one = await send("one");
  assert.match(
    await world.mustTamq(["cancel", one]),
    new RegExp(`^${one}  local/o → alpha  failed \\(cancelled\\)\n$`),
  );
  refused(await world.tamq(["cancel", one]), 1, /./);
  assert.match(await world.mustTamq(["retry", one]), /pending/);
  refused(await world.tamq(["retry", one]), 1, /./);
  assert.equal(JSON.parse(await world.mustTamq(["ack", "--json", one])).state, "acknowledged");
  assert.match(await world.mustTamq(["ack", one]), /acknowledged/);
  refused(await world.tamq(["message", "nope"]), 1, /nope/);
  const short = /there is no message 0\nhint: .*tamq history; .* six characters or more are enough/;
  refused(await world.tamq(["message", one.slice(0, 1)]), 1, short);
  // A beginning of the id does, as long as it is unique.
  assert.equal(
    await world.mustTamq(["message", "--json", one.slice(0, 20)]),
    await world.mustTamq(["message", "--json", one]),
  );
  const two = await send("two");
  assert.match(await world.mustTamq(["cancel", two.slice(0, 18)]), new RegExp(`^${two} `));
  assert.match(await world.mustTamq(["retry", two.slice(0, 18)]), new RegExp(`^${two} `));
  assert.match(await world.mustTamq(["ack", two.slice(0, 18)]), new RegExp(`^${two} `));
  const shared = [...one].findIndex((char, i) => char !== two[i]);
  if (shared >= 6) {
    refused(await world.tamq(["ack", one.slice(0, shared)]), 2, /several messages/);
  }
  refused(await world.tamq(["message", "zzzzzzzz"]), 1, /zzzzzzzz/);
  const details = await world.mustTamq(["message", one]);
  assert.match(
    details,
    /^message +\S+\nfrom +local\/o\nto +alpha\n[^]*state +acknowledged\n[^]*\n {2}│ one\n$/,
  );

  await world.mustTamq(["stop"]);
  assert.equal(
    await world.mustTamq(["message", one.slice(0, 20), "--json"]).then((t) =>
      JSON.parse(t).message.body
    ),
    "one",
  );
  refused(await world.tamq(["ack", one]), 3, /no service listens/);
});

Deno.test("[Q-04, C-01] history: filters, order, limits; with the service stopped; before it ever ran", async () => {
  await using world = await World.create(["alpha", "beta"]);
  const never = await world.tamq(["history"]);
  assert.deepEqual([never.code, never.stdout], [0, ""]);
  assert.match(never.stderr, /no messages yet/);
  refused(await world.tamq(["db-version"]), 1, /no database yet/);

  await world.mustTamq(["serve", "--detach"]);
  const ids: string[] = [];
  for (const [i, repo] of ["alpha", "beta", "alpha", "alpha"].entries()) {
    ids.push(
      (await world.mustTamq(["send", `To:${repo}: m${i}`, "--correlation", `c${i % 2}`])).trim(),
    );
  }
  await world.mustTamq(["cancel", ids[2]!]);
  // While the service runs it says why a message waits, to people and to programs.
  const { waiting_reason } =
    JSON.parse(await world.mustTamq(["message", ids[0]!, "--json"])).message;
  assert.equal(typeof waiting_reason, "string");
  const waiting = await world.mustTamq(["history", "--state", "pending"]);
  assert.equal(waiting.split(`pending (${waiting_reason})`).length, 4, waiting);
  for (const row of await world.history()) {
    assert.equal(row.waiting_reason, row.state === "pending" ? waiting_reason : null);
  }
  await world.mustTamq(["stop"]);

  const bodies = async (...args: string[]) =>
    (await world.mustTamq(["history", "--json", ...args])).split("\n").filter((line) => line !== "")
      .map((line) => (JSON.parse(line) as { body: string }).body);
  assert.deepEqual(await bodies(), ["m0", "m1", "m2", "m3"]);
  assert.deepEqual(await bodies("--reverse"), ["m3", "m2", "m1", "m0"]);
  assert.deepEqual(await bodies("-n2"), ["m2", "m3"]);
  assert.deepEqual(await bodies("--limit", "2", "--reverse"), ["m3", "m2"]);
  assert.deepEqual(await bodies("--repo", "beta"), ["m1"]);
  assert.deepEqual(await bodies("--state", "failed"), ["m2"]);
  assert.deepEqual(await bodies("--correlation", "c1"), ["m1", "m3"]);
  assert.deepEqual(await bodies("--since", "1h"), ["m0", "m1", "m2", "m3"]);
  assert.deepEqual(await bodies("--until", "1h"), []);
  const none = await world.tamq(["history", "--until", "1h"]);
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "", "no messages match\n"]);
  const typo = await world.tamq(["history", "--repo", "alpa"]);
  assert.match(typo.stderr, /^no messages match\nhint: no repository "alpa" .*mean "alpha"\?\n$/);
  const quiet = await world.tamq(["history", "--repo", "alpa", "--json"]);
  assert.deepEqual([quiet.stdout, quiet.stderr], ["", ""]);
  refused(await world.tamq(["history", "--since", "1h", "--until", "2h"]), 2, /is not before/);
  const text = await world.mustTamq(["history", "--repo", "alpha"]);
  assert.match(text, /^\S+ {2}local\/o → alpha {2}pending {2}cli, \d+s ago\n {2}│ m0\n/);
  assert.match(await world.mustTamq(["db-version"]), /^schema \d+ /);
  // A reader that has enough ends the command without a complaint.
  const quoted = world.argv(["history", "--json"]).map((word) => `'${word}'`).join(" ");
  const head = await world.run([
    "bash",
    "-c",
    `set -o pipefail; ${quoted} | head -c 1 > /dev/null`,
  ]);
  assert.deepEqual([head.code, head.stderr], [0, ""]);
  const full = await world.run(["bash", "-c", `${quoted} > /dev/full`]);
  assert.equal(full.code, 1);
  assert.match(JSON.parse(full.stderr).message, /cannot write standard output: No space/);
});

Deno.test("[L-01, L-05, L-06, C-07] serve, ping, status and stop: what they print and how they end", async () => {
  await using world = await World.create(["alpha"]);
  refused(await world.tamq(["ping"]), 3, /no service listens/);
  refused(await world.tamq(["status"]), 3, /no service listens/);
  assert.equal(await world.mustTamq(["stop"]), "no service was running\n");
  assert.match(await world.mustTamq(["serve", "--detach"]), /^service started \(pid \d+\)\n$/);
  assert.match(
    await world.mustTamq(["serve", "--detach"]),
    /^service already running \(pid \d+\)\n$/,
  );
  assert.match(await world.mustTamq(["ping"]), /^tamq \S+, protocol 0\.1, pid \d+\n$/);
  assert.equal(JSON.parse(await world.mustTamq(["ping", "--json"])).protocol, "0.1");
  const status = await world.mustTamq(["status"]);
  for (const part of ["service", "sqlite", "gita", "queue", "leases", "control"]) {
    assert.match(status, new RegExp(`^${part} +ok `, "m"));
  }
  assert.match(status, /^state hub +- +not observed/m);
  await Deno.remove(`${world.dir}/config/gita/repos.csv`);
  const broken = await world.tamq(["status"]);
  assert.equal(broken.code, 1, "a part that is not well shows in the exit status");
  assert.match(broken.stdout, /^gita +NOT OK /m);
  assert.equal(JSON.parse((await world.tamq(["status", "--json"])).stdout).gita.ok, false);
  assert.match(await world.mustTamq(["stop"]), /^service stopped \(pid \d+\)\n$/);
});
