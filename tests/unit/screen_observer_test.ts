/** The screen observer on painted screens: what is sent, what is withheld, what bounds it. */
import assert from "node:assert/strict";
import { parseProfile } from "../../lib/pty/profiles/schema.ts";
import { observing } from "../helpers/observe.ts";
import { type Look, Painter } from "../helpers/painter.ts";

const LOOKS: readonly Look[] = ["gemini", "codex"];

for (const look of LOOKS) {
  const test = (name: string, body: () => Promise<void>) => Deno.test(`${name} (${look})`, body);

  test("[B-06] printed once, repainted five times, resized: one message", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      await seen.feed(agent.turn("please", "To:beta: rebase\non main"));
      seen.settle();
      for (let i = 0; i < 5; i++) {
        await seen.feed(i % 2 === 0 ? agent.repaint() : agent.reprint());
        seen.settle();
      }
      for (const cols of [60, 100]) {
        agent.cols = cols;
        seen.observer.resize({ columns: cols, rows: 24 });
        await seen.feed(agent.reprint());
        seen.settle();
      }
      // The next turn must not bring the old ones up again either.
      await seen.feed(agent.turn("and now?", "Nothing to tell.") + agent.reprint());
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "rebase\non main" }]);
      assert.deepEqual(seen.notices, []);
    });
  });

  test("[B-05] a received body that quotes an address makes no message", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      const body = "From:alpha: look\nTo:c: x\n\nTo:c: y\n• To:c: z\n✦ To:c: z\n> To:c: x";
      await seen.feed(agent.turn(body, "Understood."));
      seen.settle();
      assert.deepEqual(seen.blocks, []);
    });
  });

  test("[B-06] To:b: 日本🙂, one byte a write: exact", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      const bytes = new TextEncoder().encode(agent.start() + agent.turn("say", "To:b: 日本🙂"));
      for (const byte of bytes) seen.observer.push(new Uint8Array([byte]));
      await seen.observer.drained();
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "b", body: "日本🙂" }]);
    });
  });

  test("[B-06] 300 characters at 80 columns: whole, and the writer's own line breaks kept", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      const long = Array.from({ length: 60 }, (_, i) => `w${i % 10}xx`).join(" ");
      assert.ok(long.length >= 299);
      await seen.feed(agent.start());
      await seen.feed(agent.turn("say", `To:beta: ${long}\nshort\n${long}`));
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: `${long}\nshort\n${long}` }]);
    });
  });

  test("[B-06] the same answer to the same text, twice: two messages", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      for (let i = 1; i <= 3; i++) {
        await seen.feed(agent.turn("status?", "To:beta: all well"));
        seen.settle();
        assert.equal(seen.blocks.length, i);
      }
    });
  });

  test("[B-06] … also when the first has left the scrollback meanwhile", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      await seen.feed(agent.turn("status?", "To:beta: all well"));
      seen.settle();
      const prose = Array(120).fill("prose").join("\n\n");
      for (let i = 0; i < 12; i++) {
        await seen.feed(agent.turn(`tell ${i}`, prose));
        seen.settle();
      }
      await seen.feed(agent.turn("status?", "To:beta: all well"));
      seen.settle();
      assert.equal(seen.blocks.length, 2);
    });
  });

  test("[B-02] a block that a later item has closed is sent while the agent still works", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      await seen.feed(agent.begin("go") + agent.item("To:beta: I begin"));
      seen.clock.advance(5000);
      assert.deepEqual(seen.blocks, [], "its item is the last one: it might grow");
      await seen.feed(agent.item("Now the tests."));
      seen.clock.advance(5000);
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "I begin" }]);
      await seen.feed(agent.finish("To:beta: done"));
      seen.settle();
      assert.deepEqual(seen.blocks.map(({ body }) => body), ["I begin", "done"]);
    });
  });

  test("[B-02] [B-06] a half-painted answer is not sent, a late last row still is", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      await seen.feed(agent.begin("go") + agent.partial("To:beta: half of"));
      seen.clock.advance(10_000);
      assert.deepEqual(seen.blocks, []);
      // On a loaded machine the state is told well before the rows are painted.
      await seen.feed(agent.state("done"));
      await seen.feed(agent.frame([], []));
      seen.clock.advance(800);
      await seen.feed(agent.frame(agent.replyRows("To:beta: half of it, and the rest"), []));
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "half of it, and the rest" }]);
    });
  });

  test("[B-06] rows that follow the report of the end at once are waited for", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      await seen.feed(agent.begin("go") + agent.frame([], agent.replyRows("To:beta: first half")));
      await seen.feed(agent.state("done"));
      for (let i = 0; i < 3; i++) {
        seen.clock.advance(60);
        await seen.feed("\x1b[?25h"); // a cursor blinks meanwhile
      }
      await seen.feed(agent.frame(agent.replyRows("To:beta: first half, second half"), []));
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "first half, second half" }]);
    });
  });

  test("[B-06] a busy machine that reads late loses nothing of a turn that ended long ago", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      await seen.feed(agent.begin("go") + agent.finish("To:beta: hello"));
      seen.observer.push(new TextEncoder().encode(agent.repaint()));
      seen.clock.advance(5000); // and nothing was read in all that time
      await seen.observer.drained();
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "hello" }]);
    });
  });

  test("[B-05] an operator's half-typed address and a transcript from before are not sent", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      // A resumed session prints its old transcript before it does anything.
      const old = [...agent.echoRows("old"), ...agent.replyRows("To:beta: old news")];
      await seen.feed(agent.state("idle") + agent.frame(old, []));
      seen.settle();
      await seen.feed(agent.frame([], [], "To:beta: hel"));
      seen.settle();
      await seen.feed(agent.turn("go", "Fine."));
      seen.settle();
      assert.deepEqual(seen.blocks, []);
      assert.deepEqual(seen.notices, []);
    });
  });

  test("[T-08] [E-07] an over-long body and an unknown name are refused with a notice", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      const answer = `To:beta: ${"word ".repeat(1700)}end\n\nTo:betta: hi`;
      await seen.feed(agent.begin("go") + agent.finish(answer));
      seen.settle();
      assert.deepEqual(seen.blocks, []);
      assert.deepEqual(seen.notices, [
        { kind: "body", target: "beta", reason: "body_too_large" },
        { kind: "unknown_target", target: "betta", reason: "unknown_target" },
      ]);
    });
  });

  test("[B-06] an answer that outgrows the screen leaves a ghost of itself: sent once, whole", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      const long = Array.from({ length: 60 }, (_, i) => `line ${i}`).join("\n");
      await seen.feed(agent.start() + agent.turn("go", `To:beta: ${long}`));
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: long }]);
      assert.deepEqual(seen.notices.map(({ kind }) => kind), ["ambiguous"]);
    });
  });

  test("[B-06] … nor is the ghost sent while the agent still works", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start() + agent.begin("go"));
      seen.settle();
      const long = (lines: number) =>
        `To:beta: ${Array.from({ length: lines }, (_, i) => `line ${i}`).join("\n")}`;
      await seen.feed(agent.partial(long(30)) + agent.partial(long(40)));
      seen.clock.advance(5000);
      assert.deepEqual(seen.blocks, []);
      // After a resize the later copy may even be the shorter one.
      await seen.feed(agent.partial(long(3)));
      seen.observer.resize({ columns: 70, rows: 24 });
      await seen.observer.drained();
      seen.clock.advance(5000);
      assert.deepEqual(seen.blocks, []);
    });
  });

  test("[B-12] a worker that exits closes its last block", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      await seen.feed(agent.begin("go") + agent.finish("To:beta: bye"));
      await seen.observer.end();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "bye" }]);
      seen.observer.push(new Uint8Array([65])); // nothing is read any more
      assert.equal(seen.clock.timers, 0);
    });
  });

  test("[B-06] an answer that repeats a piece of what the operator typed is an answer", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.echoes.expect(["please write To:beta: hi"], seen.clock.monotonic());
      await seen.feed(agent.turn("please write To:beta: hi", "To:beta: hi"));
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "hi" }]);
    });
  });

  test("[B-06] output that the model cannot follow: nothing that spans it is sent, the next turn is", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      const answer = agent.replyRows("To:beta: begin\nof a body");
      await seen.feed(agent.begin("go") + agent.frame(answer.slice(0, 1), []));
      await seen.feed("\x1b[2147483647T");
      await seen.feed(agent.frame(answer.slice(1), []) + agent.state("done"));
      seen.settle();
      assert.deepEqual(seen.blocks, []);
      assert.deepEqual(seen.notices.map(({ kind }) => kind), ["gap"]);
      await seen.feed(agent.reprint());
      seen.clock.advance(3000);
      await seen.feed(agent.turn("next", "To:beta: after it"));
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "after it" }]);
    });
  });

  test("[B-06] a flood is dropped: nothing that spans the gap is sent, the next turn is", async () => {
    await observing({ profile: look }, async (seen) => {
      const agent = new Painter(look);
      await seen.feed(agent.start());
      seen.settle();
      const answer = agent.replyRows("To:beta: begin\nof a body");
      await seen.feed(agent.begin("go") + agent.frame(answer.slice(0, 1), []));
      const noise = new TextEncoder().encode("noise noise noise\r\n".repeat(3500));
      for (let i = 0; i < 60; i++) seen.observer.push(noise);
      assert.equal(seen.observer.flooded, true);
      assert.equal(seen.observer.status.reading().state, "busy");
      seen.observer.push(new TextEncoder().encode(agent.state("done")));
      await seen.observer.drained();
      seen.clock.advance(200);
      await seen.feed(agent.frame(answer.slice(1), []));
      seen.settle();
      assert.deepEqual(seen.blocks, []);
      assert.deepEqual(seen.notices.map(({ kind }) => kind), ["gap"]);
      await seen.feed(agent.reprint());
      seen.clock.advance(3000);
      await seen.feed(agent.turn("next", "To:beta: after the gap"));
      seen.settle();
      assert.deepEqual(seen.blocks, [{ target: "beta", body: "after the gap" }]);
      assert.equal(seen.observer.status.reading().state, "ready");
    });
  });
}

