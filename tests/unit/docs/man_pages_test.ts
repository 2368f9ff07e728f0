import assert from "node:assert/strict";
import { COMMANDS, FAMILIES, HIDDEN } from "../../../lib/cli/program.ts";
import { ENVIRONMENT, render, roff } from "../../../scripts/man_pages.ts";
import { runProcess } from "../../helpers/world.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

const has = (program: string) => runProcess([program, "--version"]).then(() => true, () => false);
const [mandoc, man] = [await has("mandoc"), await has("man")];

Deno.test("[C-01] man/ holds a page for tamq and each command, as the command table says (deno task docs)", async () => {
  const pages = await render();
  const found = [...Deno.readDirSync(`${ROOT}man`)].map((entry) => `man/${entry.name}`).sort();
  assert.deepEqual(found, Object.keys(pages).sort(), "man/ is stale: deno task docs");
  for (const [path, text] of Object.entries(pages)) {
    assert.equal(await Deno.readTextFile(ROOT + path), text, `${path} is stale: deno task docs`);
  }
  const names = [...Object.keys(COMMANDS), ...Object.keys(FAMILIES)]
    .filter((name) => !HIDDEN.includes(name));
  assert.equal(found.length, names.length + 1);
  for (const name of names) assert.ok(pages["man/tamq.1"]!.includes(roff(`tamq ${name}`)), name);
});

Deno.test("[C-01] a page tells every option that is not hidden, and every example", async () => {
  const pages = await render();
  for (const [name, command] of Object.entries(COMMANDS)) {
    if (HIDDEN.includes(name)) continue;
    const page = pages[`man/tamq-${name}.1`]!;
    for (const [key, option] of Object.entries(command.parameters.flags)) {
      const flag = roff(`--${key.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`);
      assert.equal(page.includes(`\\fB${flag}\\fR`), option.hidden !== true, `${name} ${flag}`);
    }
    for (const { run } of command.examples) assert.ok(page.includes(roff(run)), run);
  }
});

Deno.test("[C-02] the variables that tamq(1) names are those that the program reads", async () => {
  const read = (await Promise.all(
    ["config.ts", "gita.ts", "cli/colour.ts", "cli/editor.ts"].map((file) =>
      Deno.readTextFile(`${ROOT}lib/${file}`)
    ),
  )).join();
  for (const [name] of ENVIRONMENT) assert.ok(read.includes(`"${name}"`), name);
});

Deno.test("[C-01] roff: nothing in a text is taken for a request or an escape", async () => {
  assert.equal(roff("a\\b --x 'q' ~^`"), "a\\eb \\-\\-x \\(aqq\\(aq \\(ti\\(ha\\(ga");
  assert.equal(roff(".TH x\n.b"), "\\&.TH x\n\\&.b");
  if (!mandoc) return;
  const text = '.SH x\n\'br\n\\fB back\\slash -- `tick` ^ ~ "quote"';
  const source = `.TH T 1 "2026-01-01"\n.SH NAME\nt \\- t\n.PP\n.nf\n${roff(text)}\n.fi\n`;
  const { stdout } = await runProcess(["mandoc", "-T", "ascii"], { stdin: source });
  // deno-lint-ignore no-control-regex
  const plain = stdout.replace(/.\x08/g, "");
  for (const line of text.split("\n")) assert.ok(plain.includes(line), `${line} in ${plain}`);
});

Deno.test({
  name: "[C-01] mandoc finds nothing to warn of in the pages",
  ignore: !mandoc,
  async fn() {
    const paths = Object.keys(await render());
    const lint = await runProcess(["mandoc", "-T", "lint", "-W", "warning", ...paths], {
      cwd: ROOT,
    });
    assert.deepEqual(lint, { code: 0, stdout: "", stderr: "" });
  },
});

Deno.test({
  name: "[C-01] man shows the pages without a warning",
  ignore: !man,
  async fn() {
    for (const path of ["man/tamq.1", "man/tamq-send.1", "man/tamq-hub.1"]) {
      const shown = await runProcess([
        "man",
        "--warnings=w",
        "-E",
        "UTF-8",
        "-P",
        "cat",
        "-l",
        path,
      ], {
        cwd: ROOT,
        env: { MANWIDTH: "80" },
      });
      assert.deepEqual([shown.code, shown.stderr], [0, ""], path);
      assert.match(shown.stdout, /^NAME\n/m, path);
      assert.match(shown.stdout, /^EXIT STATUS\n/m, path);
    }
  },
});
