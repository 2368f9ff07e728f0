/**
 * Messages into agents' terminals through the real broker: what the agent's own log of bytes and
 * submissions says, and what the broker reports.
 */
import assert from "node:assert/strict";
import { outcome, withAgent } from "../helpers/agent_broker.ts";

/** Pieces of a text between paste frames: what reached the agent as keys. */
// deno-lint-ignore no-control-regex
const FRAME = /\x1b\[200~([^]*?)\x1b\[201~/g;
const pastes = (received: string) => [...received.matchAll(FRAME)].map(([, text]) => text!);
const keys = (received: string) => received.replace(FRAME, "\0").split("\0");
const frames = (received: string) => received.split("\x1b[200~").length - 1;
const BODY = "please\nsecond line say<To:beta: 日本🙂\\nsecond of it\\n\\nTo nobody.>\nTo:gamma: x";
const SHOWN =
  "From:beta: please\nsecond line say<To.:beta: 日本🙂\\nsecond of it\\n\\nTo nobody.>\n> To.:gamma: x";

for (
  const [fake, profile] of [["ink", "gemini"], ["chat", "gemini"], ["fullscreen", "codex"]] as const
) {
  Deno.test(`[B-05][B-06][B-08][B-09] ${fake}: three lines are one submission, seen; the answer is one message`, () =>
    withAgent({ fake, profile }, async ({ service, texts, received, logged }) => {
      const settled = await service.deliver(BODY);
      assert.deepEqual(outcome(settled)[0], "written");
      assert.match(String(outcome(settled)[1]), /^confirmed: (echo|working)$/);
      await logged("answered");
      await service.when(() => service.sends.length > 0);
      assert.deepEqual(texts("submitted"), [SHOWN]);
      assert.equal(frames(received()), 1);
      assert.deepEqual(keys(received()), ["", "\r"]);
      assert.deepEqual(service.sends.map(({ target_repo, body }) => [target_repo, body]), [
        ["beta", "日本🙂\nsecond of it"],
      ]);
    }));
}

Deno.test("[B-09] an agent that takes a fast Enter for a line break gets exactly one submission", () =>
  withAgent(
    { fake: "deaf_enter", options: ["--deaf-ms=120", "--swallow-enter=0"] },
    async (agent) => {
      assert.equal(outcome(await agent.service.deliver("one\ntwo"))[0], "written");
      await agent.logged("submitted");
      assert.deepEqual(agent.texts("submitted"), ["From:beta: one\ntwo"]);
    },
  ));

Deno.test("[B-08] a swallowed Enter is noticed: one more, never the body again", () =>
  withAgent(
    { fake: "deaf_enter", options: ["--deaf-ms=0", "--swallow-enter=1"] },
    async (agent) => {
      const [result, reason] = outcome(await agent.service.deliver("hello there"));
      assert.equal(result, "written");
      assert.match(String(reason), /^confirmed: \w+, second key$/);
      await agent.logged("submitted");
      assert.deepEqual(agent.texts("submitted"), ["From:beta: hello there"]);
      assert.equal(frames(agent.received()), 1);
    },
  ));

Deno.test("[B-08] Enter swallowed for good is not reported as submitted; the next attempt writes no second body", () =>
  withAgent(
    { fake: "deaf_enter", options: ["--deaf-ms=0", "--swallow-enter=2"] },
    async (agent) => {
      const { service } = agent;
      assert.deepEqual(outcome(await service.deliver("hello there", { message_id: "m1" })), [
        "failed",
        "not_submitted",
      ]);
      assert.deepEqual(agent.texts("submitted"), []);
      const again = await service.deliver("hello there", { message_id: "m1" });
      assert.equal(outcome(again)[0], "written");
      await agent.logged("submitted");
      assert.deepEqual(agent.texts("submitted"), ["From:beta: hello there"]);
      assert.equal(frames(agent.received()), 1);
    },
  ));

Deno.test("[B-08] a text that the operator submitted after a failed attempt is not sent again", () =>
  withAgent(
    { fake: "deaf_enter", options: ["--deaf-ms=0", "--swallow-enter=2"] },
    async (agent) => {
      const { service, terminal } = agent;
      await service.deliver("hello there", { message_id: "m1" });
      await terminal.type("\r");
      await agent.logged("answered");
      await agent.gate("");
      const again = await service.deliver("hello there", { message_id: "m1" });
      assert.match(String(outcome(again)[1]), /^confirmed: echo, submitted by the operator$/);
      await agent.logged("submitted");
      assert.deepEqual(agent.texts("submitted"), ["From:beta: hello there"]);
    },
  ));

Deno.test("[B-08] while a dialog asks, where Enter means yes, not a byte is written", () =>
  withAgent({ fake: "dialog" }, async (agent) => {
    await agent.gate("dialog_open");
    const delivery = agent.service.deliver("hello");
    assert.equal(agent.received(), "");
    await agent.terminal.type("n");
    assert.equal(outcome(await delivery)[0], "written");
    assert.deepEqual(agent.texts("approved"), []);
    assert.deepEqual(agent.texts("denied"), ["touch pwn"]);
    assert.deepEqual(agent.texts("submitted").at(-1), "From:beta: hello");
  }));

Deno.test("[B-08] the Escape key alone is a key, not the beginning of something: messages go on", () =>
  withAgent({ fake: "dialog" }, async (agent) => {
    await agent.gate("dialog_open");
    await agent.terminal.type("\x1b");
    assert.equal(outcome(await agent.service.deliver("hello"))[0], "written");
    assert.deepEqual(agent.texts("denied"), ["touch pwn"]);
    assert.deepEqual(agent.texts("approved"), []);
  }));

Deno.test("[B-08] a half-typed line keeps messages away and stays as it is", () =>
  withAgent({ fake: "chat" }, async (agent) => {
    const { service, terminal } = agent;
    await agent.gate("");
    await terminal.type("abc");
    await agent.gate("operator_typing");
    // The service looked before the key came.
    const late = await service.deliverNow("hello");
    assert.deepEqual(outcome(late), ["failed", "operator_typing"]);
    assert.equal(agent.received(), "abc");
    await terminal.type("d\r");
    await agent.logged("submitted");
    const settled = await service.deliver("hello");
    assert.equal(outcome(settled)[0], "written");
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["abcd", "From:beta: hello"]);
  }));

Deno.test("[B-08] a line that only the screen shows keeps messages away as well", () =>
  withAgent({ fake: "chat" }, async (agent) => {
    await agent.gate("");
    // Cursor keys: what they do to the line is not known from the keys.
    await agent.terminal.type("ab\x1b[D\x7f\x1b[C");
    await agent.gate("operator_typing");
    await agent.terminal.type("\x15");
    assert.equal(outcome(await agent.service.deliver("hello"))[0], "written");
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["From:beta: hello"]);
  }));

