import assert from "node:assert/strict";
import { PromptRow } from "../../../lib/pty/prompt_row.ts";

const painted = (...chunks: string[]) => {
  const row = new PromptRow();
  for (const chunk of chunks) row.feed(new TextEncoder().encode(chunk));
  const bytes = row.bytes();
  return bytes && new TextDecoder().decode(bytes);
};

Deno.test("[B-16] a prompt's row is painted again as it was, however it came", () => {
  assert.equal(painted("output\r\n$ "), "$ ");
  assert.equal(painted("output\r", "\n\x1b[1m", "ž", "> \x1b[K"), "\x1b[1mž> \x1b[K");
  const fish = "\x1b]0;/tmp\x07\x1b[30m\x1b(B\x1b[m\rroot# \x1b[K\r\x1b[14C";
  assert.equal(painted(fish), fish);
});

Deno.test("[B-16] a row with a query or a far move is not painted again, nor an endless one", () => {
  for (
    const part of ["\x1b[6n", "\x1b[c", "\x1b]11;?\x07", "\x1b[2A", "\x1b[?1049h", "\x1bPx\x1b\\"]
  ) {
    assert.equal(painted(`$ ${part}`), undefined, JSON.stringify(part));
  }
  assert.equal(painted("x".repeat(5000)), undefined);
  assert.equal(painted("x".repeat(5000), "\n$ "), "$ ");
  assert.equal(painted("done\n"), undefined);
});
