/** What `tamq __complete` proposes; the scripts are tested in real shells by the integration tests. */
import assert from "node:assert/strict";
import { COMMANDS, FAMILIES } from "../../../lib/cli/program.ts";
import { STATES } from "../../../lib/model/message.ts";
import { runInside } from "../../helpers/cli.ts";
import { withTempDir } from "../../helpers/temp.ts";

const NAMES = ["alpha", "alpine", "two words", "a:b", "#(x)", "gone"];

async function withNames(body: (complete: (...words: string[]) => Promise<string[]>) => unknown) {
  await withTempDir(async (dir) => {
    Deno.mkdirSync(`${dir}/gita`);
    Deno.mkdirSync(`${dir}/repo/.git`, { recursive: true });
    const rows = NAMES.map((name) => `${dir}/${name === "gone" ? "gone" : "repo"},${name},,\r\n`);
    Deno.writeTextFileSync(`${dir}/gita/repos.csv`, rows.join(""));
    const env = { HOME: dir, XDG_CONFIG_HOME: dir };
    await body(async (...words) => {
      const { code, stdout, stderr } = await runInside(["__complete", ...words], { env });
      assert.deepEqual([code, stderr], [0, ""]);
      return stdout.split("\n").slice(0, -1).map((line) => line.split("\t")[0]!);
    });
  });
}

Deno.test("[C-04] commands are proposed, hidden ones not", async () => {
  await withNames(async (complete) => {
    const all = await complete("");
    const names = [...Object.keys(COMMANDS), ...Object.keys(FAMILIES)];
    assert.deepEqual(all.sort(), names.filter((name) => name !== "broker").sort());
    assert.deepEqual((await complete("hub", "s")).sort(), ["serve", "status", "stop"]);
    assert.deepEqual(await complete("hub", "task", "do"), ["done"]);
    assert.ok(!(await complete("hub", "serve", "--")).includes("--detached-child"));
    assert.ok((await complete("hub", "task", "list", "--status", "")).includes("blocked"));
    assert.deepEqual((await complete("s")).sort(), names.filter((n) => n.startsWith("s")).sort());
  });
});

Deno.test("[C-04] options of a command, each once; without a command those of start", async () => {
  await withNames(async (complete) => {
    const options = await complete("send", "--");
    for (const name of ["--to", "--file", "--endpoint", "--key", "--json", "--help", "--version"]) {
      assert.ok(options.includes(name), name);
    }
    assert.ok(!(await complete("send", "--json", "--")).includes("--json"));
    assert.deepEqual(await complete("--com"), ["--command"]);
    assert.deepEqual(await complete("--command", "cat", "--no"), ["--no-service"]);
    assert.ok(!(await complete("serve", "--")).includes("--detached-child"));
    assert.deepEqual(await complete("send", "--", "--"), []);
  });
});

Deno.test("[C-04] values: live gita names, states, modes, shells, topics", async () => {
  await withNames(async (complete) => {
    const live = NAMES.filter((name) => name !== "gone");
    assert.deepEqual(await complete("send", "--to", ""), live);
    assert.deepEqual(await complete("send", "--to", "al"), ["alpha", "alpine"]);
    assert.deepEqual(await complete("send", "--to=al"), ["--to=alpha", "--to=alpine"]);
    assert.deepEqual(await complete("history", "--repo", "two"), ["two words"]);
    assert.deepEqual(await complete("--command", "cat", "a"), ["alpha", "alpine", "a:b"]);
    assert.deepEqual(await complete("start", "-c", "cat", "alpha", "al"), ["alpine"]);
    assert.deepEqual(await complete("history", "--state", ""), [...STATES]);
    assert.deepEqual(await complete("start", "--mode", "d"), ["draft"]);
    assert.deepEqual(await complete("completion", ""), ["bash", "zsh", "fish"]);
    assert.deepEqual(await complete("help", "exit"), ["exit-codes"]);
    assert.deepEqual(await complete("help", "his"), ["history"]);
    assert.ok((await complete("help", "")).includes("hub"));
    assert.ok(!(await complete("help", "")).includes("broker"));
    assert.deepEqual(await complete("help", "send", ""), []);
  });
});

Deno.test("[C-04] addresses of a message to send; the files of options and arguments are left to the shell", async () => {
  await withNames(async (complete) => {
    const live = NAMES.filter((name) => name !== "gone").map((name) => `To:${name}:`);
    assert.deepEqual(await complete("send", "To:"), live);
    assert.deepEqual(await complete("send", "T"), live);
    assert.deepEqual(await complete("send", ""), live);
    assert.deepEqual(await complete("send", "--json", "--key", "k", "To:two"), ["To:two words:"]);
    assert.deepEqual(await complete("send", "--", "To:alp"), ["To:alpha:", "To:alpine:"]);
    assert.deepEqual(await complete("send", "hello"), []);
    assert.deepEqual(await complete("send", "To:alpha:", "To:"), []);
    assert.deepEqual(await complete("send", "--to", "alpha", "To:"), []);
    const files = ["\u001ffiles"];
    for (
      const words of [
        ["send", "--file", ""],
        ["send", "--to", "alpha", "-f", "no"],
        ["send", "--file="],
        ["send", "--file=no"],
        ["export", ""],
        ["export", "--repo", "alpha", "no"],
        ["replay", "--endpoint", "x", "no"],
        ["purge", "--export", ""],
      ]
    ) {
      assert.deepEqual(await complete(...words), files, words.join(" "));
    }
    assert.deepEqual(await complete("replay", "file", ""), []);
    assert.ok(!(await complete("export", "--")).includes(files[0]!));
  });
});

Deno.test("[C-04] with nothing to propose, or no registry, completion stays silent", async () => {
  await withNames(async (complete) => {
    assert.deepEqual(await complete("nonsense", ""), []);
    assert.deepEqual(await complete("send", "--nonsense", ""), []);
    assert.deepEqual(await complete(), await complete(""));
  });
  const lost = await runInside(["__complete", "send", "--to", ""], {
    env: { HOME: "/nonexistent" },
  });
  assert.deepEqual(lost, { code: 0, stdout: "", stderr: "" });
});
