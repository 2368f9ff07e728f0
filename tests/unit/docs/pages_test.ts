import assert from "node:assert/strict";
import { COMMANDS, HIDDEN } from "../../../lib/cli/program.ts";
import { operations } from "../../../lib/protocol/operations.ts";
import { render } from "../../../scripts/docs.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

Deno.test("[T-04, T-11, T-22, V-04] docs/protocol.md, docs/json.md and docs/states.md are what the code says (deno task docs)", async () => {
  for (const [path, text] of Object.entries(await render())) {
    assert.equal(await Deno.readTextFile(ROOT + path), text, `${path} is stale: deno task docs`);
  }
});

Deno.test("[T-22] the reference names every operation and every reason of it, and its links lead somewhere", async () => {
  const pages = await render();
  const page = pages["docs/protocol.md"]!;
  for (const [name, { reasons }] of Object.entries(operations)) {
    assert.ok(page.includes(`### \`${name}\``), name);
    for (const reason of reasons) assert.ok(page.includes(`\`${reason}\``), `${name}: ${reason}`);
  }
  const anchors = (text: string) =>
    new Set(
      [...text.matchAll(/^#+ (.+)$/gm)].map((match) =>
        match[1]!.toLowerCase().replace(/[^\w -]/g, "").trim().replaceAll(" ", "-")
      ),
    );
  for (const [path, text] of Object.entries(pages)) {
    for (const [, file, anchor] of text.matchAll(/\]\(([\w.]*)#([\w-]+)\)/g)) {
      const target = file === "" ? text : pages[`docs/${file}`]!;
      assert.ok(anchors(target).has(anchor!), `${path}: ${file}#${anchor}`);
    }
  }
});

Deno.test("[C-01] docs/json.md has a row for every command that prints records", async () => {
  const page = (await render())["docs/json.md"]!;
  for (const [name, { parameters }] of Object.entries(COMMANDS)) {
    if (HIDDEN.includes(name) || parameters.flags.json === undefined || name === "serve") continue;
    assert.match(page, new RegExp(`^\\| \`tamq ${name}\` +\\| `, "m"));
  }
});
