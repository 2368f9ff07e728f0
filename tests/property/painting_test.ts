/** A screen painted from what another one holds is that screen (B-17). */
import assert from "node:assert/strict";
import fc from "fast-check";
import { loadModel, ScreenModel } from "../../lib/pty/screen/model.ts";

const encoder = new TextEncoder();
const hooks = { onTitle() {}, onStatusReport() {}, onRepaint() {}, onLost() {} };
const classes = await loadModel();

const NARROW =
  ("abc|word |To:b: x|e\u0301|\r\n|\n|\r|\t|\b|\x1b[A|\x1b[3C|\x1b[2;4H|\x1b[5;12H|\x1b[K|\x1b[J|" +
    "\x1b[2J|\x1b[2m|\x1b[22m|\x1b[m|\x1b[38;5;2m|\x1b[38;2;2;2;2m|\x1b[2;4r|\x1b[r|\x1bM|\x1b[L|" +
    "\x1b[2M|\x1b[?2004h|\x1b[3X|\x1b[P|\x1b[2@|0123456789|\x1bc|\x1b[4h|\x1b[4l")
    .split("|");
const outputOf = (pieces: readonly string[]) =>
  fc.array(fc.constantFrom(...pieces), { maxLength: 80 })
    .map((parts) => encoder.encode(parts.join("")));
// What is kept beside a saved cursor, dimness above all, is not asked for: it is not painted.
const output = outputOf([
  ...NARROW,
  ..."日本|🙂|👩‍👩‍👧|🇩🇪|\x1b[m\x1b7|\x1b8\x1b[m|\x1b[m\x1b[?1049h|\x1b[?1049l\x1b[m".split("|"),
]);
// Half a wide character, which only an edge can leave, is not painted either, and the library's
// alternate buffer does not survive every change of its size.
const narrow = outputOf([...NARROW, "\x1b[?7l", "\x1b[?7h", "\x1b[?6h", "\x1b[?6l"]);
const size = fc.record({
  cols: fc.integer({ min: 4, max: 14 }),
  rows: fc.integer({ min: 2, max: 6 }),
});

type Pair = [ScreenModel, ScreenModel];

const write = (model: ScreenModel, bytes: Uint8Array) =>
  new Promise<void>((resolve) => model.write(bytes, resolve));

function shown(model: ScreenModel): unknown {
  const rows = model.snapshot();
  const { alternate, bracketedPaste, cursorLine, cursorColumn, screenTop } = model;
  const dim = Array.from(
    { length: model.rows },
    (_, y) => Array.from({ length: model.cols }, (_, x) => model.isDim(screenTop + y, x)),
  );
  return { rows, alternate, bracketedPaste, cursorLine, cursorColumn, screenTop, dim };
}

Deno.test("[B-06][B-17] a painted screen is that screen, and goes on as it", async () => {
  await fc.assert(
    fc.asyncProperty(output, output, size, async (before, behind, size) => {
      const [old, fresh] = [0, 1].map(() => new ScreenModel(classes, size, hooks)) as Pair;
      await write(old, before);
      await write(fresh, encoder.encode(old.paint()));
      assert.deepEqual(shown(fresh), shown(old));
      await write(old, behind);
      await write(fresh, behind);
      assert.deepEqual(shown(fresh), shown(old));
      for (const model of [old, fresh]) model.dispose();
    }),
    { numRuns: 300 },
  );
});

Deno.test("[B-06][B-17] … also where a resize has wrapped its rows anew", async () => {
  await fc.assert(
    fc.asyncProperty(narrow, narrow, size, size, async (before, behind, first, second) => {
      const old = new ScreenModel(classes, first, hooks);
      await write(old, before);
      old.resize(second.cols, second.rows);
      await write(old, behind);
      const fresh = new ScreenModel(classes, second, hooks);
      await write(fresh, encoder.encode(old.paint()));
      assert.deepEqual(shown(fresh), shown(old));
      for (const model of [old, fresh]) model.dispose();
    }),
    { numRuns: 300 },
  );
});
