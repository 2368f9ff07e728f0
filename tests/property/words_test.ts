/** The word splitter against the shell it imitates. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { TamqError } from "../../lib/base/errors.ts";
import { quoteWord, splitWords } from "../../lib/cli/words.ts";
import { runProcess } from "../helpers/world.ts";

const words = fc.array(fc.string({ unit: "binary", minLength: 0, maxLength: 12 }), {
  maxLength: 6,
});

Deno.test("[E-05] any words, quoted, are split into themselves", () => {
  fc.assert(fc.property(words, (list) => {
    assert.deepEqual(splitWords(["cmd", ...list.map(quoteWord)].join(" ")), ["cmd", ...list]);
  }));
});

Deno.test("[E-05] a line that is accepted means the same to sh; every other is refused, never guessed at", async () => {
  const alphabet = [
    "a",
    "b",
    " ",
    "\t",
    "'",
    '"',
    "\\",
    "$",
    "|",
    ";",
    "~",
    "#",
    "*",
    "=",
    "{",
    "!",
  ];
  const lines = fc.sample(
    fc.array(fc.constantFrom(...alphabet), { minLength: 1, maxLength: 14 }).map((c) => c.join("")),
    { numRuns: 4000, seed: 11 },
  );
  const accepted = lines.flatMap((line) => {
    try {
      return [[line, splitWords(`cmd ${line}`).slice(1)] as const];
    } catch (error) {
      assert.ok(error instanceof TamqError, String(error));
      return [];
    }
  });
  assert.ok(accepted.length > 300, `${accepted.length} lines accepted`);
  // One shell for all: each line's words between marks, NUL after every word.
  const script = accepted.map(([line]) => `set -- ${line}\nprintf '%s\\0' "$#" "$@"\n`).join("");
  const { code, stdout, stderr } = await runProcess(["sh", "-fc", script]);
  assert.equal(code, 0, stderr);
  const expected = accepted.flatMap(([, list]) => [String(list.length), ...list]);
  assert.deepEqual(stdout.split("\0").slice(0, -1), expected);
});