Deno.test("[B-08] a slow starter that discards input gets the message once, later", () =>
  withAgent({ fake: "slow_start", options: ["--start-ms=2000"] }, async (agent) => {
    assert.equal(outcome(await agent.service.deliver("hello"))[0], "written");
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["From:beta: hello"]);
    assert.deepEqual(keys(agent.received()), ["", "\r"]);
  }));

Deno.test("[B-08][T-13] a busy agent is left alone: no key reaches it, ESC above all", () =>
  withAgent({ fake: "chat", options: ["--first=work<1500>"] }, async (agent) => {
    await agent.gate("agent_busy");
    assert.equal(agent.received(), "");
    assert.equal(outcome(await agent.service.deliver("hello"))[0], "written");
    assert.deepEqual(agent.texts("interrupted"), []);
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["work<1500>", "From:beta: hello"]);
    assert.deepEqual(keys(agent.received()), ["", "\r"]);
  }));

Deno.test("[B-08] an agent that queues takes a message while it works; the record says queued", () =>
  withAgent({
    fake: "chat",
    options: ["--first=work<3000>", "--queue"],
    edit: (toml) =>
      toml.replace("queues = false", "queues = true")
        .replace("[screen]", "[screen]\nqueued = ' waiting: '"),
  }, async (agent) => {
    await agent.logged("submitted");
    assert.deepEqual(outcome(await agent.service.deliver("hello there")), [
      "written",
      "confirmed: queued",
    ]);
    await agent.logged("submitted", 2);
    assert.deepEqual(agent.texts("interrupted"), []);
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["work<3000>", "From:beta: hello there"]);
  }));

Deno.test("[B-09] while it works an agent gets its own key for queueing, not Enter", () =>
  withAgent({
    fake: "chat",
    options: ["--first=work<3000>", "--queue"],
    edit: (toml) =>
      toml.replace("[input]", '[input]\nbusy_submit = "\\t"')
        .replace("[screen]", "[screen]\nqueued = ' waiting: '"),
  }, async (agent) => {
    await agent.logged("submitted");
    assert.equal(outcome(await agent.service.deliver("hello there"))[0], "written");
    assert.deepEqual(keys(agent.received()), ["", "\t"]);
  }));

Deno.test("[B-08] a text that does not appear is not submitted", () =>
  withAgent({ fake: "silent" }, async (agent) => {
    assert.deepEqual(outcome(await agent.service.deliver("hush")), ["failed", "not_shown"]);
    assert.deepEqual(agent.texts("submitted"), []);
    assert.deepEqual(keys(agent.received()), ["", ""]);
  }));

