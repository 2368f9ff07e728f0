import assert from "node:assert/strict";
import { BlockWatch } from "../../../lib/pty/block_watch.ts";
import { FakeClock } from "../../helpers/clock.ts";

Deno.test("[B-02] a block that stays open for half a minute is told of, once", () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const watch = new BlockWatch(clock, (target) => told.push(target));
  const block = { target: "beta" };
  watch.look(block);
  clock.advance(20_000);
  watch.look(block); // another row of it
  clock.advance(9_999);
  assert.deepEqual(told, []);
  clock.advance(1);
  clock.advance(60_000);
  assert.deepEqual(told, ["beta"]);
  watch.look({ target: "gamma" });
  clock.advance(1000);
  watch.look(undefined);
  clock.advance(60_000);
  assert.deepEqual(told, ["beta"]);
});
