/** Status of an agent (B-08): what the injection gate may rely on. */
import assert from "node:assert/strict";
import { observing, recording } from "../helpers/observe.ts";
import { Painter } from "../helpers/painter.ts";

Deno.test("[B-08] ready needs the report and the screen; busy or blocked from any one source wins", async () => {
  await observing({ profile: "codex" }, async (seen) => {
    const { status } = seen.observer;
    const is = (state: string, reason: string) =>
      assert.deepEqual(status.reading(), { state, reason });
    const agent = new Painter("codex");
    is("unknown", "no_report");
    await seen.feed(agent.state("idle"));
    is("unknown", "no_prompt_row");
    await seen.feed(agent.frame([], []));
    is("ready", "ready");
    await seen.feed("\x1b]0;⠋ proj\x07");
    is("busy", "title_busy");
    await seen.feed("\x1b]0;proj\x07");
    is("ready", "ready");
    await seen.feed(agent.state("working"));
    is("busy", "reported_working");
    await seen.feed(agent.state("blocked"));
    is("blocked", "reported_blocked");
    await seen.feed(agent.state("done") + agent.frame([], ["• Working (3s • esc to interrupt)"]));
    is("busy", "screen_busy");
    await seen.feed(agent.frame([], ["› 1. Yes, proceed (y)", "  Press enter to confirm or esc"]));
    is("blocked", "screen_dialog");
    assert.equal(status.dialogOpen(), true);
    await seen.feed(agent.frame([], []) + "\x1b]0;[ ! ] Action Required\x07");
    is("blocked", "title_dialog");
  });
});

Deno.test("[B-08] within a synchronised frame, or with output unread, nothing is ready and a dialog may be open", async () => {
  await observing({ profile: "codex" }, async (seen) => {
    const { status } = seen.observer;
    const agent = new Painter("codex");
    await seen.feed(agent.start());
    assert.equal(status.dialogOpen(), false);
    await seen.feed("\x1b[?2026h");
    assert.deepEqual(status.reading(), { state: "unknown", reason: "screen_unsettled" });
    assert.equal(status.dialogOpen(), true);
    assert.equal(status.promptEmpty(), undefined);
    await seen.feed("\x1b[?2026l");
    assert.equal(status.reading().state, "ready");
    seen.observer.push(new TextEncoder().encode("x"));
    assert.equal(status.reading().state, "unknown");
    await seen.observer.drained();
    // A frame that is never closed does not stop observation for ever.
    await seen.feed("\x1b[?2026h");
    assert.equal(seen.observer.settled, false);
    seen.clock.advance(1100);
    assert.equal(seen.observer.settled, true);
  });
});

Deno.test("[B-08] a busy sign in the agent's own words, or in a ghost above them, is none", async () => {
  await observing({ profile: "gemini" }, async (seen) => {
    const agent = new Painter("gemini");
    await seen.feed(agent.start());
    const rows = [
      " ⠏ Thinking (esc to cancel, 3s)",
      "",
      ...agent.replyRows("It says (esc to cancel, 4s)"),
    ];
    await seen.feed(agent.frame(rows, []));
    assert.equal(seen.observer.status.reading().state, "ready");
    await seen.feed(agent.frame([], [" ⠏ Thinking (esc to cancel, 3s)"]));
    assert.deepEqual(seen.observer.status.reading(), { state: "busy", reason: "screen_busy" });
  });
});

for (const look of ["gemini", "codex"] as const) {
  Deno.test(`[B-08] the operator's line: empty, half typed, several rows (${look})`, async () => {
    await observing({ profile: look }, async (seen) => {
      const { status } = seen.observer;
      const agent = new Painter(look);
      assert.equal(status.promptEmpty(), undefined);
      await seen.feed(agent.start());
      assert.equal(status.promptEmpty(), true);
      await seen.feed(agent.frame([], [], "abc"));
      assert.equal(status.promptEmpty(), false);
      const indent = look === "codex" ? "  " : "   ";
      await seen.feed(agent.frame([], [], `\r\n${indent}second row only`));
      assert.equal(status.promptEmpty(), false);
    });
  });

  Deno.test(`[B-08] [B-09] an injected text is seen in the operator's line, then as submitted (${look})`, async () => {
    await observing({ profile: look }, async (seen) => {
      const { status } = seen.observer;
      const agent = new Painter(look);
      const text =
        "From:alpha: please rebase onto main and tell me what the tests say about it, all of it";
      const [echo, rest] = look === "codex" ? ["› ", "  "] : [" > ", "   "];
      const rows = agent.echoRows(text).filter((row) => row !== "");
      const inComposer = rows.map((row, i) => row.slice(i === 0 ? echo.length : rest.length))
        .join(`\r\n${rest}`);
      await seen.feed(agent.start() + agent.turn(text, "Done once already."));
      seen.clock.advance(3000);
      status.expectSubmission(text);
      assert.equal(status.submissionSeen(text), "no", "the earlier echo does not count");
      assert.equal(status.composerHolds(text), "no");
      await seen.feed(agent.frame([], [], inComposer));
      assert.equal(status.composerHolds(text), "whole");
      assert.equal(status.composerHolds(text + " and more of a text that scrolled away"), "part");
      assert.equal(status.submissionSeen(text), "no");
      await seen.feed(agent.frame([], [], ""));
      assert.equal(status.submissionSeen(text), "emptied");
      await seen.feed(agent.state("working"));
      assert.equal(status.submissionSeen(text), "working");
      await seen.feed(agent.begin(text));
      assert.equal(status.submissionSeen(text), "echo");
      assert.equal(status.submissionSeen("something else"), "no");
    });
  });
}

