import assert from "node:assert/strict";
import { openStore } from "../../lib/store/store.ts";
import { FakeClock } from "../helpers/clock.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { withTempDir } from "../helpers/temp.ts";

const ENTRY = new URL("../helpers/queue_sender_entry.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

/** Lets a sender run until `answers` answers were read, kills it, and returns all it printed. */
async function runAndKill(path: string, firstKey: number, answers: number): Promise<string[]> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      "--frozen",
      "--config",
      CONFIG,
      ENTRY,
      path,
      String(firstKey),
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const complaints = new Response(child.stderr).text();
  let text = "";
  let lines = 0;
  let killed = false;
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    lines += chunk.split("\n").length - 1;
    if (lines >= answers && !killed) {
      killed = true;
      child.kill("SIGKILL");
    }
  }
  const status = await child.status;
  assert.equal(status.signal, "SIGKILL", `it ended by itself: ${await complaints}`);
  await complaints;
  return text.split("\n").slice(0, -1); // a last line without its end was cut by the kill
}

Deno.test("[L-04] kill -9 in the middle of sends loses no answered message and duplicates none", async () => {
  const random = new Seeded();
  const kills = faultCount("QUEUE_KILLS", 40);
  await withTempDir(async (dir) => {
    const path = `${dir}/tamq.sqlite3`;
    const answered = new Map<string, string>();
    let firstKey = 0;
    let repeated = 0;
    for (let kill = 0; kill < kills; kill++) {
      for (const line of await runAndKill(path, firstKey, 1 + random.below(300))) {
        const [key, id, deduplicated] = line.split(" ");
        assert.ok(!answered.has(key!) || answered.get(key!) === id, `seed ${random.seed}: ${key}`);
        if (deduplicated === "true") repeated++;
        answered.set(key!, id!);
      }
      // The next process begins with keys that were in flight: their fate is unknown to a client.
      firstKey = Math.max(0, answered.size - 8);
    }
    const { db } = await openStore(path, { busyTimeoutMs: 1000, clock: new FakeClock() });
    try {
      const where = `seed ${random.seed}`;
      assert.deepEqual(Object.values(db.prepare("PRAGMA integrity_check").get()!), ["ok"], where);
      assert.equal(db.prepare("PRAGMA foreign_key_check").all().length, 0, where);
      const rows = db.prepare("SELECT message_id, idempotency_key, body, state FROM messages")
        .all();
      const stored = new Map(rows.map((row) => [String(row.idempotency_key), row]));
      assert.equal(stored.size, rows.length, where);
      assert.equal(new Set(rows.map((row) => row.message_id)).size, rows.length, where);
      for (const [key, id] of answered) {
        assert.equal(stored.get(key)?.message_id, id, `${where}: ${key} lost`);
        assert.equal(stored.get(key)?.body, `body of ${key}`, where);
      }
      assert.ok(answered.size > kills, where);
      assert.ok(repeated > 0, `${where}: no process met a key of the one before it`);
      const counted = db.prepare("SELECT state, count FROM message_counts WHERE count > 0").all();
      const real = db.prepare("SELECT state, count(*) AS count FROM messages GROUP BY state").all();
      const sorted = (list: typeof real) => list.map((row) => `${row.state} ${row.count}`).sort();
      assert.deepEqual(sorted(counted), sorted(real), where);
    } finally {
      db.close();
    }
  });
});
