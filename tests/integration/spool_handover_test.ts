/** A broker's spool over the moment in which its process becomes another program (B-13, B-17). */
import assert from "node:assert/strict";
import { orphanSpools } from "../../lib/pty/spool.ts";
import { TextLineStream } from "../agents/text_lines.ts";
import { withTempDir } from "../helpers/temp.ts";

const ENTRY = new URL("../helpers/spool_exec_entry.ts", import.meta.url).pathname;

Deno.test("[B-13][B-17] messages that wait stay with their owner over ten programs, and are left to be adopted at its end", () =>
  withTempDir(async (dir) => {
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", "--no-check", "--frozen", ENTRY, dir],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const input = child.stdin.getWriter();
    const said = child.stdout.pipeThrough(new TextLineStream()).getReader();
    const say = (text: string) => input.write(new TextEncoder().encode(text + "\n"));
    for (let n = 1; n <= 10; n++) {
      assert.equal((await said.read()).value, `pending ${n}`);
      // A free lock would say that the owner is dead: a service would take the messages over.
      assert.deepEqual(orphanSpools(dir), []);
      await say(n < 10 ? "go on" : "end");
      // … also in the very moment of the change.
      for (let i = 0; i < 200; i++) assert.deepEqual(n < 10 ? orphanSpools(dir) : [], []);
    }
    assert.equal((await child.status).code, 0);
    await said.cancel();
    await input.close().catch(() => {});
    const [left, ...more] = orphanSpools(dir);
    assert.equal(more.length, 0);
    try {
      assert.equal(left!.header.instance, "instance");
      assert.deepEqual(
        left!.records.map(({ sequence, body }) => [sequence, body]),
        Array.from({ length: 10 }, (_, i) => [i + 1, `message ${i + 1}`]),
      );
    } finally {
      left!.close();
    }
  }));