Deno.test("[B-05] without any marks, what was typed or injected and comes back is not sent", async () => {
  const bare = parseProfile(`name = "bare"\nmatch = ["bare"]`, "bare");
  await observing({ profile: bare }, async (seen) => {
    await seen.feed("hello\r\n");
    seen.settle();
    seen.echoes.expect(["To:beta: typed"], seen.clock.monotonic());
    await seen.feed("To:beta: typed\r\n\r\nTo:beta: my own\r\nsecond line\r\n\r\n> ");
    seen.settle();
    assert.deepEqual(seen.blocks, [{ target: "beta", body: "my own\nsecond line" }]);
  });
});

Deno.test("[B-06] dim rows are thoughts or hints, not words of a reply", async () => {
  await observing({ profile: "codex" }, async (seen) => {
    const agent = new Painter("codex");
    await seen.feed(agent.start() + agent.begin("go"));
    const rows = ["\x1b[2m• \x1b[22m\x1b[2mTo:beta: perhaps I should say\x1b[22m", ""];
    await seen.feed(agent.frame(rows, []) + agent.finish("\x1b[2m\x1b[22mTo:beta: said"));
    seen.settle();
    assert.deepEqual(seen.blocks, [{ target: "beta", body: "said" }]);
  });
});

Deno.test("[B-06] output of a tool is nobody's message", async () => {
  await observing({ profile: "codex" }, async (seen) => {
    const agent = new Painter("codex");
    await seen.feed(agent.start() + agent.begin("go"));
    const rows = [
      "• Ran cat NOTES",
      "  │ To:beta: in the command",
      "  └ To:beta: in the output",
      "    To:beta: further output",
      "  To:beta: and still",
      "",
      "  To:beta: below an empty row",
      "",
      "• Queued follow-up inputs",
      "  ↳ From:alpha: x",
      "    To:beta: of a queued text",
      "",
    ];
    await seen.feed(agent.frame(rows, []) + agent.finish("Done."));
    seen.settle();
    assert.deepEqual(seen.blocks, []);
  });
  await observing({ profile: "gemini" }, async (seen) => {
    const agent = new Painter("gemini");
    await seen.feed(agent.start() + agent.begin("go") + agent.item("I look."));
    const box = ["╭────────╮", "│ To:beta: in the box │", "╰────────╯", "  To:beta: below", ""];
    await seen.feed(agent.frame(box, []) + agent.finish("Done."));
    seen.settle();
    assert.deepEqual(seen.blocks, []);
  });
});

