/** What the steps program had promised when it ended, and what a database holds of it. */
import assert from "node:assert/strict";
import { openStore } from "../../lib/store/store.ts";
import { FakeClock } from "./clock.ts";

/** Kept promises: opens as a service would, so recovery is part of it. Throws what is wrong. */
export async function keepsPromises(
  path: string,
  lines: readonly string[],
  where: string,
): Promise<void> {
  const { db, store } = await openStore(path, { busyTimeoutMs: 1000, clock: new FakeClock() });
  try {
    assert.deepEqual(Object.values(db.prepare("PRAGMA integrity_check").get()!), ["ok"], where);
    assert.equal(db.prepare("PRAGMA foreign_key_check").all().length, 0, where);
    const last = new Map<string, string>();
    for (const line of lines) {
      // The id is the last word but one: what was done may have several words.
      const [states, id] = line.split(" ").reverse();
      if (id !== undefined) last.set(id, states!);
    }
    for (const [id, states] of last) {
      const state = store.messages.byId(id)?.state;
      const kept = state !== undefined && states.split(",").includes(state);
      assert.ok(kept, `${where}: ${id} is ${state}, not ${states}`);
    }
    // Promised or one more: the step under way may have become durable without its answer.
    const stored = Object.values(store.messages.counts().states).reduce((a, b) => a + b);
    assert.ok(stored >= last.size && stored <= last.size + 1, `${where}: ${stored} stored`);
  } finally {
    db.close();
  }
}
