/** Output at every width: nothing lost, nothing over the edge, nothing at the edge that is not ours. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { paintFor } from "../../../lib/cli/colour.ts";
import {
  bodyBlock,
  type Cell,
  cut,
  displayWidth,
  type Look,
  table,
  wrap,
} from "../../../lib/cli/layout.ts";
import { plain } from "../../../lib/cli/colour.ts";

const at = (width: number): Look => ({ width, paint: plain });
const WIDTHS = [40, 80, 200];
const text = fc.string({ unit: "grapheme", maxLength: 120 });
const words = (value: string) => value.replace(/\s+/g, "");

Deno.test("[C-01] no line is wider than the terminal, at 40, 80 and 200 columns, whatever stands in it", () => {
  const row = fc.array(text, { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(
      fc.array(row, { minLength: 1, maxLength: 5 }),
      fc.constantFrom(...WIDTHS),
      fc.record({ cutLast: fc.boolean(), header: fc.boolean(), line: fc.boolean() }),
      text,
      (rows, width, options, body) => {
        for (const line of table(rows, at(width), options).split("\n")) {
          assert.ok(displayWidth(line) <= width, `${displayWidth(line)} > ${width}: ${line}`);
        }
        for (const line of bodyBlock(body, at(width)).split("\n")) {
          assert.ok(displayWidth(line) <= width, line);
          assert.match(line, /^ {2}[│┊] /);
        }
      },
    ),
    { numRuns: 300 },
  );
});

Deno.test("[C-01] what is wrapped is whole; what goes elsewhere than to a terminal stays on its line", () => {
  const visible = text.filter((one) => !/\s/.test(one) && one !== "");
  fc.assert(fc.property(fc.array(visible, { minLength: 2, maxLength: 4 }), (cells) => {
    const whole = table([cells]);
    assert.equal(whole.split("\n").length, 1);
    for (const width of WIDTHS) {
      assert.equal(words(table([cells], at(width))), words(whole), String(width));
    }
  }));
  fc.assert(fc.property(text, (line) => {
    assert.equal(words(wrap(line, 20).join("\n")), words(line));
  }));
});

Deno.test("[C-01] cells of East Asian, combining and emoji characters, as a terminal counts them", () => {
  const cells: [string, number][] = [
    ["abc", 3],
    ["日本語", 6],
    ["한국", 4],
    ["ｆｕｌｌ", 8],
    ["ﾊﾝｶｸ", 4],
    ["e\u0301", 1],
    ["✅", 2],
    ["🙂", 2],
    ["→", 1],
    ["│", 1],
    ["é", 1],
  ];
  for (const [value, width] of cells) assert.equal(displayWidth(value), width, value);
  assert.equal(cut("日本語日本語", 5), "日本…");
  assert.equal(cut("abc", 3), "abc");
  assert.deepEqual(wrap("日本語日本語", 5), ["日本", "語日", "本語"]);
  assert.deepEqual(wrap("to be or not to be", 8), ["to be or", "not to", "be"]);
});

Deno.test("[C-01] a body's continued lines stand behind a gutter of another form and can pose as no row", () => {
  const forged = "x".repeat(36) + "06zz  alpha → beta  acknowledged";
  assert.equal(
    bodyBlock(forged, at(40)),
    `  │ ${"x".repeat(36)}\n  ┊ 06zz  alpha → beta  acknowledged`,
  );
  assert.equal(bodyBlock("a\u001b[2Jb\tc\n", at(40)), "  │ a\\x1b[2Jb    c\n  │ ");
  assert.equal(bodyBlock("a\tb", at(Infinity)), "  │ a\tb");
});

Deno.test("[C-01] colour adds escapes and no width; a narrow table names each column's content in turn", () => {
  const context = { env: () => undefined, stdoutIsTerminal: () => true };
  const look = { width: 30, paint: paintFor(context, "always") };
  const rows: Cell[][] = [["NAME", "STATE", "TEXT"], [
    "alpha-with-a-long-name",
    { text: "failed", style: "red" },
    "some text",
  ]];
  const coloured = table(rows, look, { header: true });
  // deno-lint-ignore no-control-regex
  const bare = coloured.replace(/\u001b\[\d+m/g, "");
  assert.notEqual(coloured, bare);
  assert.equal(bare, table(rows, at(30), { header: true }));
  assert.equal(bare, "alpha-with-a-long-name  failed\n    some text");
  assert.equal(
    table([["a", "one two three four five six seven"]], at(30)),
    "a  one two three four five six\n   seven",
  );
});