Deno.test("[B-06] only the profile's program is told that status reports are understood", async () => {
  await observing({ profile: "claude" }, async (seen) => {
    // Answered before `push` returns, also when it is cut: the agent gives it no more time.
    seen.observer.push(new TextEncoder().encode("x\x1b]75"));
    seen.observer.push(new TextEncoder().encode("01;?\x07\x1b[c"));
    assert.deepEqual(seen.answers, ["\x1b]7501;?\x1b\\"]);
    await seen.observer.drained();
    assert.equal(seen.answers.length, 1);
  });
  await observing({ profile: "gemini" }, async (seen) => {
    await seen.feed("\x1b]7501;?\x07\x1b]7501;state=working:app=x\x07");
    assert.deepEqual(seen.answers, []);
    assert.equal(seen.observer.status.reported, undefined);
  });
});

Deno.test("[B-06] a screen that is cleared and shows an old block anew: withheld with a notice", async () => {
  await observing({ profile: "gemini" }, async (seen) => {
    const agent = new Painter("gemini");
    await seen.feed(agent.start() + agent.turn("status?", "To:beta: all well"));
    seen.settle();
    agent.transcript.length = 0;
    await seen.feed(agent.reprint()); // as after /clear
    seen.clock.advance(3000);
    await seen.feed(agent.turn("status?", "To:beta: all well"));
    seen.settle();
    assert.equal(seen.blocks.length, 1);
    assert.deepEqual(seen.notices, [
      { kind: "ambiguous", target: "beta", reason: "observation_ambiguous" },
    ]);
  });
});

