/** `kill -9` under load (L-04): what was acknowledged is there, once; nothing is shown twice. */
import assert from "node:assert/strict";
import { TamqError } from "../../lib/base/errors.ts";
import { call } from "../../lib/client.ts";
import type { Settings } from "../../lib/config.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { ServiceProcess, settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";

const KILLS = faultCount("KILLS", 300);
const SENDERS = 8;

/** The service, killed and started again; clients wait for the next one. */
class Victim {
  #up: Promise<ServiceProcess>;
  constructor(readonly settings: Settings) {
    this.#up = this.#start();
  }
  #start(): Promise<ServiceProcess> {
    const env = { TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) };
    return ServiceProcess.start(this.settings, { env });
  }
  ready(): Promise<ServiceProcess> {
    return this.#up;
  }
  async killAndRestart(): Promise<void> {
    const old = await this.#up;
    old.kill("SIGKILL");
    this.#up = old.ended().then(() => this.#start());
    await this.#up;
  }
}

const passing = (error: unknown) => error instanceof TamqError && error.code === "UNAVAILABLE";

/** Sends until told to stop; every key until it is acknowledged, as a careful client does. */
async function sender(
  victim: Victim,
  name: string,
  acknowledged: Map<string, string>,
  onAck: () => void,
  stop: AbortSignal,
): Promise<void> {
  for (let n = 0; !stop.aborted; n++) {
    const key = `${name}-${n}`;
    for (;;) {
      await victim.ready();
      try {
        const { message_id } = await call(victim.settings.socket, "send", {
          client_id: "fault",
          idempotency_key: key,
          sender_repo: "local",
          target_repo: "beta",
          provenance: "cli",
          body: key,
        });
        acknowledged.set(key, message_id);
        onAck();
        break;
      } catch (error) {
        if (!passing(error)) throw error;
      }
    }
  }
}

/** A broker in a process of its own; what it showed when it was told to end. */
function receiver(socket: string): { stop: () => Promise<string[]> } {
  const entry = new URL("../helpers/receiver_entry.ts", import.meta.url).pathname;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--quiet", "--config", config, entry, socket],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const output = new Response(child.stdout).text();
  return {
    async stop() {
      await child.stdin.close();
      await child.status;
      return (await output).split("\n").filter((line) => line !== "");
    },
  };
}

Deno.test(`[L-04] [T-25] ${KILLS} kills under load: nothing acknowledged is lost, nothing is there or shown twice`, async () => {
  const random = new Seeded();
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir);
    const victim = new Victim(settings);
    await victim.ready();
    const acknowledged = new Map<string, string>();
    let shown: string[] = [];
    const stop = new AbortController();
    let acks = 0;
    let killAt = 1 + random.below(40);
    let due = Promise.withResolvers<void>();
    const onAck = () => {
      if (++acks === killAt) due.resolve();
    };
    const senders = Array.from(
      { length: SENDERS },
      (_, i) => sender(victim, `s${i}`, acknowledged, onAck, stop.signal),
    );
    const broker = receiver(settings.socket);
    try {
      for (let kill = 0; kill < KILLS; kill++) {
        await Promise.race([due.promise, ...senders]);
        await victim.killAndRestart();
        due = Promise.withResolvers();
        killAt = acks + 1 + random.below(60);
      }
    } finally {
      stop.abort();
      await Promise.allSettled(senders);
      shown = await broker.stop();
      await using _last = await victim.ready();
    }
    await Promise.all(senders); // a sender's own failure is the test's

    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(settings.database, { readOnly: true });
    try {
      assert.equal(db.prepare("PRAGMA integrity_check").get()!.integrity_check, "ok");
      const rows = db.prepare("SELECT message_id, idempotency_key, body FROM messages").all();
      const stored = new Map(
        rows.map((row) => [String(row.idempotency_key), String(row.message_id)]),
      );
      assert.equal(stored.size, rows.length, "one row a key");
      assert.equal(new Set(stored.values()).size, rows.length, "one key an id");
      for (const [key, id] of acknowledged) {
        assert.equal(stored.get(key), id, `${key}; seed ${random.seed}`);
      }
      // Everything else was never acknowledged: at most what each sender had on its way.
      assert.ok(rows.length - acknowledged.size <= SENDERS);
      assert.equal(new Set(shown).size, shown.length, `shown twice; seed ${random.seed}`);
      // A kill between claim and delivery holds the window back until that lease expires, so how
      // many were shown says little; that some were, and none twice, is what counts.
      assert.ok(shown.length > 0);
      assert.ok(acknowledged.size > KILLS);
    } finally {
      db.close();
    }
  });
});
