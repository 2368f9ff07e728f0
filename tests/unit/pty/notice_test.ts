import assert from "node:assert/strict";
import { silentLog } from "../../../lib/base/log.ts";
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
