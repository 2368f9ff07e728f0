import assert from "node:assert/strict";
import { createLog, silentLog } from "../../../lib/base/log.ts";
import { displayArguments, Notices } from "../../../lib/pty/notice.ts";

Deno.test("[E-07][C-01] a notice is one argument in which tmux expands nothing", () => {
  assert.deepEqual(displayArguments("%3", "a #(touch x) #{pane_id} %H\x1b[2J\n-b"), [
    "display-message",
    "-d",
    "5000",
    "-t",
    "%3",
    "a ##(touch x) ##{pane_id} %%H\\x1b[2J\\n-b",
  ]);
});

Deno.test("[E-07] a storm of notices runs one tmux at a time and counts the rest", async () => {
  const shown: string[] = [];
  let running = 0;
  const notices = new Notices({
    pane: "%1",
    log: silentLog,
    tmux: async (args) => {
      assert.equal(++running, 1);
      await Promise.resolve();
      running--;
      shown.push(args.at(-1)!);
    },
  });
  for (let i = 0; i < 100; i++) notices.show(`n${i}`);
  await notices.idle();
  assert.ok(shown.length <= 10);
  assert.match(shown[1]!, /more; see the log/);
  notices.show("after");
  await notices.idle();
  assert.equal(shown.at(-1), "tamq: after");
});

Deno.test("[E-07] a tmux that fails, or no pane at all, disturbs nobody", async () => {
  const failing = new Notices({
    pane: "%1",
    log: silentLog,
    tmux: () => Promise.reject(new Error("no server")),
  });
  failing.show("x");
  await failing.idle();
  const none = new Notices({
    pane: "",
    log: silentLog,
    tmux: () => assert.fail("tmux was run"),
  });
  none.show("x");
  await none.idle();
});

Deno.test("[C-05] the log gets the reason, not what the terminal showed, and a storm leaves few lines", async () => {
  // `To:my password is hunter2: x` was once logged as the name of an unknown repository, and 200,000
  // such rows made a log of 21 MB.
  const lines: string[] = [];
  const log = createLog({
    clock: { now: () => 0 },
    level: "info",
    json: false,
    write: (line) => lines.push(line),
  });
  const shown: string[] = [];
  const notices = new Notices({
    pane: "%1",
    repo: "alpha",
    log,
    tmux: (args) => Promise.resolve(void shown.push(args.at(-1)!)),
  });
  for (let i = 0; i < 20_000; i++) {
    notices.show(`no repository "hunter2 ${i}" is registered`, "message not sent: unknown_target");
  }
  await notices.idle();
  assert.ok(lines.length <= 5, `${lines.length} lines`);
  assert.ok(!lines.join("").includes("hunter2"));
  assert.match(lines[0]!, /unknown_target/);
  assert.match(shown[0]!, /^tamq alpha: no repository/);
});
