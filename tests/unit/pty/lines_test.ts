import assert from "node:assert/strict";
import { ObserverRig } from "../../helpers/lines.ts";

const seen = (text: string | Uint8Array, end = false) => {
  const rig = new ObserverRig().feed(text);
  if (end) rig.observer.end();
  return rig;
};

Deno.test("[B-02] a block ends at an empty line, a new address or the worker's exit", () => {
  assert.deepEqual(seen("To:beta: a\r\nb\r\n\r\nc\r\n").bodies, ["beta|a\nb"]);
  assert.deepEqual(seen("To:beta: a\nTo:alpha: b\n\n").bodies, ["beta|a", "alpha|b"]);
  assert.deepEqual(seen("To:beta: a\nb\n").bodies, []);
  assert.deepEqual(seen("To:beta: a\nb\n", true).bodies, ["beta|a\nb"]);
  assert.deepEqual(seen("To:beta: a\nb", true).bodies, ["beta|a\nb"]);
  assert.deepEqual(seen("To:beta: a\n  \t\n").bodies, ["beta|a"]); // nothing visible: empty
});

Deno.test("[B-02] half an address line is never routed", () => {
  assert.deepEqual(seen("To:beta: a").bodies, []);
  assert.deepEqual(seen("To:beta: a", true).bodies, []);
  assert.deepEqual(seen("To:beta: a\nTo:alpha: b", true).bodies, ["beta|a"]);
});

Deno.test("[B-02] only a registered name at the very start of a line is an address", () => {
  for (
    const text of [
      " To:beta: x\n\n",
      "\tTo:beta: x\n\n",
      "$ To:beta: x\n\n",
      "to:beta: x\n\n",
      "To: beta: x\n\n",
      "TTo:beta: x\n\n",
      "ToTo:beta: x\n\n",
      "From:beta: x\n\n",
      "From:beta: To:beta: x\n\n",
    ]
  ) assert.deepEqual(seen(text).bodies, [], JSON.stringify(text));
  assert.deepEqual(seen("To:gam:ma: x\n\nTo:with space: y\n\nTo:be: z\n\n").bodies, [
    "gam:ma|x",
    "with space|y",
    "be|z",
  ]);
});

Deno.test("[B-02] line breaks, tabs, double spaces and Unicode of a body are kept", () => {
  assert.deepEqual(seen("To:beta:\r\n\tone  two \r\nžluťoučký 🐎\r\n\r\n").bodies, [
    "beta|\n\tone  two \nžluťoučký 🐎",
  ]);
});

Deno.test("[E-07] an unknown name is told, sent nowhere, and ends the block before it", () => {
  const rig = seen("To:beta: a\nTo:bete: b\nc\n\n");
  assert.deepEqual(rig.bodies, ["beta|a"]);
  assert.deepEqual(rig.refusals, [{ target: "bete", reason: "unknown_target" }]);
});

Deno.test("[B-02] escape sequences are skipped wherever they stand", () => {
  const sgr =
    "\x1b[1;32mTo:beta: g\x1b[0mreen\x1b[K\x1b]8;;http://x\x1b\\ link\x1b]8;;\x07\x1b(B\r\n\r\n";
  assert.deepEqual(seen(sgr).bodies, ["beta|green link"]);
  assert.deepEqual(seen("\x1b[?2004l\rTo:beta: x\r\n\r\n").bodies, ["beta|x"]); // what bash prints
  assert.deepEqual(seen("\x1b[H\x1b[2JTo:beta: x\n\n").bodies, ["beta|x"]); // after clear
  assert.deepEqual(seen("\x1b]0;title To:beta: no\x07To:beta: yes\n\n").bodies, ["beta|yes"]);
  assert.deepEqual(seen("\x1bP1;2;3To:beta: no\x1b\\To:beta: yes\n\n").bodies, ["beta|yes"]);
});

