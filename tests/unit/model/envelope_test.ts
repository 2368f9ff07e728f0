import assert from "node:assert/strict";
import fc from "fast-check";
import {
  envelopeLines,
  parseAddress,
  senderLabel,
  unknownAddress,
} from "../../../lib/model/envelope.ts";

const NAMES = ["beta", "beta/web", "beta/web: old", "a b", "x:y", "#(touch z)"];

Deno.test("[B-05] the longest registered name that is followed by a colon and a blank wins", () => {
  const target = (line: string) => parseAddress(line, NAMES);
  assert.deepEqual(target("To:beta: hi"), { target: "beta", text: "hi" });
  assert.deepEqual(target("To:beta/web: hi"), { target: "beta/web", text: "hi" });
  assert.deepEqual(target("To:beta/web: old: hi"), { target: "beta/web: old", text: "hi" });
  assert.deepEqual(target("To:a b: hi: there"), { target: "a b", text: "hi: there" });
  assert.deepEqual(target("To:x:y: hi"), { target: "x:y", text: "hi" });
  assert.deepEqual(target("To:#(touch z): hi"), { target: "#(touch z)", text: "hi" });
  assert.deepEqual(target("To:beta:"), { target: "beta", text: "" });
  assert.deepEqual(target("To:beta:\thi"), { target: "beta", text: "hi" });
  assert.deepEqual(target("To:beta:  hi "), { target: "beta", text: " hi " });
});

Deno.test("[B-03] only the very start of a line that names a registered repository addresses", () => {
  for (
    const line of [
      " To:beta: hi",
      "to:beta: hi",
      "To: beta: hi",
      "To:beta hi",
      "To:beta:hi",
      "To:BETA: hi",
      "To:bet: hi",
      "To:betax: hi",
      "From:beta: hi",
      "> To:beta: hi",
      "",
      "To:",
    ]
  ) assert.equal(parseAddress(line, NAMES), undefined, line);
  assert.equal(parseAddress("To:: hi", [""]), undefined);
});

Deno.test("[E-07] an address of nobody registered is recognised only to explain it", () => {
  assert.equal(unknownAddress("To:betta: hi"), "betta");
  assert.equal(unknownAddress("To:betta:"), "betta");
  assert.equal(unknownAddress("To:do list"), undefined);
  assert.equal(unknownAddress("To: whom it may concern: hi"), undefined);
});

Deno.test("[B-05] a person's message is labelled /o, a worker's is not", () => {
  assert.equal(senderLabel("alpha", "worker"), "alpha");
  assert.equal(senderLabel("alpha", "operator"), "alpha/o");
  assert.equal(senderLabel("local", "cli"), "local/o");
  assert.equal(senderLabel("alpha", "cli"), "alpha");
  assert.equal(senderLabel("coordination-engine", "coordination_engine"), "coordination-engine");
});

function lines(body: string, ack = false): string[] {
  return envelopeLines({
    message_id: "01abc",
    sender_repo: "alpha",
    provenance: "worker",
    body,
    ack_requested: ack,
  });
}

Deno.test("[B-05] body lines that could route or pose as a sender are marked", () => {
  assert.deepEqual(lines("one\n\ntwo"), ["From:alpha: one", "", "two"]);
  const posing = [
    "To:beta: hi",
    "  from:local/o: hi",
    "\u00a0TO:beta: hi",
    "\uff34\uff4f\uff1abeta: hi", // full-width To:
    "T\u200bo:beta: hi",
    "\u2066From:x: y",
    "T o : beta",
  ];
  for (const line of posing) assert.deepEqual(lines(`x\n${line}`).slice(1), [`> ${line}`]);
  for (const line of ["Tomorrow: hi", "> To:beta: hi", "see To:beta: hi"]) {
    assert.deepEqual(lines(`x\n${line}`).slice(1), [line]);
  }
});

Deno.test("[T-24] with acknowledgement asked for, the text says how", () => {
  assert.equal(lines("x", true).at(-1), "(tamq ack 01abc)");
});

Deno.test("[B-05] no line of any envelope addresses anybody", () => {
  const hostile = fc.array(
    fc.oneof(
      fc.constantFrom(
        "To:",
        "From:",
        "to:",
        "beta",
        ": ",
        "\n",
        " ",
        "\t",
        "\u200b",
        "Ｔｏ：",
        "> ",
      ),
      fc.string({ maxLength: 4 }),
    ),
    { maxLength: 20 },
  ).map((parts) => parts.join(""));
  fc.assert(
    fc.property(hostile, (body) => {
      for (const [index, line] of lines(body).entries()) {
        assert.equal(parseAddress(line, NAMES), undefined, JSON.stringify(line));
        if (index > 0) assert.doesNotMatch(line.normalize("NFKC"), /^\s*(to|from):/i);
      }
    }),
    { numRuns: 2000 },
  );
});

Deno.test("[B-05] what is addressed comes back as it was written", () => {
  const name = fc.string({ minLength: 1, maxLength: 12 }).filter((text) => !text.includes("\n"));
  fc.assert(fc.property(fc.uniqueArray(name, { minLength: 1 }), fc.string(), (names, text) => {
    const target = names[0]!;
    const got = parseAddress(`To:${target}: ${text}`, names);
    assert.ok(got !== undefined);
    // A longer name may claim more of the line; whoever wins, nothing of the line is lost.
    assert.equal(`To:${got.target}: ${got.text}`.startsWith(`To:${target}:`), true);
    if (got.target === target) assert.equal(got.text, text);
    else assert.ok(got.target.length > target.length && got.target.startsWith(`${target}:`));
  }));
});
