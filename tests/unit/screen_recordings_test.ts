/** What two real agents wrote to their terminals gives exactly the blocks that their models said. */
import assert from "node:assert/strict";
import { observing, recording, replay } from "../helpers/observe.ts";

const NAMES = ["railiance-platform", "net-kingdom", "state-hub"];
const RP = "railiance-platform", NK = "net-kingdom";
const LAB = { size: { columns: 100, rows: 40 }, names: NAMES };

const words = (prefix: string, from: number, to: number, digits: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => prefix + String(from + i).padStart(digits, "0"))
    .join(" ");

const A = { target: RP, body: "please rebase" };
const B = {
  target: RP,
  // The trailing space of the third line is the one thing a screen does not keep.
  body: "please rebase on main\nthen run the migration test\n" +
    "keep two  spaces and a trailing space\nlast line of the block",
};
const C = { target: RP, body: words("word", 1, 50, 3) };
const D = { target: RP, body: "done ✅ 🚀 日本語テスト e\u0301 a\u0308 👩‍💻 end" };
const E = [
  { target: RP, body: "first body\nsecond line" },
  { target: NK, body: "other body\nits second line" },
];
const H = { target: RP, body: "block in the middle\nof a long reply" };
const J = {
  target: RP,
  body:
    "a long-hyphenated-word-that-may-break somewhere between state-of-the-art well-known words " +
    "and-then https://example.org/a/very/long/path/that/has/no/spaces/and/is/longer/than/the/width/" +
    "of/the/whole/terminal/window/indeed/it/is?x=1 tail end\nsecond line short\n" +
    "third line is again long enough to be wrapped because it has very many words in it, more than " +
    "one row can hold, said the writer",
};
const K = { target: RP, body: "日本語の長い文章です".repeat(12) + " end" };
const N = [
  { target: RP, body: words("w", 0, 74, 2) },
  { target: RP, body: "second of the same target" },
];
const O = {
  target: RP,
  body: Array(8).fill("state-of-the-art well-known high-quality long-term").join(" "),
};
const Q = [
  { target: RP, body: "one" },
  { target: NK, body: "two" },
  { target: RP, body: "three" },
];
const STREAMED = {
  target: RP,
  body: `streamed slowly ${words("part", 0, 39, 1)}\nsecond row of it`,
};

for (const agent of ["codex", "gemini"] as const) {
  const name = { codex: "codex-inline", gemini: "gemini" }[agent];
  Deno.test(`[B-02] [B-05] [B-06] a recorded ${agent} session, read at once, gives its four blocks`, async () => {
    await observing({ profile: agent, ...LAB }, async (seen) => {
      await seen.feed(await recording(name));
      seen.settle();
      // The last turn delivered a body that quotes a line `To:state-hub: …`: none of it is sent.
      assert.deepEqual(seen.blocks, [A, B, ...E]);
      assert.deepEqual(seen.notices, []);
      assert.equal(seen.observer.status.reading().state, "ready");
      assert.equal(seen.observer.status.promptEmpty(), true);
    });
  });

  Deno.test(`[B-05] [B-06] resizes after a recorded ${agent} session add nothing`, async () => {
    await observing({ profile: agent, ...LAB }, async (seen) => {
      await seen.feed(await recording(name));
      seen.settle();
      for (const cols of [80, 57, 120]) {
        seen.observer.resize({ columns: cols, rows: 40 });
        seen.settle();
      }
      assert.equal(seen.blocks.length, 4);
    });
  });
}

Deno.test("[B-02] [B-06] codex, all cases in their own time: wraps, wide characters, resizes while it streams", async () => {
  await observing({ profile: "codex", ...LAB }, async (seen) => {
    await replay(seen, "codex-cases");
    // Its markdown ate the code fence, the emphasis and the list of the last ones.
    const F = { target: RP, body: "please rebase\nand run the tests" };
    const G = [A.target, NK].map((target, i) => ({
      target,
      body: ["please", "<tag> & init #1 x a_b_c 1. x | y"][i]!,
    }));
    const L = { target: RP, body: "list" };
    const first = [A, B, C, D, ...E, F, ...G, J, K, L, ...N, H, H];
    assert.deepEqual(seen.blocks, [...first, C, ...N, A, O, ...Q, A, A, STREAMED, B]);
    assert.deepEqual(seen.notices.map((notice) => notice.kind), ["ambiguous", "unknown_target"]);
  });
});