Deno.test("[B-09] a long paste's placeholder and a queued text are recognised", async () => {
  await observing({ profile: "codex" }, async (seen) => {
    const { status } = seen.observer;
    const agent = new Painter("codex");
    const text = "From:alpha: " + "long ".repeat(400);
    await seen.feed(agent.start());
    status.expectSubmission(text);
    await seen.feed(agent.frame([], [], "[Pasted Content 2012 chars]"));
    assert.equal(status.composerHolds(text), "placeholder");
    const queued = ["• Queued follow-up inputs", "  ↳ From:alpha: long long long long long…", ""];
    await seen.feed(agent.frame([], queued));
    assert.equal(status.submissionSeen(text), "queued");
  });
});

Deno.test("[B-08] opencode: framed composer, its dialog, its start screen", async () => {
  await observing({ profile: "opencode" }, async (seen) => {
    const { status } = seen.observer;
    const paint = (...rows: string[]) => seen.feed(`\x1b[?1049h\x1b[2J\x1b[H${rows.join("\r\n")}`);
    const bar = `  ╹${"▀".repeat(70)}`;
    const said = [
      "  ┃",
      "  ┃  From:a: hello",
      "  ┃",
      "",
      "     Fine.",
      "",
      "     ▣  Build · Mock",
      "",
    ];
    await paint(
      "",
      "      ┃",
      '      ┃  Ask anything… "x"',
      "      ┃",
      "      ┃  Build · Mock Mock",
      bar,
    );
    assert.deepEqual(status.reading(), { state: "ready", reason: "ready" });
    assert.equal(status.promptEmpty(), true);
    await paint(
      ...said,
      "  ┃",
      "  ┃",
      "  ┃",
      "  ┃  Build · Mock Mock",
      bar,
      "   20  ctrl+p commands",
    );
    assert.equal(status.reading().state, "ready");
    assert.equal(status.promptEmpty(), true);
    await paint(...said, "  ┃", "  ┃  half typed", "  ┃", "  ┃  Build · Mock Mock", bar);
    assert.equal(status.promptEmpty(), false);
    assert.equal(status.composerHolds("half typed"), "whole");
    await paint(
      ...said,
      "  ┃",
      "  ┃  △ Permission required",
      "  ┃",
      "  ┃   Allow once   Reject",
      "  ┃",
    );
    assert.deepEqual(status.reading(), { state: "blocked", reason: "screen_dialog" });
    await paint(...said, "  ┃", "  ┃", "  ┃  Build · Mock Mock", bar, "   ⬝⬝⬝⬝ esc interrupt");
    assert.deepEqual(status.reading(), { state: "busy", reason: "screen_busy" });
  });
});

Deno.test("[B-08] recorded sessions: never ready while at work, ready at the end, title and turns followed", async () => {
  for (const [agent, name] of [["codex", "codex-inline"], ["gemini", "gemini"]] as const) {
    await observing({
      profile: agent,
      size: { columns: 100, rows: 40 },
      names: ["railiance-platform"],
    }, async (seen) => {
      const bytes = await recording(name);
      const { status } = seen.observer;
      // Gemini says it by its title, Codex by its reports.
      const sign = agent === "codex" ? "\x1b]7501;state=working" : "\x1b]0;✦";
      const text = new TextDecoder("latin1").decode(bytes);
      const working = new TextDecoder("latin1").decode(new TextEncoder().encode(sign));
      let at = 0;
      let count = 0;
      for (let next = text.indexOf(working); next >= 0; next = text.indexOf(working, next + 1)) {
        const end = next + working.length + 120; // behind the sequence
        await seen.feed(bytes.subarray(at, end));
        at = end;
        count++;
        assert.equal(status.reading().state, "busy");
      }
      await seen.feed(bytes.subarray(at));
      seen.settle();
      assert.equal(count >= 5, true);
      assert.equal(status.turns, count);
      assert.deepEqual(status.reading(), { state: "ready", reason: "ready" });
    });
  }
});
