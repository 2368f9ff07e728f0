/** What counts as a worker's words in a shell's window. */
import assert from "node:assert/strict";
import { withAttached } from "../helpers/broker.ts";
import { withTempDir } from "../helpers/temp.ts";

const bash = ["bash", "--norc", "--noprofile", "-i"];
const DOC = "How to write to others:\n\nTo:beta: from a document\n\nThe end.\n";
const PROMPT = /[$#] $/;

Deno.test("[B-02] a document that cat shows at a shell is not sent; what a command says is", () =>
  withTempDir(async (dir) => {
    await Deno.writeTextFile(`${dir}/doc.md`, DOC);
    await withAttached({ command: bash, dir }, async ({ service, terminal }) => {
      await terminal.until(PROMPT);
      const run = async (keys: string) => {
        const from = terminal.text.length;
        await terminal.type(keys);
        await terminal.until(/The end\.[^]*[$#] $/, from);
      };
      await run("cat doc.md\r");
      await run("cat doc.md | cat\r");
      // Completed, and called up again: what is entered shows on the row only.
      await terminal.type("cat do\t");
      await terminal.until(/cat doc\.md $/);
      await run("\r");
      const from = terminal.text.length;
      await terminal.type("\x1b[A");
      await terminal.until(/cat doc\.md/, from);
      await run("\r");
      await terminal.type("printf 'To:gamma: %s\\n\\nThe end.\\n' said\r");
      await service.when(() => service.sends.length > 0);
      assert.deepEqual(service.sends.map(({ target_repo, body }) => [target_repo, body]), [
        ["gamma", "said"],
      ]);
    });
  }));

Deno.test("[B-02] a pager that runs on is recognised by its process", () =>
  withTempDir(async (dir) => {
    await Deno.writeTextFile(`${dir}/doc.md`, DOC);
    await Deno.writeTextFile(`${dir}/show`, "exec tail -n 9 -f doc.md\n", { mode: 0o755 });
    await withAttached({ command: bash, dir }, async ({ service, terminal }) => {
      await terminal.until(PROMPT);
      await terminal.type("sh ./show\r");
      await terminal.until("The end.");
      await terminal.type("\x03");
      await terminal.until(/\^C[^]*[$#] $/);
      await terminal.type("echo 'To:gamma: said'; echo\r");
      await service.when(() => service.sends.length > 0);
      assert.deepEqual(service.sends.map(({ body }) => body), ["said"]);
    });
  }));

Deno.test("[B-02] a worker that is cat itself speaks for itself", () =>
  withTempDir((dir) =>
    withAttached({ command: ["cat", "-"], dir }, async ({ service, terminal }) => {
      await service.deliver("hello");
      await terminal.type("not to anybody\r");
      await terminal.until("not to anybody\r\nnot to anybody");
      assert.equal(service.sends.length, 0);
    })
  ));

Deno.test("[B-02] a repository whose output is not to be observed: typed lines only", () =>
  withTempDir(async (dir) => {
    await Deno.mkdir(`${dir}/.config/tamq`, { recursive: true });
    await Deno.writeTextFile(
      `${dir}/.config/tamq/config.toml`,
      '[repositories.alpha]\nobserve = "off"\n[repositories."x y"]\nobserve = "on"\n',
    );
    const command = ["sh", "-c", "echo To:beta: printed; echo; echo To:nobody: x; echo; cat"];
    await withAttached({ command, dir }, async ({ service, terminal }) => {
      await terminal.until("nobody");
      await terminal.type("To:gamma: typed\r");
      await service.when(() => service.sends.length > 0);
      assert.deepEqual(service.sends.map(({ body }) => body), ["typed"]);
    });
  }));

Deno.test("[B-06] what a pager without the alternate screen paints is offered, not sent", () =>
  withTempDir(async (dir) => {
    // As `less -X` does, by a name that tells nothing; it paints the page again when scrolled back.
    await Deno.writeTextFile(
      `${dir}/tool.py`,
      "import os, tty\ntty.setcbreak(0)\npage = b'To:beta: painted\\n\\n'\n" +
        "os.write(1, page)\nos.read(0, 1)\nos.write(1, page + b'UP')\nos.read(0, 1)\n",
    );
    await withAttached({ command: bash, dir }, async ({ service, terminal }) => {
      await terminal.until(PROMPT);
      await terminal.type("python3 tool.py\r");
      await terminal.until("painted");
      await terminal.type("b");
      await terminal.until("UP");
      await terminal.type("q");
      await terminal.until(/UP[^]*[$#] $/);
      await terminal.type("stty sane; printf 'To:gamma: %s\\n\\n' said\r");
      await service.when(() => service.sends.length > 0);
      assert.deepEqual(service.sends.map(({ body }) => body), ["said"]);
      assert.match(await Deno.readTextFile(`${dir}/state/tamq.log`), /not sent: painted/);
    });
  }));