Deno.test("[B-02] [B-06] gemini, all cases in their own time: half-painted ghosts of a resize are not sent", async () => {
  await observing({ profile: "gemini", ...LAB }, async (seen) => {
    await replay(seen, "gemini-cases");
    const G = [A.target, NK].map((target, i) => ({
      target,
      body: ["please", "<tag> & __init__ #1 ~x~ a_b_c 1. x | y"][i]!,
    }));
    const L = {
      target: RP,
      body: `list\n - item ${Array(9).fill("alpha beta gamma").join(" ")}\n - second ${
        Array(9).fill("delta epsilon").join(" ")
      }`,
    };
    const first = [A, B, C, D, ...E, ...G, J, K, L, ...N, H, H];
    assert.deepEqual(seen.blocks, [...first, C, ...N, A, O, ...Q, A, A, STREAMED, B]);
    // The header right behind a full row, the unknown name, and the ghost.
    assert.deepEqual(
      seen.notices.map((notice) => notice.kind),
      ["ambiguous", "unknown_target", "ambiguous"],
    );
  });
});

Deno.test("[B-06] codex on the alternate screen: what cannot be told from a repaint is withheld with a notice", async () => {
  await observing({ profile: "codex", ...LAB }, async (seen) => {
    await replay(seen, "codex-alternate");
    // case-a and case-e were given twice; cases h and i were never painted whole.
    assert.deepEqual(seen.blocks, [A, B, ...E, D, C]);
    assert.deepEqual(seen.notices.map((notice) => notice.kind), [
      "alternate",
      "ambiguous",
      "ambiguous",
      "ambiguous",
    ]);
  });
});

Deno.test("[B-02] [B-06] claude, all cases in their own time", async () => {
  await observing({ profile: "claude", ...LAB }, async (seen) => {
    await replay(seen, "claude-cases");
    const F = { target: RP, body: "please rebase\nand run the tests" };
    const G = [
      { target: RP, body: "please" },
      { target: NK, body: "<tag> & init #1 ~x~ a_b_c 1. x | y" },
    ];
    const L = {
      target: RP,
      body: `list\n- item ${Array(9).fill("alpha beta gamma").join(" ")}\n- second ${
        Array(9).fill("delta epsilon").join(" ")
      }`,
    };
    const first = [A, B, C, D, ...E, F, ...G, J, K, L, ...N, O, ...Q];
    assert.deepEqual(seen.blocks, [...first, A, A, H, H, STREAMED]);
    assert.deepEqual(seen.notices.map((notice) => notice.kind), ["ambiguous", "unknown_target"]);
    assert.deepEqual(seen.answers, ["\x1b]7501;?\x1b\\"]);
    // The session ended with a draft of two rows in the operator's line.
    assert.deepEqual(seen.observer.status.reading(), { state: "ready", reason: "ready" });
    assert.equal(seen.observer.status.promptEmpty(), false);
    assert.equal(seen.observer.status.composerHolds("abc draft\nsecond line"), "whole");
  });
});

Deno.test("[B-06] opencode, which has only an alternate screen: what was painted whole comes through", async () => {
  await observing({ profile: "opencode", ...LAB }, async (seen) => {
    await replay(seen, "opencode-cases");
    const F = { target: RP, body: "please rebase\nand run the tests" };
    const G = [
      { target: RP, body: "please" },
      { target: NK, body: "<tag> & init #1 x a_b_c 1. x | y" },
    ];
    const L = { target: RP, body: "list" };
    // Its cells for joined emoji and its cuts of ideographs differ: white space is not compared.
    const bare = (blocks: readonly { target: string; body: string }[]) =>
      blocks.map(({ target, body }) => `${target}: ${body.replace(/\s/g, "")}`);
    const expected = [A, B, C, D, ...E, F, ...G, J, K, L, ...N, O, ...Q, A, STREAMED];
    assert.deepEqual(bare(seen.blocks), bare(expected));
    // The third and fourth case-a: one more stood on the screen than was known, one may be old.
    const kinds = seen.notices.map((notice) => notice.kind);
    assert.deepEqual(kinds, ["alternate", "ambiguous", "unknown_target", "ambiguous"]);
  });
});
