/** Another observer goes on with an agent's screen (B-17): the recordings, with hand-overs in them. */
import assert from "node:assert/strict";
import { observing, replay } from "../helpers/observe.ts";

const NAMES = ["railiance-platform", "net-kingdom", "state-hub"];

async function seenIn(profile: string, name: string, every?: number) {
  let result: unknown;
  let moments = 0, replaced = 0;
  await observing({ profile, size: { columns: 100, rows: 40 }, names: NAMES }, async (seen) => {
    await replay(seen, name, async () => {
      if (every !== undefined && ++moments % every === 0 && await seen.replace()) replaced++;
    });
    result = { blocks: seen.blocks, notices: seen.notices, turns: seen.observer.status.turns };
  });
  return { result, replaced };
}

for (const agent of ["codex", "claude", "gemini", "opencode"]) {
  const name = `${agent}-cases`;
  Deno.test(`[B-06][B-17] ${agent}: an observer that is replaced again and again sends the same, once`, async () => {
    const { result } = await seenIn(agent, name);
    // Not at every read: the signs that a turn has begun are looked for every 75 ms, and an observer
    // that never lives that long sees none.
    for (const every of [10, 60]) {
      const other = await seenIn(agent, name, every);
      assert.ok(other.replaced > 5, `${other.replaced} hand-overs`);
      assert.deepEqual(other.result, result, `every ${every}`);
    }
  });
}

Deno.test("[B-06][B-17] half a reply before, half behind: sent once; what was sent before is not sent again", async () => {
  await observing({ profile: "codex" }, async (seen) => {
    const replace = async () => assert.equal(await seen.replace(), true);
    const title = (text: string) => `\x1b]0;${text}\x07`;
    const turn = (state: string) => `\x1b]7501;state=${state}:app=codex\x1b\\`;
    await seen.feed(`${turn("idle")}${title("x")}› do it\r\n\r\n`);
    await replace();
    await seen.feed(`${turn("working")}• To:alpha: first\r\n`);
    await replace();
    assert.equal(seen.observer.status.reading().reason, "reported_working");
    await seen.feed("  second\r\n\r\n• done\r\n\r\n");
    await replace();
    await seen.feed(turn("done"));
    await replace();
    seen.settle();
    assert.deepEqual(seen.blocks, [{ target: "alpha", body: "first\nsecond" }]);
    await replace();
    seen.settle();
    seen.observer.resize({ columns: 60, rows: 20 });
    await seen.observer.drained();
    seen.settle();
    await replace();
    seen.settle();
    assert.deepEqual(seen.blocks, [{ target: "alpha", body: "first\nsecond" }]);
    assert.equal(seen.observer.status.turns, 1);
    // Half a frame and half a sequence are waited for.
    await seen.feed("\x1b[?2026h");
    assert.equal(await seen.replace(), false);
    assert.equal(seen.observer.unfinished, "screen_unsettled");
    await seen.feed("\x1b[?2026l\x1b]0;ha");
    assert.equal(await seen.replace(), false);
    await seen.feed("lf\x07");
    await replace();
    assert.equal(seen.observer.status.title, "half");
  });
});
