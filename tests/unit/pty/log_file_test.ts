import assert from "node:assert/strict";
import { appendLines } from "../../../lib/pty/log_file.ts";
import { withTempDir } from "../../helpers/temp.ts";

Deno.test("[C-05] a window's log lines are bounded: full parts move on, six of them are kept", () =>
  withTempDir((dir) => {
    const file = `${dir}/state/tamq.log`;
    const windows = [appendLines(file, 100), appendLines(file, 100)];
    for (let i = 0; i < 60; i++) windows[i % 2]!(`line ${i} ${"x".repeat(30)}\n`);
    const parts = [...Deno.readDirSync(`${dir}/state`)].map(({ name }) => name).sort();
    assert.deepEqual(parts, ["tamq.log", ...[1, 2, 3, 4, 5].map((part) => `tamq.log.${part}`)]);
    for (const name of parts) {
      const info = Deno.statSync(`${dir}/state/${name}`);
      assert.ok(info.size <= 100, `${name} has ${info.size} bytes`);
      assert.equal(info.mode! & 0o777, 0o600);
    }
    assert.match(Deno.readTextFileSync(file), /line 59 /);
  }));

Deno.test("[C-02][C-05] a log that is a link is not written through", () =>
  withTempDir((dir) => {
    Deno.writeTextFileSync(`${dir}/victim`, "mine");
    Deno.symlinkSync(`${dir}/victim`, `${dir}/tamq.log`);
    appendLines(`${dir}/tamq.log`)("a line\n");
    assert.equal(Deno.readTextFileSync(`${dir}/victim`), "mine");
  }));
