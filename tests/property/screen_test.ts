/** Properties of the screen observer: how output is cut into reads never matters. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { ReportScanner } from "../../lib/pty/screen/reports.ts";
import { writtenLines } from "../../lib/pty/screen/paragraph.ts";
import { textWidth } from "../../lib/pty/screen/widths.ts";
import { observing, recording } from "../helpers/observe.ts";
import { type Look, Painter } from "../helpers/painter.ts";

async function blocksOf(
  profile: string,
  bytes: Uint8Array,
  cuts: Iterable<number>,
  names: readonly string[],
  /** Each piece is read before the next comes; otherwise the observer joins small ones. */
  apart = false,
) {
  const size = { columns: 100, rows: 40 };
  let result: unknown;
  await observing({ profile, size, names }, async (seen) => {
    let at = 0;
    for (const cut of cuts) {
      seen.observer.push(bytes.subarray(at, cut));
      if (apart) await seen.observer.drained();
      at = cut;
    }
    seen.observer.push(bytes.subarray(at));
    await seen.observer.drained();
    seen.settle();
    result = {
      blocks: seen.blocks,
      notices: seen.notices,
      status: seen.observer.status.reading(),
      title: seen.observer.status.title,
      turns: seen.observer.status.turns,
    };
  });
  return result;
}

const NAMES = ["railiance-platform", "net-kingdom", "state-hub"];

for (const [agent, name] of [["codex", "codex-inline"], ["gemini", "gemini"]] as const) {
  Deno.test(`[B-06] a recorded ${agent} session one byte a read equals all at once`, async () => {
    const bytes = await recording(name);
    const whole = await blocksOf(agent, bytes, [], NAMES);
    assert.deepEqual(await blocksOf(agent, bytes, bytes.keys(), NAMES), whole);
  });

  Deno.test(`[B-06] a recorded ${agent} session cut anywhere equals all at once`, async () => {
    const bytes = await recording(name);
    const whole = await blocksOf(agent, bytes, [], NAMES);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 40 }),
        fc.boolean(),
        async (cuts, apart) => {
          cuts.sort((a, b) => a - b);
          assert.deepEqual(await blocksOf(agent, bytes, cuts, NAMES, apart), whole);
        },
      ),
      {
        numRuns: 60,
        // Cut into the mark of an answer: e2, e2 80 | a2 and the feed's own slices behind it.
        examples: [[[1869], false], [[18252], true], [[18253], true], [[18252, 18253], true]],
      },
    );
  });
}

const word = fc.stringMatching(/^[a-z]{1,12}$/);
const line = fc.array(word, { minLength: 1, maxLength: 40 }).map((words) => words.join(" "));

Deno.test("[B-06] any body comes through whole, at any width, on either kind of UI", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom<Look>("gemini", "codex"),
      fc.integer({ min: 40, max: 132 }),
      fc.array(line, { minLength: 1, maxLength: 6 }),
      async (look, cols, lines) => {
        await observing({ profile: look, size: { columns: cols, rows: 30 } }, async (seen) => {
          const agent = new Painter(look, cols);
          const body = lines.join("\n");
          await seen.feed(agent.start() + agent.begin("go") + agent.finish(`To:beta: ${body}`));
          seen.settle();
          assert.equal(seen.blocks.length, 1);
          const flat = (text: string) => text.replace(/\s/g, " ");
          // A break may be taken for a wrap where the next word would not have fitted: a blank then.
          assert.equal(flat(seen.blocks[0]!.body), flat(body));
        });
      },
    ),
    { numRuns: 60 },
  );
});

Deno.test("[B-06] unwrapping undoes greedy wrapping of a single line exactly", () => {
  fc.assert(
    fc.property(line, fc.integer({ min: 26, max: 90 }), (text, width) => {
      const rows: string[] = [];
      for (const next of text.split(" ")) {
        const last = rows.at(-1);
        if (last !== undefined && textWidth(last) + 1 + next.length <= width) {
          rows[rows.length - 1] = `${last} ${next}`;
        } else rows.push(next);
      }
      const painted = rows.map((row, i) => ({ text: row, line: i }));
      const rule = { width, wideAnywhere: false, breakAfter: "" };
      const lines = writtenLines(painted, rule, () => false);
      assert.deepEqual(lines.map((found) => found.text), [text]);
    }),
  );
});

Deno.test("[B-06] reports are found in dropped output, wherever it is cut", () => {
  const stream = new TextEncoder().encode(
    "x\x1b[31mred\x1b]0;a title ✦\x07text\x1b]7501;state=working:app=codex\x1b\\\x1b]8;;http://x\x07" +
      "\x1b]2;cut \x18 off\x07\x1b\x1b]7501;state=done:app=codex\x07\nrest",
  );
  const read = (parts: Uint8Array[]) => {
    const found: [number, string][] = [];
    const scanner = new ReportScanner((code, text) => found.push([code, text]));
    for (const part of parts) scanner.feed(part);
    return found;
  };
  const whole = read([stream]);
  assert.deepEqual(whole, [
    [0, "a title ✦"],
    [7501, "state=working:app=codex"],
    [8, ";http://x"],
    [7501, "state=done:app=codex"],
  ]);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: stream.length })), (cuts) => {
      cuts.sort((a, b) => a - b);
      const edges = [0, ...cuts, stream.length];
      assert.deepEqual(read(edges.slice(1).map((end, i) => stream.subarray(edges[i], end))), whole);
    }),
  );
});
