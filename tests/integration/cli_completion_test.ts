/** The completion scripts in the shells they are for: syntax, and candidates as the shell gets them. */
import assert from "node:assert/strict";
import { World } from "../helpers/world.ts";

const NAMES = ["alpha", "alpine", "two words", "a:b", "it's", "$(touch pwned)"];

/** A world in which `tamq` can be called by its name and knows these repositories. */
async function withShells(
  body: (world: World, script: (shell: string) => Promise<string>) => Promise<void>,
) {
  await using world = await World.create();
  await Deno.mkdir(`${world.dir}/repo/.git`, { recursive: true });
  await Deno.mkdir(`${world.dir}/config/gita`);
  const rows = NAMES.map((name) => `${world.dir}/repo,${name},,\r\n`).join("");
  await Deno.writeTextFile(`${world.dir}/config/gita/repos.csv`, rows);
  await Deno.mkdir(`${world.dir}/bin`);
  const words = world.argv([]).map((word) => `'${word}'`).join(" ");
  await Deno.writeTextFile(`${world.dir}/bin/tamq`, `#!/bin/sh\nexec ${words} "$@"\n`, {
    mode: 0o755,
  });
  world.env.PATH = `${world.dir}/bin:${world.env.PATH}`;
  await body(world, async (shell) => {
    const path = `${world.dir}/script.${shell}`;
    await Deno.writeTextFile(path, await world.mustTamq(["completion", shell]));
    return path;
  });
  for await (const entry of Deno.readDir(world.dir)) assert.notEqual(entry.name, "pwned");
}

