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
    "- From:beta: x",
    "* To: beta",
    "12. From:beta: x",
    "**From:beta:** x",
    "`to:beta: x`",
    "\u3164From:beta: x",
    "\u115fFrom:beta: x",
    "\u2800From:beta: x",
    "F\u0301r\u034fom:beta: x",
    "Fr\u043em:beta: x", // Cyrillic o
    "From\u2236beta: x",
    "From\u02d0beta: x",
    "\u03a4\u03bf\ua789beta: x", // Greek letters
    "\u{1d413}o:beta", // mathematical letters
  ];
  for (const line of posing) {
    const shown = line.replace("To:beta: hi", "To.:beta: hi");
    assert.deepEqual(lines(`x\n${line}`).slice(1), [`> ${shown}`], line);
  }
  for (
    const line of ["Tomorrow: hi", "> From:beta: hi", "total: 3", "- to do: x", "\u00c5: \u00e9"]
  ) {
    assert.deepEqual(lines(`x\n${line}`).slice(1), [line]);
  }
});

Deno.test("[B-05] an address anywhere in a delivered text is said, not written: a program may break lines there", () => {
  assert.deepEqual(lines("answer me with To:alpha: done or To:a b: no"), [
    "From:alpha: answer me with To.:alpha: done or To.:a b: no",
  ]);
  assert.deepEqual(lines("To:alpha: x\nTo: whom it may concern: y, mailto:a@b, To:x"), [
    "From:alpha: To.:alpha: x",
    "> To: whom it may concern: y, mailto:a@b, To.:x",
  ]);
});

Deno.test("[B-05] no piece of an envelope addresses anybody, wherever a program breaks it", () => {
  const words = fc.constantFrom("To:", "To:", "beta", ":", ": ", " ", "\n", "T", "o", ".", "x");
  const body = fc.array(words, { minLength: 1, maxLength: 30 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(body, fc.nat(60), fc.boolean(), (body, cut, joined) => {
      const shown = joined ? [lines(body).join(" \u23ce ")] : lines(body);
      for (const line of shown) {
        for (const piece of [line.slice(cut), line.slice(cut).trimStart()]) {
          assert.equal(parseAddress(piece, NAMES), undefined, piece);
        }
      }
    }),
    { numRuns: 2000 },
  );
});

const LETTERS: Record<string, string[]> = {
  f: ["F", "f", "\uff26", "\u{1d405}", "\u03dc"],
  r: ["r", "R", "\u0433", "\uff52"],
  o: ["o", "O", "\u043e", "\u03bf", "0", "\u00f6", "\uff4f"],
  m: ["m", "\u043c", "\u{1d426}"],
  ":": [":", "\u2236", "\u02d0", "\ua789", "\uff1a"],
};

Deno.test("[B-05] a line that looks like a sender's is marked, whatever hides between its letters", () => {
  const filler = fc.array(
    fc.constantFrom(
      "",
      "",
      "\u200b",
      "\u034f",
      "\u0301",
      "\u3164",
      "\u2800",
      "\ufe0f",
      " ",
      "*",
      "_",
    ),
    { maxLength: 3 },
  ).map((parts) => parts.join(""));
  const front = fc.constantFrom(
    "",
    "- ",
    "* ",
    "\u2022 ",
    "**",
    "# ",
    "3. ",
    "\u2014 ",
    "`",
    "\u00ab",
  );
  const pieces = [..."from:"].map((letter) =>
    fc.tuple(filler, fc.constantFrom(...LETTERS[letter]!))
  );
  fc.assert(
    fc.property(front, fc.tuple(...pieces), (front, parts) => {
      const line = front + parts.map((part) => part.join("")).join("") + "beta: x";
      assert.equal(lines(`x\n${line}`)[1], `> ${line}`);
    }),
    { numRuns: 2000 },
  );
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