Deno.test("[B-05] a line editor's wrap or redraw cannot begin an address", () => {
  // readline at the right margin: a blank, a carriage return, then the rest of the text.
  assert.deepEqual(seen("From:beta: xxxxxxxx \rTo:alpha: forged\r\n\r\n").bodies, []);
  assert.deepEqual(seen("old\rTo:beta: x\n\n").bodies, []);
  assert.deepEqual(seen("To:beta: x\rTo:beta: y\n\n").bodies, []);
  assert.deepEqual(seen("\x1b[10CTo:beta: x\n\n").bodies, []);
  assert.deepEqual(seen("\x1b[3;5HTo:beta: x\n\n").bodies, []);
  assert.deepEqual(seen("\x1b[2ATo:beta: x\n\n").bodies, []);
  assert.deepEqual(seen("\x1b8To:beta: x\n\n").bodies, []);
  // Inside a block a redrawn row counts as what it shows in the end.
  assert.deepEqual(seen("To:beta: a\n 10%\r 90%\rdone\n\n").bodies, ["beta|a\ndone"]);
  assert.deepEqual(seen("To:beta: a\nx\rTo:alpha: y\n\n").bodies, ["beta|a\nTo:alpha: y"]);
});

Deno.test("[B-02] nothing is observed in the alternate screen", () => {
  for (const mode of ["1049", "47", "1047", "2;1049"]) {
    const text = `\x1b[?${mode}hTo:beta: no\n\n\x1b[?${mode}lTo:beta: no\n\nTo:beta: yes\n\n`;
    assert.deepEqual(seen(text).bodies, ["beta|yes"], mode);
  }
});

Deno.test("[T-08][B-02] a body that cannot be sent is told and dropped whole", () => {
  const big = seen(`To:beta: ${"x".repeat(8193)}\n\nTo:beta: ok\n\n`);
  assert.deepEqual(big.bodies, ["beta|ok"]);
  assert.deepEqual(big.refusals, [{ target: "beta", reason: "body_too_large" }]);
  assert.equal(seen(`To:beta: ${"x".repeat(8192)}\n\n`).blocks[0]!.body.length, 8192);
  const rows = seen(`To:beta: a\n${"row\n".repeat(100_000)}\n`);
  assert.deepEqual(rows.refusals, [{ target: "beta", reason: "body_too_large" }]);
  assert.deepEqual(seen("To:beta: a\x07b\n\n").refusals, [{
    target: "beta",
    reason: "body_binary",
  }]);
  const bad = seen(Uint8Array.from([...new TextEncoder().encode("To:beta: "), 0xff, 0x0a, 0x0a]));
  assert.deepEqual(bad.refusals, [{ target: "beta", reason: "body_not_utf8" }]);
  assert.deepEqual(seen("To:beta:\n\n").refusals, [{ target: "beta", reason: "body_empty" }]);
});

Deno.test("[B-02] at a shell the prompt ends a block; elsewhere it does not", () => {
  const rig = new ObserverRig();
  rig.feed("To:beta: a\r\nb\r\n\x1b[?2004h");
  assert.deepEqual(rig.bodies, []);
  rig.shell = true;
  rig.feed("\x1b[?2004h$ ");
  assert.deepEqual(rig.bodies, ["beta|a\nb"]);
  // Output without a line end, then the prompt (bash); and the marker that zsh paints instead.
  rig.feed("\r\nTo:beta: c\r\nd\x1b[?2004h$ To:beta: no\r\n\r\n");
  assert.deepEqual(rig.bodies.slice(1), ["beta|c\nd"]);
  rig.feed("To:beta: e\r\n\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m     \r \r\r$ \x1b[K\x1b[?2004h");
  assert.deepEqual(rig.bodies.slice(2), ["beta|e"]);
});

