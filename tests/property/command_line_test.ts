/** The quick parser against stricli: what it accepts, it reads the same way. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { buildApplication, buildCommand, run } from "@stricli/core";
import { processContext } from "../../lib/cli/context.ts";
import { COMMANDS } from "../../lib/cli/program.ts";
import { quickParse } from "../../lib/cli/quick.ts";

const context = processContext();

/** What stricli makes of the words; undefined when it complains. */
async function byStricli(verb: string, words: readonly string[]) {
  let parsed: { flags: object; args: unknown[] } | undefined;
  const command = buildCommand({
    parameters: COMMANDS[verb]!.parameters as never,
    docs: { brief: "" },
    func: ((flags: object, ...args: unknown[]) => void (parsed = { flags, args })) as never,
  });
  const silent = { write: () => {} };
  const app = buildApplication(command, {
    name: "tamq",
    scanner: { caseStyle: "allow-kebab-for-camel", allowArgumentEscapeSequence: true },
  }, {});
  await run(app, words, { process: { stdout: silent, stderr: silent } });
  return parsed;
}

/** Words that are likely to mean something to this command, and some that mean nothing. */
function wordsOf(verb: string) {
  const { flags, aliases = {} } = COMMANDS[verb]!.parameters;
  const kebab = (name: string) => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
  const options = Object.keys(flags).flatMap((name) => [`--${kebab(name)}`, `--${name}`]);
  const letters = Object.keys(aliases).map((letter) => `-${letter}`);
  const values = [
    "alpha",
    "5",
    "0",
    "-",
    "--",
    "-x",
    "",
    "a b",
    "To:a: b",
    "failed",
    "draft",
    "bash",
    "é\n",
  ];
  const known = [...options, ...letters];
  return fc.array(
    fc.oneof(
      fc.constantFrom(...values),
      ...known.length === 0 ? [] : [
        fc.constantFrom(...known),
        fc.tuple(fc.constantFrom(...known), fc.constantFrom(...values)).map(([o, v]) =>
          `${o}=${v}`
        ),
      ],
      fc.constantFrom("--no-json", "--nope", "--constructor", "-q", "--to-", "--TO"),
    ),
    { maxLength: 6 },
  );
}

Deno.test("[C-01] a line that the quick parser accepts means what stricli makes of it", async () => {
  let accepted = 0;
  for (const verb of Object.keys(COMMANDS)) {
    await fc.assert(
      fc.asyncProperty(wordsOf(verb), async (words) => {
        const quick = quickParse(context, COMMANDS[verb]!, words);
        if (quick === undefined) return;
        accepted++;
        assert.deepEqual(
          { flags: { ...quick.flags }, args: quick.args },
          await byStricli(verb, words),
          `${verb} ${JSON.stringify(words)}`,
        );
      }),
      { numRuns: 300 },
    );
  }
  assert.ok(accepted > 300, `${accepted} lines accepted`);
});

Deno.test("[C-01] the lines of daily use need no stricli", () => {
  const lines = [
    ["send", "To:alpha: text"],
    ["send", "--to", "alpha", "--file", "-", "--json"],
    ["send", "--to=alpha", "--key=k", "text"],
    ["ping"],
    ["status", "--json"],
    ["history", "--repo", "alpha", "--state", "failed", "-n", "5"],
    ["ack", "id"],
    ["start", "--command", "cat", "--no-service", "alpha", "beta"],
    ["broker", "--repo=alpha", "--cwd", "/a", "--mode", "trigger", "--", "cat", "-x"],
    ["serve", "--detached-child"],
  ];
  for (const [verb, ...words] of lines) {
    assert.ok(quickParse(context, COMMANDS[verb!]!, words), [verb, ...words].join(" "));
  }
});
