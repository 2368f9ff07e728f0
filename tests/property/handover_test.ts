/** What one process saves of its observers, another goes on with: as if it had been the same. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { BlockWatch } from "../../lib/pty/block_watch.ts";
import { concat } from "../../lib/pty/hold.ts";
import { KeyTokens } from "../../lib/pty/keys.ts";
import { Operator } from "../../lib/pty/operator.ts";
import { PromptRow } from "../../lib/pty/prompt_row.ts";
import { FakeClock } from "../helpers/clock.ts";
import { ObserverRig } from "../helpers/lines.ts";

const encoder = new TextEncoder();

/** As it goes through the memory between two programs. */
const passed = <T>(state: T): T => JSON.parse(JSON.stringify(state)) as T;

const bytesOf = (pieces: readonly string[], maxLength: number) =>
  fc.array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...pieces).map((text) => encoder.encode(text)) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 6 }) },
    ),
    { maxLength },
  ).map((parts) => concat(parts));

const output = bytesOf(
  ("To:beta: hi|To:alpha: a\nTo:beta: hi\n|text\nmore\n|To:beta:|To:alpha: |To:nobody: x|To|:|beta|text|more| |\t|\n|\n\n|\r\n|\r|ž|🐎|" +
    "\x1b[1m|\x1b[2C|\x1b[H|\x1b]0;a To:beta: b\x07|\x1bPq To:beta: \x1b\\|\x1b]unfinished|\x1b|" +
    "\x1b[|\x1b[?2004h|\x1b[?25l|\x1b[?1049h|\x1b[?1049l|\x1bc|\x08|\x18").split("|"),
  60,
);
const cuts = fc.array(fc.nat(300), { maxLength: 6 });

/** The pieces between the cuts, with a hand-over at each. */
function* pieces(bytes: Uint8Array<ArrayBuffer>, at: readonly number[]) {
  const ends = [...at.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) =>
    a - b
  );
  let from = 0;
  for (const end of ends) {
    yield bytes.subarray(from, end);
    from = end;
  }
}

/** Half a second passes at each cut. */
function observe(bytes: Uint8Array<ArrayBuffer>, at: readonly number[], replace: boolean) {
  const found: unknown[] = [];
  let now = 0;
  const fresh = () => {
    const rig = new ObserverRig();
    rig.shell = true;
    // A clock that starts with its process.
    rig.now = replace ? now % 7 : now;
    return rig;
  };
  let rig = fresh();
  let row = new PromptRow();
  rig.echoes.expect(["To:beta: hi", "text", "more"], rig.now);
  const collect = () => found.push(...rig.blocks.splice(0), ...rig.refusals.splice(0));
  for (const piece of pieces(bytes, at)) {
    rig.feed(piece);
    row.feed(piece);
    collect();
    now += 500;
    rig.now += 500;
    if (!replace) continue;
    const old = rig;
    const state = passed({
      lines: old.observer.save(),
      modes: old.modes.save(),
      echoes: old.echoes.save(old.now),
      row: row.save(),
    });
    rig = fresh();
    rig.observer.restore(state.lines);
    rig.modes.restore(state.modes);
    rig.echoes.restore(state.echoes, rig.now);
    row = new PromptRow();
    row.restore(state.row);
  }
  rig.observer.end();
  collect();
  const { bracketedPaste, alternateScreen, cursorHidden, settled, lineStart } = rig.modes;
  const modes = { bracketedPaste, alternateScreen, cursorHidden, settled, lineStart };
  return { found, modes, row: row.bytes(), text: row.text() };
}

Deno.test("[B-17] an observer that is replaced anywhere in the output finds the same, once", () => {
  fc.assert(
    fc.property(output, cuts, (bytes, at) => {
      assert.deepEqual(observe(bytes, at, true), observe(bytes, at, false));
    }),
    { numRuns: 5000 },
  );
});

const keys = bytesOf(
  ("To:beta: hi|To:alpha|a|ž|🐎|\r|\x7f|\x15|\x17|\x03|\x04|\t|\x1b|\x1b[A|\x1b[12;3R|\x1b[200~|" +
    "x\ry|\x1b[201~|\x1b]11;rgb:0/0/0\x1b\\|\x1bOP").split("|"),
  40,
);

function type(bytes: Uint8Array<ArrayBuffer>, at: readonly number[], replace: boolean) {
  const found: unknown[] = [];
  let now = 0;
  const operator = () =>
    new Operator({
      now: () => now,
      hidden: () => false,
      secret: () => false,
      onLine: (line) => found.push(line),
      onUncertainAddress: () => found.push("uncertain"),
      onEnter: (typed, certain) => found.push([typed, certain]),
    });
  let [tokens, line] = [new KeyTokens(), operator()];
  for (const piece of pieces(bytes, at)) {
    line.feed(tokens.feed(piece));
    found.push(line.dirty, tokens.boundary, now - line.lastKey);
    now += 10;
    if (!replace) continue;
    const state = passed({ tokens: tokens.save(), line: line.save() });
    now = now % 30; // another process, another clock
    [tokens, line] = [new KeyTokens(), operator()];
    tokens.restore(state.tokens);
    line.restore(state.line);
  }
  return found;
}

Deno.test("[B-17] the operator's line goes on where it was, in the middle of a key as well", () => {
  fc.assert(
    fc.property(keys, cuts, (bytes, at) => {
      assert.deepEqual(type(bytes, at, true), type(bytes, at, false));
    }),
    { numRuns: 5000 },
  );
});

Deno.test("[B-02][B-17] a block that stays open is told of once, by whichever program comes to it", () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const block = { target: "beta" };
  let watch = new BlockWatch(clock, (target) => told.push(target));
  watch.look(block);
  const replace = () => {
    const kept = passed(watch.save());
    watch.look(undefined);
    watch = new BlockWatch(clock, (target) => told.push(target));
    watch.restore(block, kept);
  };
  clock.advance(20_000);
  replace();
  clock.advance(9_999);
  assert.deepEqual(told, []);
  clock.advance(1);
  assert.deepEqual(told, ["beta"]);
  replace();
  watch.look(block);
  clock.advance(60_000);
  assert.deepEqual(told, ["beta"]);
});
