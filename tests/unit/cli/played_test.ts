/** What of a recording reaches the terminal on which it is played. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { PlayFilter } from "../../../lib/cli/played.ts";

const played = (...parts: string[]) => {
  const filter = new PlayFilter();
  return parts.map((part) => filter.feed(part)).join("");
};

Deno.test("[B-15] playing shows text, colours and cursor moves as they were", () => {
  for (
    const text of [
      "plain\r\n\ttext \u{1f600} \u00e9",
      "\x1b[1;38:2::1:2:3mred\x1b[0m\x1b[2;5Hx\x1b[K\x1b[?25l\x1b[?1049h\x1b[3 q\x1b[4;9r",
      "\x1b7\x1b8\x1bM\x1b(0lqk\x1b(B\x1b#8\x1b[2S\x1b[?2026h",
    ]
  ) {
    assert.equal(played(text), text);
    assert.equal(played(...text), text);
  }
  assert.equal(played("\x1b[?1000;25;2004h."), "\x1b[?25h.");
});

Deno.test("[B-15] nothing played sets clipboard or title or makes the terminal answer, however it is put together", () => {
  const hostile: Record<string, string> = {
    "a clipboard behind a question": "\x1b\x1b[6n]52;c;cHduZWQ=\x07",
    "a question within a question": "\x1b[6\x1b[6nn",
    "a question around a title": "\x1b[\x1b]0;x\x07[6n",
    "8-bit OSC": "\x9d52;c;cHduZWQ=\x9c",
    "8-bit CSI": "\x9b6n",
    "8-bit DCS": "\x90$qm\x9c",
    "a control within a question": "\x1b[6\x07n",
    "DEL within a question": "\x1b[6\x7fn",
    "tmux's title": "\x1bktitle\x1b\\",
    "answerback": "\x05",
    "checksum of a rectangle": "\x1b[1;1;1;1;1;1*y",
    "cursor information": "\x1b[1$w",
    "graphics attributes": "\x1b[?1;1;0S",
    "key options": "\x1b[?4m",
    "reports of size": "\x1b[?2048h",
    "media copy": "\x1b[5i",
  };
  for (const [name, text] of Object.entries(hostile)) {
    for (const parts of [[text], [...text]]) {
      // deno-lint-ignore no-control-regex
      const left = played(...parts).replace(/\x1b\[\?h|\x07/g, "");
      // deno-lint-ignore no-control-regex
      assert.ok(!/[\x00-\x1f\x7f-\x9f]/.test(left), `${name}: ${JSON.stringify(left)}`);
    }
  }
});

Deno.test("[B-15] what was played once passes a second time unchanged, in whatever pieces", () => {
  const piece = fc.constantFrom(
    ..."\x1b [ ] 5 6 n ; ? c \x07 \\ P $ q x \x9b \x9d k h \x18 \x1b[6n \x1b]0;x\x07 \x1b[1m".split(
      " ",
    ),
  );
  fc.assert(fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
    const once = played(...pieces);
    assert.equal(played(pieces.join("")), once);
    assert.equal(played(once), once);
    // deno-lint-ignore no-control-regex
    assert.ok(!/\x1b[\]P_^Xk]|\x1b\[[0-9;?]*[nc]|[\x80-\x9f]/.test(once), JSON.stringify(once));
  }));
});
