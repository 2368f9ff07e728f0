import assert from "node:assert/strict";
import { TamqError } from "../../../lib/base/errors.ts";
import { quoteWord, splitWords } from "../../../lib/cli/words.ts";

function reason(line: string): string {
  try {
    return `accepted: ${JSON.stringify(splitWords(line))}`;
  } catch (error) {
    assert.ok(error instanceof TamqError && error.code === "INVALID_ARGUMENT" && error.hint);
    return error.reason;
  }
}

Deno.test("[E-05] a command is split into words as a shell would quote them", () => {
  const cases: [string, string[]][] = [
    ["cat", ["cat"]],
    ["  claude   --model\tbig  ", ["claude", "--model", "big"]],
    [`sh -c 'echo "$HOME" | wc; ls *'`, ["sh", "-c", 'echo "$HOME" | wc; ls *']],
    [`a "b c" d\\ e 'f'"g"h`, ["a", "b c", "d e", "fgh"]],
    [`a '' ""`, ["a", "", ""]],
    [`a "q\\"q" "b\\\\s" "k\\x" "\\$5"`, ["a", 'q"q', "b\\s", "k\\x", "$5"]],
    [`a \\; \\| b~ c#d e=f {g,h} !`, ["a", ";", "|", "b~", "c#d", "e=f", "{g,h}", "!"]],
    ["a \\\n b\\\nc", ["a", "bc"]],
    [`a "\\\nb"`, ["a", "b"]],
    ["ä ö 漢字", ["ä", "ö", "漢字"]],
  ];
  for (const [line, words] of cases) assert.deepEqual(splitWords(line), words, line);
});

Deno.test("[E-05] what only a shell understands is refused, with the way out", () => {
  for (
    const line of [
      "a | b",
      "a & b",
      "a; b",
      "a < b",
      "a >b",
      "(a)",
      "a $HOME",
      "a `b`",
      "a\nb",
      "a *",
      "a b?",
      "a [x]",
      "a ~/b",
      "a # b",
      'a "$b"',
      'a "`b`"',
      "X=1 a",
    ]
  ) assert.equal(reason(line), "command_needs_shell", line);
  for (const line of ["a 'b", 'a "b', "a \\", 'a "b\\"']) {
    assert.equal(reason(line), "command_unbalanced", line);
  }
  for (const line of ["", "  ", "''", '"" a']) assert.equal(reason(line), "command_empty", line);
});

Deno.test("[E-05] quoted words read back unchanged, also where zsh would expand them", () => {
  for (const word of ["plain", "a b", "it's", "", "=tamq", "~", "x=1", "$(touch pwned)", "a\nb"]) {
    assert.deepEqual(splitWords(`cmd ${quoteWord(word)}`), ["cmd", word]);
  }
  assert.notEqual(quoteWord("=tamq"), "=tamq");
});
