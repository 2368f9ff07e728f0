/** The parts of the screen observer on their own: cell widths, unwrapping, the bounded feed, the ledger. */
import assert from "node:assert/strict";
import { Feed } from "../../lib/pty/screen/feed.ts";
import { Ledger } from "../../lib/pty/screen/ledger.ts";
import { loadModel, type Mark, ScreenModel } from "../../lib/pty/screen/model.ts";
import { writtenLines } from "../../lib/pty/screen/paragraph.ts";
import type { FoundBlock } from "../../lib/pty/screen/transcript.ts";
import { textWidth } from "../../lib/pty/screen/widths.ts";
import { FakeClock } from "../helpers/clock.ts";

Deno.test("[B-06] cells of wide, combined and joined characters are counted as terminals draw them", () => {
  const cells: [string, number][] = [
    ["abc", 3],
    ["日本語", 6],
    ["ｶﾅ", 2],
    ["한글", 4],
    ["✅🚀", 4],
    ["e\u0301", 1],
    ["👩‍💻", 2],
    ["👍🏽", 2],
    ["🇩🇪", 2],
    ["—…·", 3],
    ["\u200b", 0],
  ];
  for (const [text, width] of cells) assert.equal(textWidth(text), width, text);
});

Deno.test("[B-06] text behind emoji stays where it was painted by absolute moves", async () => {
  const model = new ScreenModel(await loadModel(), { cols: 40, rows: 5 }, noHooks);
  await write(model, "🚀 done\x1b[1;9Hnext 日本\x1b[1;18Hend");
  assert.equal(model.snapshot()[0]!.text, "🚀 done next 日本end");
  model.dispose();
});

Deno.test("[B-01] [B-06] neither an error of the model nor a count that it would loop over ends or holds up the window", async () => {
  const hostile = [
    "\x1b[5;40HX\x1b[1J", // an error in its own timer
    ..."bILMSTZ".split("").map((final) => `A\x1b[2147483647${final}`),
    "A\x1b[;99999999b\x1b[99999999b",
  ];
  for (const sequence of hostile) {
    let lost = 0;
    const hooks = { ...noHooks, onLost: () => void lost++ };
    const model = new ScreenModel(await loadModel(), { cols: 40, rows: 5 }, hooks);
    await write(model, sequence + sequence);
    assert.equal(lost, 1, JSON.stringify(sequence));
    model.cancel();
    await write(model, "");
    model.reset();
    await write(model, "on it goes");
    assert.equal(model.snapshot()[0]!.text, "on it goes");
    await write(model, sequence);
    assert.equal(lost, 2, "told again after a reset");
    model.dispose();
  }
});

Deno.test("[B-01] [B-06] a character may be cut anywhere: the model loses none and holds none back too long", async () => {
  const bytes = new TextEncoder().encode("a\u00c0\u2022\u{10000}\u20ac\ue000\u{10ffff}z");
  const model = new ScreenModel(await loadModel(), { cols: 40, rows: 5 }, noHooks);
  const feed = async (...parts: Uint8Array[]) => {
    for (const part of parts) await new Promise<void>((done) => model.write(part, done));
    return model.snapshot()[0]!.text;
  };
  const whole = await feed(bytes);
  for (let first = 0; first <= bytes.length; first++) {
    for (let second = first; second <= bytes.length; second++) {
      model.reset();
      const parts = [
        bytes.subarray(0, first),
        bytes.subarray(first, second),
        bytes.subarray(second),
      ];
      assert.equal(await feed(...parts), whole, `cut at ${first} and ${second}`);
    }
  }
  model.reset();
  assert.equal(await feed(...[...bytes].map((byte) => Uint8Array.of(byte))), whole);
  // What never becomes a character is not waited for, nor what a reset has cut off.
  const text = new TextEncoder();
  for (const broken of [[0xe2], [0xe2, 0x80], [0xf5], [0xc1], [0x80, 0x80, 0x80, 0x80], [0xff]]) {
    model.reset();
    await feed(Uint8Array.of(0x41, ...broken));
    assert.match(await feed(text.encode("B\u2022")), /^A.?B\u2022$/u, String(broken));
    await feed(Uint8Array.of(...broken));
    model.reset();
    assert.equal(await feed(text.encode("B")), "B");
  }
  model.dispose();
});

const noHooks = { onTitle() {}, onStatusReport() {}, onRepaint() {}, onLost() {} };
const write = (model: ScreenModel, text: string) =>
  new Promise<void>((resolve) => model.write(new TextEncoder().encode(text), resolve));