Deno.test("[B-08] an agent whose line cannot be seen gets one submission; what was seen is recorded", () =>
  withAgent({
    fake: "silent",
    edit: (toml) => toml.replace(/^prompt = .*$/m, ""),
  }, async (agent) => {
    assert.deepEqual(outcome(await agent.service.deliver("hush")), [
      "written",
      "confirmed: working",
    ]);
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["From:beta: hush"]);
  }));

Deno.test("[B-08] an unfamiliar version is never written to, and the reason shows", () =>
  withAgent({
    fake: "chat",
    edit: (toml) => toml.replace(/^prompt = .*$/m, "prompt = ' >>> '"),
  }, async (agent) => {
    await agent.gate("agent_unrecognised: no_prompt_row");
    assert.equal(agent.received(), "");
  }));

Deno.test("[B-16] an agent that ended to a shell: the message is displayed, nothing is run", () =>
  withAgent({
    fake: "chat",
    options: ["--exit-to-shell"],
    named: true,
    command: (agent) => [
      "bash",
      "-c",
      `${agent.map((word) => `'${word}'`).join(" ")}; exec bash --norc --noprofile -i`,
    ],
  }, async (agent) => {
    const { service, terminal, dir } = agent;
    assert.equal(outcome(await service.deliver("bye"))[0], "written");
    await terminal.until(/[$#] $/);
    const from = terminal.text.length;
    assert.deepEqual(outcome(await service.deliver("x\ntouch pwn")), ["displayed", undefined]);
    await terminal.until("From:beta: x\r\n  touch pwn\r\n", from);
    await terminal.type("echo over\r");
    await terminal.until(/[\r\n]over/, from);
    assert.deepEqual([...Deno.readDirSync(dir)].filter(({ name }) => name === "pwn"), []);
  }));

Deno.test("[B-09][B-10] 8 KiB reach an agent in one paste frame, every byte", () =>
  withAgent({ fake: "chat", size: { rows: 130, columns: 100 } }, async (agent) => {
    const body = Array.from({ length: 90 }, (_, i) => `${i} ${"wörd ".repeat(14)}`).join("\n");
    assert.equal(outcome(await agent.service.deliver(body))[0], "written");
    assert.deepEqual(agent.texts("submitted"), [`From:beta: ${body}`.trimEnd()]);
    assert.equal(frames(agent.received()), 1);
  }));

Deno.test("[B-09] an agent that hides long pastes gets pieces that it shows", () =>
  withAgent({
    fake: "chat",
    edit: (toml) => toml.replace("[input]", "[input]\nchunk = { lines = 2, chars = 40 }"),
  }, async (agent) => {
    const body = `one\ntwo\nthree ${"wide ".repeat(20)}\nfour 🙂`;
    assert.equal(outcome(await agent.service.deliver(body))[0], "written");
    assert.deepEqual(agent.texts("submitted"), [`From:beta: ${body}`]);
    for (const piece of pastes(agent.received())) {
      assert.ok(piece.length <= 40 && piece.split("\n").length <= 2, piece);
    }
  }));

Deno.test("[B-08][B-09] a body that begins like a command never stands at the start of the line", () =>
  withAgent({ fake: "chat" }, async (agent) => {
    for (const body of ["/quit", "!touch pwn", "@file", "x\n/quit\n!sh"]) {
      assert.equal(outcome(await agent.service.deliver(body))[0], "written");
    }
    for (const text of pastes(agent.received())) {
      assert.ok(text.startsWith("From:beta: ") && text.endsWith(" "));
    }
    assert.equal(agent.texts("submitted").length, 4);
  }));

Deno.test(
  "[B-05][B-06] said once, repainted at five sizes: one message",
  () =>
    withAgent({ fake: "ink", size: { rows: 30, columns: 100 } }, async (agent) => {
      const { service, terminal } = agent;
      const words = `${"word ".repeat(70)}end`;
      await service.deliver(`say<To:gamma: ${words}>`);
      await service.when(() => service.sends.length > 0);
      for (const columns of [80, 60, 120, 70, 100]) {
        const from = terminal.text.length;
        terminal.resize({ rows: 30, columns });
        Deno.kill(Deno.pid, "SIGWINCH");
        await terminal.until(/./s, from);
      }
      await service.deliver("say<done>");
      await agent.logged("answered", 2);
      await service.deliver("another");
      assert.deepEqual(service.sends.map(({ body }) => body), [words]);
    }),
);

Deno.test("[B-11] draft: the text is left to the operator, who submits it", () =>
  withAgent({ fake: "chat", mode: "draft" }, async (agent) => {
    assert.deepEqual(outcome(await agent.service.deliver("hello")), ["written", "draft"]);
    assert.deepEqual(keys(agent.received()), ["", ""]);
    await agent.gate("line_not_empty");
    await agent.terminal.type("\r");
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["From:beta: hello"]);
  }));

Deno.test("[B-03] the operator's addressed line in an agent is one message of theirs", () =>
  withAgent({ fake: "chat" }, async (agent) => {
    await agent.gate("");
    await agent.terminal.type("To:gamma: from me\r");
    await agent.logged("answered");
    await agent.service.when(() => agent.service.sends.length > 0);
    await agent.gate("");
    assert.deepEqual(
      agent.service.sends.map(({ provenance, body }) => [provenance, body]),
      [["operator", "from me"]],
    );
  }));

Deno.test("[B-12] what an agent said last is sent although it ended", () =>
  withAgent({ fake: "chat", options: ["--exit-to-shell"] }, async (agent) => {
    await agent.service.deliver("say<To:gamma: last words>");
    assert.equal(await agent.done, 0);
    assert.deepEqual(agent.service.sends.map(({ body }) => body), ["last words"]);
  }));

Deno.test("[B-08] a dialog that opens behind the text: Enter is not pressed, later the same text is submitted", () =>
  withAgent({ fake: "chat", options: ["--ask-on-paste=touch pwn"] }, async (agent) => {
    const first = await agent.service.deliver("hello", { message_id: "m1" });
    assert.deepEqual(outcome(first), ["failed", "dialog_opened"]);
    await agent.gate("dialog_open");
    assert.deepEqual(keys(agent.received()), ["", ""]);
    await agent.terminal.type("n");
    const again = await agent.service.deliver("hello", { message_id: "m1" });
    assert.equal(outcome(again)[0], "written");
    assert.deepEqual(agent.texts("approved"), []);
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["From:beta: hello"]);
    assert.equal(frames(agent.received()), 1);
  }));