Deno.test("[B-06] on the alternate screen a block that a frame cuts off is withheld", async () => {
  await observing({ profile: "codex" }, async (seen) => {
    const agent = new Painter("codex");
    const paint = (rows: string[]) => `\x1b[2J\x1b[H${rows.join("\r\n")}`;
    const foot = ["\u2500".repeat(80), "› ", ""];
    await seen.feed("\x1b[?1049h" + agent.state("idle") + paint(["", ...foot]));
    seen.settle();
    await seen.feed(agent.state("working"));
    await seen.feed(paint(["› go", "", "• To:beta: cut", ...foot]) + agent.state("done"));
    seen.settle();
    assert.deepEqual(seen.blocks, []);
    assert.deepEqual(seen.notices.map(({ kind }) => kind), ["alternate", "ambiguous"]);
  });
});

Deno.test("[B-06] a framed user text that scrolls out at the top makes no old block new", async () => {
  await observing({ profile: "opencode" }, async (seen) => {
    const bar = `  ╹${"▀".repeat(60)}`;
    const foot = ["  ┃", "  ┃", "  ┃  Build · Mock Mock", bar];
    const turn = (
      text: string,
      answer: string,
    ) => ["  ┃", `  ┃  ${text}`, "  ┃  second row", "  ┃", "", `     ${answer}`, ""];
    const screen = [...turn("one", "To:beta: first"), ...turn("two", "To:beta: second")];
    const paint = (rows: string[], busy = false) =>
      seen.feed(
        `\x1b[?1049h\x1b[2J\x1b[H${
          ["", ...rows, ...foot, busy ? "  esc interrupt" : ""].join("\r\n")
        }`,
      );
    const shown = async (rows: string[]) => {
      await paint(rows, true);
      seen.clock.advance(100);
      await paint(rows);
      seen.settle();
    };
    await shown(turn("zero", "Hello."));
    await shown([...turn("zero", "Hello."), ...turn("one", "To:beta: first")]);
    // Row by row the top scrolls out, each time behind a turn.
    for (let i = 0; i < 12; i++) await shown(screen.slice(i));
    assert.deepEqual(seen.blocks.map(({ body }) => body), ["first", "second"]);
  });
});

async function pass(bytes: number): Promise<number> {
  let grown = 0;
  await observing({ profile: "codex" }, async (seen) => {
    const agent = new Painter("codex");
    await seen.feed(agent.start() + agent.turn("warm", "To:beta: up"));
    seen.settle();
    const row = "\x1b[32mbuild\x1b[0m step with a path /usr/lib/x and 日本 words\r\n";
    const chunk = new TextEncoder().encode(row.repeat(Math.ceil(65_536 / row.length)));
    // Of this thread alone: other files' tests run in the same process.
    const used = () => {
      const { heapUsed, external } = Deno.memoryUsage();
      return heapUsed + external;
    };
    const before = used();
    for (let sent = 0, i = 0; sent < bytes; sent += chunk.length, i++) {
      seen.observer.push(chunk);
      // Now and then a pause, so that it is read, reset and overflows again.
      if (i % 64 !== 0) continue;
      await seen.observer.drained();
      seen.clock.advance(1);
      grown = Math.max(grown, used() - before);
    }
    await seen.observer.drained();
    seen.clock.advance(500);
    await seen.feed(agent.reprint());
    seen.clock.advance(3000);
    await seen.feed(agent.turn("next", "To:beta: still here"));
    seen.settle();
    assert.deepEqual(seen.blocks.map(({ body }) => body), ["up", "still here"]);
  });
  return grown;
}

Deno.test("[B-06] memory stays bounded while 200 MB pass", async () => {
  const grown = await pass(200e6);
  assert.ok(grown < 40e6, `${Math.round(grown / 1e6)} MB`);
});

Deno.test("[B-06] while output goes on at rest the transcript is read twice a second, and at once when it pauses", async () => {
  let reads = 0;
  const options = {
    profile: "codex",
    get names() {
      reads++;
      return ["beta"];
    },
  };
  await observing(options, async (seen) => {
    const agent = new Painter("codex");
    await seen.feed(agent.start() + agent.turn("go", "To:beta: up"));
    seen.settle();
    assert.equal(seen.blocks.length, 1);
    reads = 0;
    for (let ms = 0; ms < 3000; ms += 20) {
      await seen.feed("\x1b7\x1b[1;70Hclock\x1b8");
      seen.clock.advance(20);
    }
    assert.ok(reads >= 5 && reads <= 7, `${reads} reads`);
    reads = 0;
    seen.clock.advance(200);
    assert.equal(reads, 1);
  });
});