Deno.test("[B-06] rows that the terminal wrapped are one row; a wide character at the edge leaves no gap", async () => {
  const model = new ScreenModel(await loadModel(), { cols: 5, rows: 4 }, noHooks);
  await write(model, "abcd日本xy  z\r\nnext");
  assert.deepEqual(model.snapshot().map(({ text }) => text).filter(Boolean), [
    "abcd日本xy  z",
    "next",
  ]);
  model.dispose();
});

Deno.test("[B-06] a mark tells trimming from clearing, resizing and switching away", async () => {
  const model = new ScreenModel(await loadModel(), { cols: 20, rows: 4 }, noHooks);
  const fates: string[] = [];
  const steps: [string, string][] = [
    ["scrolled out", "\r\n".repeat(2100)],
    ["cleared", "\x1b[2J"],
    ["erased below", "\x1b[J"],
    ["history erased", "\r\n".repeat(10) + "\x1b[3J"],
    ["reset", "\x1bc"],
    ["switched", "\x1b[?1049h\x1b[?1049l"],
    ["kept", "\r\n".repeat(100)],
  ];
  for (const [, output] of steps) {
    await write(model, "\x1b[H\x1b[2J");
    const mark = model.mark(model.cursorLine)!;
    await write(model, output);
    fates.push(mark.gone);
    mark.release();
  }
  const mark = model.mark(model.cursorLine)!;
  model.resize(30, 5);
  fates.push(mark.gone);
  model.dispose();
  assert.deepEqual(fates, ["trimmed", "lost", "lost", "lost", "lost", "lost", "no", "lost"]);
});

Deno.test("[B-06] a break is the writer's own where the next word would have fitted", () => {
  const rule = { width: 30, wideAnywhere: false, breakAfter: "" };
  const read = (rows: string[], more = {}) =>
    writtenLines(
      rows.map((text, line) => ({ text, line })),
      { ...rule, ...more },
      (text) => text.startsWith("To:"),
    );
  const texts = (rows: string[], more = {}) => read(rows, more).map(({ text }) => text);
  assert.deepEqual(texts(["please rebase", "then test"]), ["please rebase", "then test"]);
  assert.deepEqual(texts(["a row that is nearly as long", "as the width"]), [
    "a row that is nearly as long as the width",
  ]);
  const url = "https://example.org/" + "x".repeat(30);
  assert.deepEqual(texts(["see", url.slice(0, 30), url.slice(30) + " there"]), [
    `see ${url} there`,
  ]);
  assert.deepEqual(texts(["日本語の文章日本語の文章日本語", "の続き"], { wideAnywhere: true }), [
    "日本語の文章日本語の文章日本語の続き",
  ]);
  assert.deepEqual(texts(["this is how it goes with well-", "known words"], { breakAfter: "-" }), [
    "this is how it goes with well-known words",
  ]);
  // An address behind a full row: nobody can tell.
  const unsure = read(["a row that is nearly as long", "To:beta: hello"]);
  assert.deepEqual(unsure.map(({ uncertain }) => uncertain), [false, true]);
});

function feedUnderTest() {
  const clock = new FakeClock();
  const seen: string[] = [];
  const writes: { bytes: Uint8Array; done: () => void }[] = [];
  const feed = new Feed(clock, {
    write: (bytes, done) => writes.push({ bytes, done }),
    onGap: () => seen.push("gap"),
    onDropped: () => {},
    onResume: (dropped) => seen.push(`resume ${dropped}`),
    onDrained: () => seen.push("drained"),
  });
  return { clock, seen, writes, feed };
}

Deno.test("[B-06] the feed parses one bounded slice at a time, in order, steps in their place", () => {
  const { seen, writes, feed } = feedUnderTest();
  feed.push(new Uint8Array(40_000).fill(1));
  feed.between(() => seen.push("step"));
  feed.push(new Uint8Array([2]));
  feed.push(new Uint8Array([3]));
  const sizes: number[] = [];
  while (writes.length > 0) {
    assert.equal(writes.length, 1);
    const { bytes, done } = writes.shift()!;
    sizes.push(bytes.length);
    done();
  }
  assert.deepEqual(sizes, [16_384, 16_384, 7_232, 2]);
  assert.deepEqual(seen, ["step", "drained"]);
  assert.equal(feed.pending, 0);
});

Deno.test("[B-06] a caller may reuse its buffer at once", () => {
  const { writes, feed } = feedUnderTest();
  const buffer = new Uint8Array([1, 2, 3]);
  feed.push(buffer);
  buffer.fill(9);
  assert.deepEqual([...writes[0]!.bytes], [1, 2, 3]);
});

