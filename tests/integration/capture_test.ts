import assert from "node:assert/strict";
import { withAttached } from "../helpers/broker.ts";
import { withTempDir } from "../helpers/temp.ts";

type Line = Record<string, unknown>;
const file = (dir: string) => `${dir}/state/captures/alpha.jsonl`;
const linesOf = (dir: string): Line[] =>
  Deno.readTextFileSync(file(dir)).trim().split("\n").map((line) => JSON.parse(line));

Deno.test("[B-15] --capture writes what was observed and delivered, with what became of it; private; off by default", async () => {
  const command = ["sh", "-c", "printf 'To:beta: two\\nlines\\n\\nTo:nobody: lost\\n\\n'; cat"];
  await withTempDir(async (dir) => {
    await withAttached({ dir, command, capture: true }, async ({ service }) => {
      await service.when(() => service.sends.length === 1);
      await service.deliver("one for alpha");
    });
    assert.equal(Deno.statSync(file(dir)).mode! & 0o777, 0o600);
    assert.equal(Deno.statSync(`${dir}/state/captures`).mode! & 0o777, 0o700);
    const [first, lost, delivered] = linesOf(dir).map(({ time, ...rest }) => {
      assert.ok(!Number.isNaN(Date.parse(String(time))));
      return rest;
    });
    assert.deepEqual(first, {
      event: "observed",
      from: "alpha",
      to: "beta",
      provenance: "worker",
      sent: true,
      body: "two\nlines",
    });
    assert.deepEqual([lost!.sent, lost!.reason, lost!.body], [false, "unknown_target", null]);
    assert.deepEqual(
      [delivered!.event, delivered!.from, delivered!.body, delivered!.outcome],
      ["delivered", "beta", "one for alpha", "written"],
    );
  });
  await withTempDir(async (dir) => {
    await withAttached({ dir, command }, async ({ service }) => {
      await service.when(() => service.sends.length === 1);
      await service.deliver("one for alpha");
    });
    assert.throws(() => Deno.statSync(`${dir}/state/captures`), Deno.errors.NotFound);
  });
});