Deno.test("[B-05] an expected echo is not routed, twice; the worker's own third is", () => {
  const rig = new ObserverRig();
  rig.echoes.expect(["To:beta: hello"], 0);
  rig.feed("To:beta: hello\r\n\r\nTo:beta: hello\r\n\r\n");
  assert.deepEqual(rig.bodies, []);
  rig.feed("To:beta: hello\r\n\r\n");
  assert.deepEqual(rig.bodies, ["beta|hello"]);
});

Deno.test("[B-05] an echo that does not come within five seconds is expected no longer", () => {
  const rig = new ObserverRig();
  rig.echoes.expect(["To:beta: hello"], 0);
  rig.now = 5001;
  rig.feed("To:beta: hello\n\n");
  assert.deepEqual(rig.bodies, ["beta|hello"]);
});

Deno.test("[B-05] a row that is a wrapped piece of an injected line is not routed", () => {
  const rig = new ObserverRig();
  rig.echoes.expect([`From:alpha: ${"x".repeat(60)}To:beta: forged`], 0);
  rig.feed("To:beta: forged\n\n");
  assert.deepEqual(rig.bodies, []);
  // Not in silence: it might be the worker, saying what it was asked to say.
  assert.deepEqual(rig.refusals, [{ target: "beta", reason: "repeats_delivery" }]);
});

Deno.test("[B-02] [B-05] a reply that repeats words of the delivered text is kept whole", () => {
  // "please run / npm test / all ok / bye" was answered by rows that end like, or equal, its rows:
  // they were once taken for its echo, and the reply lost them.
  const rig = new ObserverRig();
  rig.echoes.expect(["From:beta: please run", "npm test", "all ok", "bye"], 0);
  rig.feed("To:beta: I did\r\nnpm test\r\nafter that all ok\r\nbye\r\n\r\n");
  assert.deepEqual(rig.bodies, ["beta|I did\nnpm test\nafter that all ok\nbye"]);
});

Deno.test("[B-05] the echo of a delivery inside an open block is no part of its body", () => {
  const rig = new ObserverRig();
  rig.echoes.expect(["From:alpha: one", "second row"], 0);
  rig.feed("To:beta: a\r\n>>> From:alpha: one\r\nsecond row\r\nb\r\n\r\n");
  assert.deepEqual(rig.bodies, ["beta|a\nb"]);
});

Deno.test("[B-05] after an uncertain line with an address two address rows are withheld", () => {
  const rig = new ObserverRig();
  rig.echoes.expectUnknownAddress(0);
  rig.feed("To:beta: x\n\nTo:beta: x\n\nTo:beta: own\n\n");
  assert.deepEqual(rig.bodies, ["beta|own"]);
});

Deno.test("[B-03] [B-02] a line recalled from a history is not the worker's, where no prompt stands before it", () => {
  // Up, Enter in a program without a prompt: the editor paints the old line at the row's start.
  const rig = new ObserverRig();
  rig.feed("To:beta: typed once");
  rig.observer.operatorEntered();
  rig.feed("\r\ngot 19\r\n\r\n");
  assert.deepEqual(rig.bodies, []);
  // What the worker prints after the Enter is its own.
  rig.observer.operatorEntered();
  rig.feed("To:beta: mine\r\n\r\n");
  assert.deepEqual(rig.bodies, ["beta|mine"]);
});

Deno.test("[B-12] last words without a line feed are sent, unless the operator had begun a line", () => {
  // `printf 'To:beta: x'; exit` was lost: an unfinished row may be what the operator types.
  for (const quiet of [true, false]) {
    const rig = new ObserverRig();
    rig.feed("To:alpha: before\r\nTo:beta: last words");
    rig.observer.end(quiet);
    assert.deepEqual(rig.bodies, ["alpha|before", ...(quiet ? ["beta|last words"] : [])]);
  }
  const half = new ObserverRig();
  half.feed("To:bet");
  half.observer.end(true);
  const redrawn = new ObserverRig();
  redrawn.feed("prompt\rTo:beta: x");
  redrawn.observer.end(true);
  assert.deepEqual([...half.bodies, ...redrawn.bodies, ...half.refusals], []);
});
