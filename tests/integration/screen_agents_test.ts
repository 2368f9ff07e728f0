/**
 * Fake agents on real terminals: that their traps are real, and that observer and status see what
 * the injection gate needs to see.
 */
import assert from "node:assert/strict";
import { AgentTerminal } from "../helpers/agent_terminal.ts";
import { withTempDir } from "../helpers/temp.ts";

const BODY =
  "From:alpha: please\nsecond line say<To:beta: 日本🙂\\nsecond of it\\n\\nProse.>\nthird line";

for (
  const [name, profile] of [["ink", "gemini"], ["chat", "gemini"], ["fullscreen", "codex"]] as const
) {
  Deno.test(`[B-06] [B-08] [B-09] ${name}: a body of three lines is one submission, its answer one block`, async () => {
    await withTempDir(async (dir) => {
      await using agent = await AgentTerminal.start(name, profile, dir);
      await agent.ready();
      await agent.until(() => agent.status.promptEmpty() === true, "an empty composer");
      agent.status.expectSubmission(BODY);
      await agent.paste(`${BODY} `);
      await agent.until(
        () => agent.status.composerHolds(BODY) === "whole",
        "the text in the composer",
      );
      assert.equal(agent.status.promptEmpty(), false);
      assert.deepEqual(agent.texts("submitted"), []);
      await agent.type("\r");
      await agent.until(() => agent.status.submissionSeen(BODY) !== "no", "the submission");
      await agent.until(() => agent.blocks.length > 0, "the block");
      assert.deepEqual(agent.texts("submitted"), [BODY]);
      assert.deepEqual(agent.blocks, [{ target: "beta", body: "日本🙂\nsecond of it" }]);
      await agent.ready();
      await agent.until(() => agent.status.promptEmpty() === true, "an empty composer");
      const frames = new TextDecoder().decode(agent.received()).split("\x1b[200~").length - 1;
      assert.equal(frames, 1);
    });
  });
}

Deno.test("[B-08] slow starter: what comes while it starts is gone, and it is not ready until then", async () => {
  await withTempDir(async (dir) => {
    await using agent = await AgentTerminal.start("slow_start", "gemini", dir, ["--start-ms=400"]);
    await agent.terminal.until("starting");
    assert.notEqual(agent.status.reading().state, "ready");
    await agent.paste("lost");
    await agent.type("\r");
    await agent.ready();
    await agent.paste("kept");
    await agent.until(() => agent.status.composerHolds("kept") === "whole", "the text");
    await agent.type("\r");
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["kept"]);
    // The bytes did arrive: it was the program that dropped them.
    assert.match(new TextDecoder().decode(agent.received()), /lost.*kept/s);
  });
});

Deno.test("[B-08] deaf to Enter: the text still stands in the composer, nothing is taken for submitted", async () => {
  await withTempDir(async (dir) => {
    const options = ["--swallow-enter=1", "--deaf-ms=0"];
    await using agent = await AgentTerminal.start("deaf_enter", "gemini", dir, options);
    await agent.ready();
    agent.status.expectSubmission("hello there");
    await agent.paste("hello there");
    await agent.until(() => agent.status.composerHolds("hello there") === "whole", "the text");
    await agent.type("\r");
    await agent.logged("swallowed");
    await agent.observer.drained();
    assert.equal(agent.status.composerHolds("hello there"), "whole");
    assert.equal(agent.status.submissionSeen("hello there"), "no");
    await agent.type("\r");
    await agent.until(() => agent.status.submissionSeen("hello there") !== "no", "the submission");
    assert.deepEqual(agent.texts("submitted"), ["hello there"]);
  });
});

Deno.test("[V-01] deaf to a fast Enter: it becomes a line break, nothing is submitted", async () => {
  await withTempDir(async (dir) => {
    // Far longer than 120 ms, so that a loaded machine cannot make the Enter a late one.
    const options = ["--swallow-enter=0", "--deaf-ms=60000"];
    await using agent = await AgentTerminal.start("deaf_enter", "gemini", dir, options);
    await agent.ready();
    await agent.type("\x1b[200~quick\x1b[201~\r");
    await agent.until(() => agent.status.promptEmpty() === false, "the text");
    await agent.observer.drained();
    assert.deepEqual(agent.texts("submitted"), []);
    assert.equal(agent.status.composerHolds("quick"), "whole");
  });
});

Deno.test("[B-08] dialog: blocked at once; paste is dropped, and an Enter would approve", async () => {
  await withTempDir(async (dir) => {
    await using agent = await AgentTerminal.start("dialog", "gemini", dir);
    await agent.until(() => agent.status.reading().state === "blocked", "the dialog");
    assert.equal(agent.status.dialogOpen(), true);
    assert.equal(agent.status.composerHolds("To be dropped"), "no");
    await agent.paste("To be dropped");
    await agent.type("\r");
    await agent.logged("approved"); // which is why the gate never writes here
    await agent.ready();
    assert.equal(agent.status.dialogOpen(), false);
    assert.deepEqual(agent.texts("submitted"), ["ask<touch pwn>"]);
  });
});

Deno.test("[B-08] busy: seen as busy while its spinner turns; Enter would interrupt it", async () => {
  await withTempDir(async (dir) => {
    await using agent = await AgentTerminal.start("busy", "gemini", dir);
    await agent.until(() => agent.status.reading().state === "busy", "busy");
    await agent.paste("now");
    await agent.type("\r");
    await agent.logged("interrupted");
    await agent.until(() => agent.status.reading().state === "ready", "ready again");
    assert.deepEqual(agent.texts("submitted").slice(1), ["now"]);
  });
});

Deno.test("[B-08] never echoing: the composer shows nothing, work tells the submission", async () => {
  await withTempDir(async (dir) => {
    await using agent = await AgentTerminal.start("silent", "gemini", dir);
    await agent.ready();
    agent.status.expectSubmission("hush");
    await agent.paste("hush");
    await agent.observer.drained();
    assert.equal(agent.status.composerHolds("hush"), "no");
    await agent.type("\r");
    await agent.until(() => agent.status.submissionSeen("hush") === "working", "work");
    assert.deepEqual(agent.texts("submitted"), ["hush"]);
  });
});

Deno.test("[V-01] canonical reader: the kernel cuts a line at 4095 bytes", async () => {
  await withTempDir(async (dir) => {
    await using agent = await AgentTerminal.start("canonical", "", dir);
    await agent.terminal.until("canonical reader");
    await agent.type("x".repeat(6000) + "\nsay<heard>\n");
    await agent.logged("submitted", 2);
    assert.deepEqual(agent.texts("submitted").map(({ length }) => length), [4095, 10]);
  });
});

Deno.test("[V-01] readline: without paste mode three lines are three submissions", async () => {
  await withTempDir(async (dir) => {
    await using agent = await AgentTerminal.start("readline", "", dir);
    await agent.terminal.until("repl> ");
    await agent.type("one\rtwo\rsay<three>\r");
    await agent.logged("submitted", 3);
    assert.deepEqual(agent.texts("submitted"), ["one", "two", "say<three>"]);
  });
});