Deno.test("[B-06] an overflow drops all until output is calm, and resumes where a sequence can begin", () => {
  const { clock, seen, writes, feed } = feedUnderTest();
  const chunk = new Uint8Array(65_536).fill(0x78);
  for (let i = 0; i < 40; i++) feed.push(chunk);
  assert.deepEqual(seen, ["gap"]);
  assert.ok(feed.pending <= 2 * 1024 * 1024);
  writes.shift()!.done();
  assert.equal(writes.length, 0, "nothing of the flood is parsed");
  for (let i = 0; i < 10; i++) {
    clock.advance(20);
    feed.push(chunk);
  }
  assert.equal(feed.dropping, true);
  clock.advance(100);
  assert.equal(feed.dropping, false);
  assert.match(seen.at(-1)!, /^resume \d+$/);
  feed.push(new TextEncoder().encode("half a sequence;31m tail"));
  assert.equal(writes.length, 0);
  feed.push(new TextEncoder().encode("more\nwhole"));
  assert.equal(new TextDecoder().decode(writes[0]!.bytes), "\nwhole");
});

function block(over: Partial<FoundBlock> = {}): FoundBlock {
  const body = over.body ?? "x";
  return {
    target: "beta",
    written: "beta",
    body,
    bare: body.replace(/\s/g, ""),
    line: 0,
    prompt: "go",
    ordinal: 0,
    closed: true,
    final: true,
    uncertain: false,
    ...over,
  };
}

class FakeMark implements Mark {
  gone: "no" | "trimmed" | "lost" = "no";
  constructor(readonly line: number) {}
  release(): void {
    this.gone = "lost";
  }
}

function ledgerUnderTest() {
  const ledger = new Ledger();
  const marks: FakeMark[] = [];
  const commit = (blocks: FoundBlock[], send = true, repainted = false) => {
    const mark = (line: number) => {
      const made = new FakeMark(line);
      marks.push(made);
      return made;
    };
    const { fresh, ambiguous } = ledger.commit(blocks, { send, repainted, mark });
    return [fresh.map(({ body }) => body), ambiguous.map(({ body }) => body)];
  };
  return { commit, marks };
}

Deno.test("[B-06] the ledger sends what is above the count, never what a repaint moved or wrapped anew", () => {
  const { commit } = ledgerUnderTest();
  assert.deepEqual(commit([block({ body: "a b" })]), [["a b"], []]);
  assert.deepEqual(commit([block({ body: "a\nb", line: 7 })]), [[], []]);
  const twice = [block({ body: "a\nb", line: 7 }), block({ body: "a b", line: 9 })];
  assert.deepEqual(commit(twice), [["a b"], []]);
  // Another place in the conversation, another text of the user: another message.
  assert.deepEqual(commit([...twice, block({ body: "a b", line: 11, ordinal: 1 })]), [["a b"], []]);
  assert.deepEqual(commit([...twice, block({ body: "a b", line: 12, prompt: "more" })])[0], [
    "a b",
  ]);
});

Deno.test("[B-06] without a turn nothing is new; what stood there stays known", () => {
  const { commit } = ledgerUnderTest();
  assert.deepEqual(commit([block()], false), [[], []]);
  assert.deepEqual(commit([block()]), [[], []]);
});

Deno.test("[B-06] a trimmed block makes room for an equal new one, a cleared one does not", () => {
  const { commit, marks } = ledgerUnderTest();
  commit([block({ line: 3 })]);
  marks[0]!.gone = "trimmed";
  assert.deepEqual(commit([block({ line: 9 })]), [["x"], []]);
  marks[1]!.gone = "lost";
  commit([]);
  assert.deepEqual(commit([block({ line: 2 })]), [[], ["x"]]);
});

Deno.test("[B-06] a block whose user text has scrolled out is still the same block", () => {
  const { commit } = ledgerUnderTest();
  commit([block({ line: 3 })]);
  assert.deepEqual(commit([block({ line: 3, prompt: undefined })]), [[], []]);
  assert.deepEqual(commit([block({ line: 5, prompt: undefined })]), [[], []]);
  // … nor does it make the one below it look like one too many.
  const both = [block({ line: 0, prompt: undefined }), block({ line: 9 })];
  assert.deepEqual(commit(both), [[], []]);
  commit([]);
  assert.deepEqual(commit([block({ line: 5, prompt: undefined })]), [[], ["x"]], "back in sight");
  assert.deepEqual(commit([block({ line: 5, prompt: undefined })]), [[], []], "told once");
});

Deno.test("[B-06] first seen without its user text, later with it: the same block", () => {
  const { commit } = ledgerUnderTest();
  assert.deepEqual(commit([block({ prompt: undefined })]), [["x"], []]);
  assert.deepEqual(commit([block({ line: 8 })]), [[], []]);
  assert.deepEqual(commit([block({ line: 8 }), block({ line: 12 })]), [["x"], []]);
});
