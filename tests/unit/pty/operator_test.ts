import assert from "node:assert/strict";
import { KeyTokens } from "../../../lib/pty/keys.ts";
import { Operator } from "../../../lib/pty/operator.ts";

function rig(options: { secret?: boolean } = {}) {
  const lines: string[] = [];
  const state = { uncertain: 0, enters: 0, hidden: false };
  const keys = new KeyTokens();
  const operator = new Operator({
    now: () => 1,
    hidden: () => state.hidden,
    secret: () => options.secret ?? false,
    onLine: (line) => lines.push(line),
    onUncertainAddress: () => state.uncertain++,
    onEnter: () => state.enters++,
  });
  const type = (text: string) => operator.feed(keys.feed(new TextEncoder().encode(text)));
  return { lines, state, operator, keys, type };
}

Deno.test("[B-03] a typed line is recognised at Enter, with its edits", () => {
  const cases: [string, string[]][] = [
    ["To:beta: hi\r", ["To:beta: hi"]],
    ["To:beta: hi\n", ["To:beta: hi"]],
    ["To:bex\x7fta: hi\r", ["To:beta: hi"]],
    ["To:bex\x08ta: hi\r", ["To:beta: hi"]],
    ["rm -rf\x15To:beta: hi\r", ["To:beta: hi"]],
    ["To:beta: one two  \x17three\r", ["To:beta: one three"]],
    ["junk\x03To:beta: hi\r", ["To:beta: hi"]],
    ["To:beta: hi\x03\r", []],
    ["To:beta: hž🐎\x7fx\r", ["To:beta: hžx"]],
    ["\x1b[200~To:beta: pasted\x1b[201~\r", ["To:beta: pasted"]],
    ["x To:beta: hi\r", []],
    ["echo hi\r", []],
    ["To:beta: a\rTo:beta: b\r", ["To:beta: a", "To:beta: b"]],
  ];
  for (const [typed, expected] of cases) {
    for (const split of [false, true]) {
      const { lines, keys, operator, type } = rig();
      if (split) {
        for (const byte of new TextEncoder().encode(typed)) {
          operator.feed(keys.feed(Uint8Array.of(byte)));
        }
      } else type(typed);
      assert.deepEqual(lines, expected, JSON.stringify(typed));
    }
  }
});

Deno.test("[B-03] a line edited by keys whose effect is unknown is never guessed", () => {
  for (
    const key of ["\x1b[D", "\x1bOA", "\t", "\x12", "\x01", "\x1bb", "\x1b[3~", "\x04", "\x16"]
  ) {
    const { lines, state, operator, type } = rig();
    type(`To:beta: h${key}i\r`);
    assert.deepEqual([lines, state.uncertain], [[], 1], JSON.stringify(key));
    assert.equal(operator.dirty, false);
    type("To:beta: next\r");
    assert.deepEqual(lines, ["To:beta: next"]);
  }
});

Deno.test("[B-03] several pasted lines are not one line", () => {
  const { lines, state, type } = rig();
  type("\x1b[200~To:beta: a\rb\x1b[201~\r");
  assert.deepEqual([lines, state.uncertain, state.enters], [[], 1, 1]);
});

Deno.test("[B-08] what the terminal itself sends is nobody's typing", () => {
  const replies = [
    "\x1b[12;40R",
    "\x1b[?62;22c",
    "\x1b[>1;10;0c",
    "\x1b[0n",
    "\x1b[?2026;2$y",
    "\x1b[8;24;80t",
    "\x1b[I",
    "\x1b[O",
    "\x1b[<0;10;10M",
    "\x1b[<0;10;10m",
    "\x1b[M !!",
    "\x1b]11;rgb:0000/0000/0000\x1b\\",
    "\x1b]52;c;eA==\x07",
    "\x1bP>|tmux 3.3a\x1b\\",
    "\x1b_Gi=1;OK\x1b\\",
    "\x1b[?1u",
  ];
  for (const reply of replies) {
    const { lines, operator, keys, type } = rig();
    type(reply);
    assert.deepEqual([operator.dirty, operator.lastKey, keys.boundary], [false, -Infinity, true]);
    type(`To:beta: h${reply}i\r`);
    assert.deepEqual(lines, ["To:beta: hi"], JSON.stringify(reply));
  }
});

Deno.test("[B-08] a line is dirty from its first key to Enter, ^C or its last erasure", () => {
  const { operator, type } = rig();
  type("ab");
  assert.equal(operator.dirty, true);
  type("\x7f\x7f");
  assert.equal(operator.dirty, false);
  type("\x1b[A");
  assert.equal(operator.dirty, true); // history: there may be a line now
  type("\x03");
  assert.equal(operator.dirty, false);
  type("x\r");
  assert.equal(operator.dirty, false);
});

Deno.test("[B-03] nothing is recognised in the alternate screen or while a secret is read", () => {
  const { lines, state, operator, type } = rig();
  state.hidden = true;
  type("To:beta: hi\r:q");
  assert.deepEqual([lines, operator.dirty], [[], false]);
  state.hidden = false;
  assert.equal(operator.dirty, false);
  const secret = rig({ secret: true });
  secret.type("To:beta: hi\r");
  assert.deepEqual([secret.lines, secret.state.uncertain], [[], 0]);
});

Deno.test("[B-03] an endless line is bounded and not recognised", () => {
  const { lines, type } = rig();
  for (let i = 0; i < 1000; i++) type("To:beta: " + "x".repeat(1000));
  type("\r");
  assert.deepEqual(lines, []);
});
