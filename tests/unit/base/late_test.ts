/** Modules that are loaded late: forms of one file know only those that are listed. */
import assert from "node:assert/strict";
import { IMPLEMENTATIONS } from "../../../lib/cli/implementations.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

async function* sources(dir: string): AsyncGenerator<[string, string]> {
  for await (const entry of Deno.readDir(ROOT + dir)) {
    const path = `${dir}/${entry.name}`;
    if (entry.isDirectory) yield* sources(path);
    else if (path.endsWith(".ts")) yield [path, await Deno.readTextFile(ROOT + path)];
  }
}

Deno.test("[V-03] every module that is imported late is listed for bundle and executable, under the name of its file", async () => {
  const asked = new Set<string>();
  for await (const [path, text] of sources("lib")) {
    for (const [, name] of text.matchAll(/\b(?:late|importLate(?:<[^(]*>)?)\("([^"]+)"\)/g)) {
      asked.add(name!);
      assert.ok(name! in IMPLEMENTATIONS, `${path} imports ${name}: add it to implementations.ts`);
    }
  }
  assert.ok(asked.has("config_schema") && asked.size > 20);
  const list = await Deno.readTextFile(`${ROOT}lib/cli/implementations.ts`);
  for (const name of Object.keys(IMPLEMENTATIONS)) {
    const file = `lib/${name}.ts`;
    assert.ok((await Deno.stat(ROOT + file)).isFile, file);
    const found = new RegExp(`"${name}": \\(\\) =>\\s*import\\("([^"]+)"\\)`).exec(list);
    assert.equal(new URL(found?.[1] ?? "", `file://${ROOT}lib/cli/`).pathname, ROOT + file, name);
  }
});
