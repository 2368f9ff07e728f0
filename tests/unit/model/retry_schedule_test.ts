import assert from "node:assert/strict";
import { backoffMs, DEFAULT_POLICY, isCapped } from "../../../lib/model/retry_schedule.ts";

Deno.test("[T-13] retries wait 5, 15, 60, 300 seconds, the last one repeating; four attempts", () => {
  const waits = [1, 2, 3, 4, 5, 9].map((attempt) => backoffMs(DEFAULT_POLICY, attempt));
  assert.deepEqual(waits, [5000, 15000, 60000, 300000, 300000, 300000]);
  assert.deepEqual([3, 4, 5].map((attempt) => isCapped(DEFAULT_POLICY, attempt)), [
    false,
    true,
    true,
  ]);
  assert.equal(DEFAULT_POLICY.leaseSeconds, 30);
  assert.equal(DEFAULT_POLICY.readySeconds, 3600);
});
