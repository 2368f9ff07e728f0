import assert from "node:assert/strict";
import fc from "fast-check";
import { ObserverRig } from "../helpers/lines.ts";

const encoder = new TextEncoder();

/** Pieces of what programs print, so that random output meets every rule. */
const piece = fc.constantFrom(
  "To:beta: hi",
  "To:beta:",
  "To:alpha: ",
  "To:nobody: x",
  "To",
  "T",
  "o:",
  ":",
  "beta",
  "From:beta: x",
  "text",
  " ",
  "\t",
  "\n",
  "\n\n",
  "\r\n",
  "\r",
  "ž",
  "🐎",
  "\x1b[1m",
  "\x1b[0;38;5;12m",
  "\x1b[2C",
  "\x1b[H",
  "\x1b[1A",
  "\x1b[3;4H",
  "\x1b[K",
  "\x1b]0;a To:beta: b\x07",
  "\x1b]8;;x\x1b\\",
  "\x1bPq To:beta: \x1b\\",
  "\x1b]unfinished",
  "\x1b(B",
  "\x1b",
  "\x1b7",
  "\x1b8",
  "\x1b[",
  "\x1b[?2004h",
  "\x1b[?2004l",
  "\x1b[?1049h",
  "\x1b[?1049l",
  "\x1bc",
  "\x08",
  "\x07",
  "\x18",
  "\0",
);
const output = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: piece.map((text) => encoder.encode(text)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 6 }) },
  ),
  { maxLength: 60 },
).map((parts) => Uint8Array.from(parts.flatMap((part) => [...part])));

function observe(chunks: Iterable<Uint8Array>): unknown {
  const rig = new ObserverRig();
  rig.shell = true;
  rig.echoes.expect(["To:beta: hi", "text"], 0);
  for (const chunk of chunks) rig.feed(chunk);
  const { bracketedPaste, alternateScreen, settled, lineStart } = rig.modes;
  rig.observer.end();
  return [rig.blocks, rig.refusals, bracketedPaste, alternateScreen, settled, lineStart];
}

Deno.test("[B-02] output cut anywhere is observed as output in one piece", () => {
  fc.assert(
    fc.property(output, fc.array(fc.nat(400), { maxLength: 8 }), (bytes, cuts) => {
      const whole = observe([bytes]);
      assert.deepEqual(observe(Array.from(bytes, (byte) => Uint8Array.of(byte))), whole);
      const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length]
        .sort((a, b) => a - b);
      const parts = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
      assert.deepEqual(observe(parts), whole);
    }),
    { numRuns: 5000 },
  );
});

Deno.test("[B-02] blocks between other output are found exactly, whatever surrounds them", () => {
  const safe = fc.stringMatching(/^[a-z .,]{0,20}[a-z]$/);
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          before: fc.array(safe, { maxLength: 3 }),
          rows: fc.array(safe, { minLength: 1, maxLength: 4 }),
          crlf: fc.boolean(),
          colour: fc.boolean(),
        }),
        { maxLength: 5 },
      ),
      (items) => {
        let text = "";
        const expected: string[] = [];
        for (const { before, rows, crlf, colour } of items) {
          const end = crlf ? "\r\n" : "\n";
          const paint = (row: string) => colour ? `\x1b[32m${row}\x1b[0m` : row;
          text += before.map((row) => paint(row) + end).join("");
          text += rows.map((row, i) => paint(i === 0 ? `To:beta: ${row}` : row) + end).join("");
          text += end;
          expected.push(`beta|${rows.join("\n")}`);
        }
        assert.deepEqual(new ObserverRig().feed(text).bodies, expected);
      },
    ),
    { numRuns: 1000 },
  );
});

Deno.test("[B-02] an observer's memory does not grow with what it is shown", () => {
  const rig = new ObserverRig();
  const row = encoder.encode("To:beta: " + "x".repeat(60_000));
  // One row without end, then a block without end: 40 MB in all.
  const before = Deno.memoryUsage().rss;
  for (let i = 0; i < 300; i++) rig.feed(row);
  rig.feed("\n");
  for (let i = 0; i < 300; i++) rig.feed(encoder.encode("line\n".repeat(12_000)));
  assert.ok(Deno.memoryUsage().rss - before < 64 << 20);
  rig.feed("\n");
  assert.deepEqual(rig.refusals, [{ target: "beta", reason: "body_too_large" }]);
});
