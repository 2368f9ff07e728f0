/** Every command that the documentation names exists, with the options it is shown with. */
import assert from "node:assert/strict";
import { type AnyCommand, type Family, isFamily } from "../../../lib/cli/command.ts";
import { COMMANDS, FAMILIES } from "../../../lib/cli/program.ts";
import { blockCommands, documentPages, inlineCommands } from "../../helpers/doc_commands.ts";
import { complaint, exceptionOf, NOT_RUN } from "../../helpers/doc_rules.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

Deno.test("[V-02] every command in a text, table or block of the docs exists, with its options", () => {
  // Decisions record what was decided, also before it is built.
  const pages = documentPages().filter((page) => !page.startsWith("docs/decisions/"));
  const commands = pages.flatMap((page) => [
    ...inlineCommands(page),
    ...blockCommands(page),
  ]);
  assert.ok(commands.length > 150, `only ${commands.length} commands were found`);
  const wrong = commands.flatMap(({ file, line, text }) => {
    const why = complaint(text);
    return why === undefined ? [] : [`${file}:${line}: ${text}: ${why}`];
  });
  assert.deepEqual(wrong, []);
  // The check itself can fail.
  assert.match(complaint("tamq frobnicate")!, /no command/);
  assert.match(complaint("tamq hub task frobnicate")!, /no command/);
  assert.match(complaint("git log | tamq send --too alpha")!, /no option --too/);
  assert.match(complaint(".ci/setup && deno task frobnicate")!, /no task/);
});

Deno.test("[C-01] every example in a command's help names commands and options that exist", () => {
  const all: string[] = [];
  const collect = (entry: AnyCommand | Family) => {
    if (isFamily(entry)) Object.values(entry.commands).forEach(collect);
    else all.push(...entry.examples.map(({ run }) => run));
  };
  [...Object.values(COMMANDS), ...Object.values(FAMILIES)].forEach(collect);
  assert.ok(all.length > 50);
  assert.deepEqual(all.filter((text) => complaint(text) !== undefined), []);
});

Deno.test("[V-02] each exception from running the docs' commands is still needed", () => {
  const used = new Set(documentPages().flatMap(blockCommands).map(exceptionOf));
  assert.deepEqual(NOT_RUN.filter((one) => !used.has(one)).map(({ reason }) => reason), []);
});

Deno.test("[V-02] every page is reachable from README by links, and every link leads to a file", async () => {
  const seen = new Set<string>();
  const broken: string[] = [];
  const visit = async (page: string): Promise<void> => {
    if (seen.has(page)) return;
    seen.add(page);
    const text = (await Deno.readTextFile(ROOT + page)).replace(/^```[\s\S]*?^```/gm, "");
    for (const [, target] of text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const path = new URL(target!, `file:///${page}`).pathname.slice(1);
      const there = await Deno.stat(ROOT + path).then(() => true, () => false);
      if (!there) broken.push(`${page} -> ${target}`);
      else if (path.endsWith(".md")) await visit(path);
    }
  };
  await visit("README.md");
  assert.deepEqual(broken, []);
  assert.deepEqual(documentPages().filter((page) => !seen.has(page)), []);
});
