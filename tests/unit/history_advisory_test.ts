import assert from "node:assert/strict";
import { historyAdvisory } from "../../lib/history_advisory.ts";
import { openStore } from "../../lib/store/store.ts";
import { FakeClock } from "../helpers/clock.ts";
import { settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[Q-07] over 100 MB the size and the day since when are told, in the documented words", async () => {
  await withTempDir(async (dir) => {
    const { database, busyTimeoutMs } = await settingsIn(dir);
    const { db, store } = await openStore(database, { busyTimeoutMs, clock: new FakeClock() });
    try {
      assert.equal(historyAdvisory(db), undefined, "small");
      assert.equal(historyAdvisory(db, 100_000_000), undefined, "exactly 100 MB");
      assert.equal(
        historyAdvisory(db, 123_456_789),
        "Size of history is 123 MB, exceeding 100MB. Consider using 'tamq purge'.",
      );
      for (const [n, at] of [Date.UTC(2031, 4, 9, 12), Date.UTC(2032, 0, 1)].entries()) {
        store.messages.insert({
          messageId: String(n).padStart(26, "0"),
          clientId: "c",
          idempotencyKey: `k${n}`,
          requestDigest: new Uint8Array(32),
          correlationId: null,
          senderRepo: "local",
          targetRepo: "beta",
          provenance: "cli",
          endpointRef: null,
          sourceRef: null,
          maxAttempts: 4,
          ackMode: "injected",
          createdAt: at,
          eligibleAt: at,
          metadata: "{}",
          body: "x",
        });
      }
      assert.equal(
        historyAdvisory(db, 123_456_789),
        "Size of history is 123 MB since 310509, exceeding 100MB. Consider using 'tamq purge'.",
      );
    } finally {
      db.close();
    }
  });
});