Deno.test("[B-08] a submission that opens a dialog at once is never taken for one that did not happen", () =>
  withAgent({ fake: "chat" }, async (agent) => {
    await agent.gate("");
    const settled = await agent.service.deliver("please ask<touch pwn>", { message_id: "m1" });
    // The dialog hides the agent's line: its user's text above it is the last one on the screen.
    assert.deepEqual(outcome(settled), ["written", "unconfirmed: dialog"]);
    await agent.gate("dialog_open");
    await agent.terminal.type("n");
    assert.equal(outcome(await agent.service.deliver("next"))[0], "written");
    await agent.logged("submitted", 2);
    assert.deepEqual(agent.texts("submitted"), [
      "From:beta: please ask<touch pwn>",
      "From:beta: next",
    ]);
    assert.deepEqual(agent.texts("approved"), []);
  }));

Deno.test("[B-01][B-08] an agent's question to the terminal is answered while the operator's keys are held", () =>
  withAgent({ fake: "chat", options: ["--query-on-paste"] }, async (agent) => {
    const { service, terminal } = agent;
    await agent.gate("");
    let asked = false;
    terminal.onChunk = (chunk) => {
      if (asked || !new TextDecoder().decode(chunk).includes("\x1b[6n")) return;
      asked = true;
      // A key, held until the message is out, and the answer, which passes it.
      void terminal.type("k\x1b[5;7R");
    };
    assert.equal(outcome(await service.deliver("hello"))[0], "written");
    assert.ok(asked);
    await agent.reads((received) => received.endsWith("k"));
    await agent.logged("submitted");
    assert.deepEqual(agent.texts("submitted"), ["From:beta: hello"]);
    assert.deepEqual(keys(agent.received()), ["", "\x1b[5;7R\rk"]);
  }));

Deno.test("[B-08] keys that come in behind the text after the hold: Enter is not pressed", () =>
  withAgent({
    fake: "chat",
    edit: (toml) => toml.replace("[input]", "[input]\nsubmit_delay_ms = 1500"),
  }, async (agent) => {
    const delivery = agent.service.deliver("hello");
    await agent.terminal.until("> From:beta: hello");
    await agent.terminal.type("and me");
    await agent.terminal.until("hello and me");
    assert.deepEqual(outcome(await delivery), ["failed", "operator_typed_behind"]);
    assert.deepEqual(agent.texts("submitted"), []);
    assert.deepEqual(keys(agent.received()), ["", "and me"]);
  }));

Deno.test("[B-08] OSC 7501: the question is answered, the report counts", () =>
  withAgent({ fake: "chat", profile: "claude", options: ["--query-status"] }, async (agent) => {
    await agent.reads((received) => received !== "");
    assert.equal(agent.received(), "\x1b]7501;?\x1b\\");
  }));

Deno.test("[B-08] OSC 7501: another program than the agent is not answered", () =>
  withAgent({
    fake: "chat",
    profile: "claude",
    named: true,
    command: () => [
      "sh",
      "-c",
      "stty -icanon -echo min 0 time 10; printf '\\033]7501;?\\007'; dd bs=99 count=1 2>/dev/null | od -c; echo over",
    ],
  }, async (agent) => {
    const said = await agent.terminal.until("over");
    assert.match(said, /0000000\r?\nover/);
  }));