Deno.test("[C-04] bash: candidates are quoted for the line, around colons, equals signs and open quotes", async () => {
  await withShells(async (world, script) => {
    const path = await script("bash");
    await world.must(["bash", "-n", path]);
    const complete = async (line: string) => {
      const run =
        `source "$0"; COMP_LINE=$1 COMP_POINT=\${#1}; _tamq; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const out = await world.must(["bash", "--norc", "-c", run, path, line], { cwd: world.dir });
      return out.split("\n").filter((one) => one !== "");
    };
    assert.ok((await complete("tamq ")).includes("send"));
    assert.deepEqual(await complete("tamq hi"), ["history"]);
    assert.deepEqual(await complete("tamq send --to al"), ["alpha", "alpine"]);
    assert.deepEqual(await complete("tamq send --to=al"), ["alpha", "alpine"]);
    assert.deepEqual(await complete("tamq send --to two"), ["two\\ words"]);
    assert.deepEqual(await complete("tamq send --to two\\ w"), ["two\\ words"]);
    assert.deepEqual(await complete("tamq send --to 'two w"), ["two words"]);
    assert.deepEqual(await complete("tamq send --to a:"), ["b"]);
    assert.deepEqual(await complete("tamq send --to it"), ["it\\'s"]);
    assert.deepEqual(await complete("tamq send --to '$("), ["$(touch pwned)"]);
    assert.deepEqual(await complete("tamq send --to \\$"), ["\\$\\(touch\\ pwned\\)"]);
    assert.deepEqual(await complete("tamq $(touch pwned) al"), []);
    assert.deepEqual(await complete("tamq send To:al"), ["alpha:", "alpine:"]);
    assert.deepEqual(await complete("tamq send 'To:al"), ["To:alpha:", "To:alpine:"]);
    await withFiles(world);
    // As bash wants them of a function: it quotes names of files itself.
    assert.deepEqual((await complete("tamq send --file no")).sort(), ["no: 1.txt", "notes"]);
    assert.deepEqual(await complete("tamq send --file=no:"), [" 1.txt"]);
    assert.deepEqual(await complete("tamq send --file=no:\\ "), [" 1.txt"]);
    assert.deepEqual(await complete("tamq send --file './note"), ["./notes"]);
    assert.deepEqual(await complete("tamq export notes/"), ["notes/in"]);
    assert.deepEqual(await complete("tamq --command 'sh -c \"x\"' alph"), ["alpha"]);
  });
});

/** Files to complete in the world's folder. */
async function withFiles(world: World): Promise<void> {
  await Deno.mkdir(`${world.dir}/notes`);
  await Deno.writeTextFile(`${world.dir}/notes/in`, "");
  await Deno.writeTextFile(`${world.dir}/no: 1.txt`, "");
}

Deno.test("[C-04] message ids: the latest ones, those that the command is for, within bounds", async () => {
  await using world = await World.create(["alpha"]);
  await world.mustTamq(["serve", "--detach"]);
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const body = i === 0 ? "first\u202eline\nsecond" : "x".repeat(8000);
    ids.push((await world.mustTamq(["send", "--to", "alpha", "--", body])).trim());
  }
  await world.mustTamq(["cancel", ids[2]!]);
  const complete = async (...words: string[]) =>
    (await world.mustTamq(["__complete", ...words])).split("\n").slice(0, -1);
  const words = async (...given: string[]) =>
    (await complete(...given)).map((line) => line.split("\t")[0]!);
  assert.deepEqual(await words("message", ""), ids.toReversed());
  assert.deepEqual(await words("show", ids[1]!.slice(0, 25)), [ids[1]]);
  assert.deepEqual(await words("cancel", ""), [ids[1], ids[0]]);
  assert.deepEqual(await words("retry", "--json", ""), [ids[2]]);
  assert.deepEqual(await words("ack", ""), ids.toReversed());
  assert.deepEqual(await words("message", ids[0]!, ""), []);
  assert.deepEqual(await complete("message", ids[0]!), [
    `${ids[0]}\tlocal/o → alpha, pending: first\\u{202e}line`,
  ]);
  await world.mustTamq(["stop"]);
  assert.deepEqual(await words("message", ""), []);
});

Deno.test("[C-04] fish: candidates with their descriptions", async () => {
  await withShells(async (world, script) => {
    const path = await script("fish");
    await world.must(["fish", "--no-config", "--no-execute", path]);
    const complete = async (line: string) => {
      const run = 'source $argv[1]; complete -C "$argv[2]"';
      const argv = ["fish", "--no-config", "-c", run, path, line];
      const out = await world.must(argv, { cwd: world.dir });
      return out.split("\n").filter((one) => one !== "").map((one) => one.split("\t")[0]!);
    };
    assert.deepEqual(await complete("tamq hi"), ["history"]);
    assert.deepEqual((await complete("tamq send --to al")).sort(), ["alpha", "alpine"]);
    assert.deepEqual(await complete("tamq send --to two"), ["two words"]);
    assert.deepEqual(await complete("tamq send --to 'two w"), ["two words"]);
    assert.deepEqual(await complete("tamq history --state inj"), ["injected"]);
    assert.deepEqual(await complete("tamq send To:al"), ["To:alpha:", "To:alpine:"]);
    assert.deepEqual(await complete("tamq send 'To:al"), ["To:alpha:", "To:alpine:"]);
    await withFiles(world);
    assert.deepEqual((await complete("tamq send --file no")).sort(), ["no: 1.txt", "notes/"]);
    assert.deepEqual(await complete("tamq send --file=note"), ["--file=notes/"]);
  });
});

Deno.test("[C-04] zsh: the words that its completion system gets", async () => {
  await withShells(async (world, script) => {
    const path = await script("zsh");
    await world.must(["zsh", "-n", path]);
    const complete = async (line: string) => {
      const stub = `
        compdef() { :; }
        compadd() { print -rl -- "\${names[@]}"; }
        source "$1"
        words=("\${(@z)2}")
        [[ $2 == *' ' ]] && words+=('')
        CURRENT=\${#words} PREFIX=\${words[-1]}
        _tamq`;
      const out = await world.must(["zsh", "-f", "-c", stub, "zsh", path, line], {
        cwd: world.dir,
      });
      return out.split("\n").filter((one) => one !== "");
    };
    assert.ok((await complete("tamq ")).includes("send"));
    assert.deepEqual(await complete("tamq hi"), ["history"]);
    assert.deepEqual(await complete("tamq send --to al"), ["alpha", "alpine"]);
    assert.deepEqual(await complete("tamq send --to a:"), ["a:b"]);
  });
});

Deno.test("[C-04] typed at a prompt and completed by Tab, a name with spaces or a colon is inserted whole", async () => {
  await withShells(async (world, script) => {
    await withFiles(world);
    const shells = {
      bash: ["bash", "--norc", `PS1='> '; source ${await script("bash")}`],
      zsh: [
        "zsh",
        "-f",
        `PS1='> '; autoload -U compinit; compinit -D -u; source ${await script("zsh")}`,
      ],
    };
    for (const [name, [program, option, setup]] of Object.entries(shells)) {
      await world.tmux("new-session", "-d", "-s", name, "-x", "200", program!, option!);
      const screen = () => world.tmux("capture-pane", "-p", "-t", `=${name}:`);
      const type = (text: string) => world.tmux("send-keys", "-t", `=${name}:`, "-l", "--", text);
      const press = (key: string) => world.tmux("send-keys", "-t", `=${name}:`, key);
      await type(`cd ${world.dir}; ${setup}`);
      await press("Enter");
      await world.until(
        `${name}'s prompt`,
        async () => /^> ?$/m.test(await screen()),
      );
      for (const [typed, whole] of [["two", "two\\ words"], ["a:", "a:b"], ["it", "it\\'s"]]) {
        await press("C-u");
        await type(`tamq send --to ${typed}`);
        await press("Tab");
        await world.until(
          `${whole} in ${name}`,
          async () => (await screen()).includes(`tamq send --to ${whole}`),
        );
      }
      for (
        const [typed, whole] of [
          ["--file note", "--file notes/"],
          ["--file=note", "--file=notes/"],
          ["To:two", "To:two\\ words:"],
        ]
      ) {
        await press("C-u");
        await type(`tamq send ${typed}`);
        await press("Tab");
        await world.until(
          `${whole} in ${name}`,
          async () => (await screen()).includes(`tamq send ${whole}`),
        );
      }
    }
  });
});
