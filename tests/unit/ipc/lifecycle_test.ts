import assert from "node:assert/strict";
import { silentLog } from "../../../lib/base/log.ts";
import { runInOrder, type Step } from "../../../lib/ipc/lifecycle.ts";
import { FakeClock } from "../../helpers/clock.ts";

function recorder() {
  const done: string[] = [];
  const step = (name: string, run: () => void | Promise<void> = () => {}): Step => ({
    name,
    run: async () => {
      await run();
      done.push(name);
    },
  });
  return { done, step };
}

Deno.test("[L-03] steps run in order, and one that fails keeps none of the others from running", async () => {
  const { done, step } = recorder();
  const steps = [
    step("a"),
    step("b", () => {
      throw new Error("no");
    }),
    step("c"),
  ];
  const clean = await runInOrder(steps, { clock: new FakeClock(), log: silentLog, graceMs: 1000 });
  assert.equal(clean, false);
  assert.deepEqual(done, ["a", "c"]);
});

Deno.test("[L-03] a step that hangs is left behind when the grace period is over", async () => {
  const clock = new FakeClock();
  const { done, step } = recorder();
  const started = Promise.withResolvers<void>();
  const hang = step("hangs", () => {
    started.resolve();
    return new Promise(() => {});
  });
  const stopping = runInOrder([hang, step("frees the lock")], {
    clock,
    log: silentLog,
    graceMs: 10_000,
  });
  await started.promise;
  clock.advance(9_999);
  await Promise.resolve();
  assert.deepEqual(done, []);
  clock.advance(1);
  assert.equal(await stopping, false);
  assert.deepEqual(done, ["frees the lock"]);
});

Deno.test("[L-03] a second signal ends the patience", async () => {
  const { done, step } = recorder();
  const hurry = new AbortController();
  const hang = step("hangs", () => {
    hurry.abort();
    return new Promise(() => {});
  });
  const options = {
    clock: new FakeClock(),
    log: silentLog,
    graceMs: 10_000,
    hurry: hurry.signal,
  };
  assert.equal(await runInOrder([hang, step("last")], options), false);
  assert.deepEqual(done, ["last"]);
});
