/** `tamq purge` as a person or a script runs it, with a service and without. */
import assert from "node:assert/strict";
import { call } from "../../lib/client.ts";
import { openDatabase } from "../../lib/sqlite/open.ts";
import { readReceipts } from "../../lib/store/receipts.ts";
import { type HistoryWorld, jsonLines, withHistory } from "../helpers/history_world.ts";
import { runProcess } from "../helpers/world.ts";

/** Two that failed and one that waits. */
async function fill(world: HistoryWorld): Promise<void> {
  for (const key of ["one", "two", "live"]) {
    const { message_id } = await world.send(key, { target_repo: "alpha" });
    if (key !== "live") await call(world.settings.socket, "cancel", { message_id });
  }
}

async function bodies(world: HistoryWorld): Promise<unknown[]> {
  return jsonLines((await world.tamq(["export"])).stdout).map((line) => line.body);
}

function receipts(world: HistoryWorld) {
  const db = openDatabase(world.settings.database, { readOnly: true, busyTimeoutMs: 1000 });
  try {
    return readReceipts(db, 100).filter(({ kind }) => kind === "purge").map(({ data }) => data);
  } finally {
    db.close();
  }
}

Deno.test("[Q-08] purge counts first, asks on a terminal, and needs --yes elsewhere", () =>
  withHistory(async (world) => {
    const never = await world.tamq(["purge", "--yes"]);
    assert.deepEqual([never.code, /no messages yet/.test(never.stderr)], [0, true]);
    await world.start();
    await fill(world);

    const defaults = await world.tamq(["purge"]);
    assert.equal(defaults.code, 0);
    assert.match(
      defaults.stdout,
      /^nothing to purge; chosen: admitted before \S+; or the oldest until the history fits 100 MB\n$/,
    );
    const asked = JSON.parse((await world.tamq(["purge", "--json"])).stdout);
    const age = Date.now() - Date.parse(asked.before);
    assert.ok(Math.abs(age - 365 * 86_400_000) < 60_000, "365 days");
    assert.deepEqual([asked.max_bytes, asked.messages, asked.dry_run], [100_000_000, 0, true]);

    const failed = ["purge", "--state", "failed"];
    for (const args of [failed, [...failed, "--dry-run"], [...failed, "--dry-run", "--yes"]]) {
      const dry = await world.tamq(args);
      assert.equal(dry.code, 0);
      assert.match(
        dry.stdout,
        /^2 messages, about 1 KB, admitted from \S+Z to \S+Z\nchosen: failed\n/,
      );
      assert.match(dry.stdout, /dry run: nothing was purged; add --yes to purge\n$/);
    }
    for (const answer of ["no", "y", "", undefined]) {
      const answers = answer === undefined ? [] : [answer];
      const refused = await world.tamq(failed, { answers });
      assert.match(refused.stderr, /Purge 2 messages\? Type yes: /);
      assert.match(refused.stdout, /nothing was purged\n$/);
    }
    assert.deepEqual(await bodies(world), ["one", "two", "live"]);
    assert.deepEqual(receipts(world), []);

    const done = await world.tamq(failed, { answers: ["yes"] });
    assert.equal(done.code, 0, done.stderr);
    assert.match(
      done.stdout,
      /\npurged 2 messages, about 1 KB; the history has [\d.]+ [KM]B \(receipt \d+\)\n$/,
    );
    assert.deepEqual(await bodies(world), ["live"]);
    assert.equal(receipts(world).length, 1);

    const all = await world.tamq(["purge", "--max-size", "0", "--before", "0s", "--yes", "--json"]);
    assert.deepEqual(JSON.parse(all.stdout).messages, 0, "live ones are never purged");
    assert.deepEqual(await bodies(world), ["live"]);
    assert.equal((await world.send("one", { target_repo: "alpha" })).deduplicated, true);

    for (
      const [args, text] of [
        [["--state", "pending"], /--state is one of injected, acknowledged, failed/],
        [["--before", "soon"], /--before "soon" is no time/],
        [["--max-size", "big"], /--max-size "big" is no size/],
        [["--export", "-"], /--export needs a file/],
      ] as const
    ) {
      const wrong = await world.tamq(["purge", ...args]);
      assert.equal(wrong.code, 2, args.join(" "));
      assert.match(wrong.stderr, text);
    }
  }));

Deno.test("[Q-08] what goes may be exported first, and comes back by a replay", () =>
  withHistory(async (world) => {
    await world.start();
    await fill(world);
    const file = `${world.dir}/old.jsonl`;
    const fresh = await world.tamq(["purge", "--state", "failed", "--export", file, "--yes"]);
    assert.match(fresh.stdout, /nothing to purge/, "changed less than 5 seconds ago");
    // As if it had all happened a minute ago.
    await world.stop();
    await world.withStore(({ db }) => {
      db.prepare("UPDATE messages SET updated_at = updated_at - 60000").run();
    });
    await world.start();
    const purged = await world.tamq(["purge", "--state", "failed", "--export", file, "--yes"]);
    assert.equal(purged.code, 0, purged.stderr);
    assert.match(purged.stderr, /^exported 2 messages to /);
    const kept = jsonLines(await Deno.readTextFile(file));
    assert.deepEqual(kept.map((line) => line.body), ["one", "two"]);
    assert.deepEqual(await bodies(world), ["live"]);
    const refused = await world.tamq([
      "purge",
      "--max-size",
      "0",
      "--before",
      "0s",
      "--export",
      `${world.dir}/none/x`,
      "--yes",
    ]);
    assert.deepEqual([refused.code, (await bodies(world)).length], [0, 1], "nothing chosen");

    await using beta = await world.receiver();
    const back = kept.map((line) => JSON.stringify({ ...line, target_repo: "beta" })).join("\n");
    const args = ["replay", "-", "--endpoint", world.endpoint];
    assert.match((await world.tamq(args, { stdin: back })).stdout, /: 2 sent/);
    await beta.next(2);
    // The keys of replayed messages survive a purge as well.
    await world.tamq(["purge", "--state", "injected", "--yes"]);
    assert.match((await world.tamq(args, { stdin: back })).stdout, /: 0 sent, 2 deduplicated/);
  }));

Deno.test("[Q-08] an export that fails keeps everything", () =>
  withHistory(async (world) => {
    await world.start();
    await fill(world);
    await world.stop();
    await world.withStore(({ db }) => {
      db.prepare("UPDATE messages SET updated_at = updated_at - 60000").run();
    });
    for (const path of ["/dev/full", `${world.dir}/none/x`]) {
      const failed = await world.tamq(["purge", "--state", "failed", "--export", path, "--yes"]);
      assert.equal(failed.code, 1);
      assert.match(failed.stderr, /cannot write/);
    }
    assert.deepEqual(await bodies(world), ["one", "two", "live"]);
  }));

Deno.test("[Q-08, L-02] with the service stopped it purges by itself, under the service's lock, and shrinks old files", () =>
  withHistory(async (world) => {
    // As a program before schema 2 made it: without the bookkeeping to be shortened in pieces.
    const { database, stateDir } = world.settings;
    await Deno.mkdir(stateDir, { recursive: true, mode: 0o700 });
    openDatabase(database, { busyTimeoutMs: 1000 }).close();
    await world.start();
    await fill(world);
    await world.stop();
    await world.withStore(({ db }) => {
      assert.equal(db.prepare("PRAGMA auto_vacuum").get()!.auto_vacuum, 0);
      const filler = db.prepare("INSERT INTO receipts (kind, at, data) VALUES ('start', 0, ?)");
      for (let i = 0; i < 300; i++) filler.run(JSON.stringify({ pad: "x".repeat(4000) }));
      db.prepare("DELETE FROM receipts WHERE data LIKE '%xxx%'").run();
    });
    const before = Deno.statSync(database).size;
    const lock = await Deno.open(`${stateDir}/service.lock`, {
      read: true,
      write: true,
      create: true,
    });
    await lock.lock(true);
    const busy = await world.tamq(["purge", "--state", "failed", "--yes"]);
    assert.equal(busy.code, 4);
    assert.match(busy.stderr, /a service is starting or stopping/);
    lock.close();
    assert.deepEqual(await bodies(world), ["one", "two", "live"]);

    const done = await world.tamq(["purge", "--state", "failed", "--yes", "--json"]);
    assert.equal(done.code, 0, done.stderr);
    assert.equal(JSON.parse(done.stdout).messages, 2);
    assert.deepEqual(await bodies(world), ["live"]);
    assert.equal(receipts(world)[0]!.messages, 2);
    assert.ok(Deno.statSync(database).size < before / 2, "the file is shorter");
    await world.withStore(({ db }) => {
      assert.equal(db.prepare("PRAGMA auto_vacuum").get()!.auto_vacuum, 2);
    });
    assert.equal(Deno.statSync(database).mode! & 0o777, 0o600);
    await world.start();
    assert.equal((await world.send("one", { target_repo: "alpha" })).deduplicated, true);
    assert.equal((await world.send("live", { target_repo: "alpha" })).deduplicated, true);
  }));

Deno.test("[T-27] a command in a window purges nothing, not even with the service stopped", () =>
  withHistory(async (world) => {
    await world.start();
    await fill(world);
    await world.stop();
    // A shell whose argument vector is that of a broker, and tamq as its child.
    const script = `${world.argv(["purge", "--state", "failed", "--yes"]).join(" ")}; exit $?`;
    const argv = ["sh", "-c", script, "broker", "--repo", "beta"];
    const refused = await runProcess(argv, { env: world.env });
    assert.equal(refused.code, 5, refused.stderr);
    assert.match(refused.stderr, /a window may not purge history/);
    await world.start();
    const asked = await runProcess(argv, { env: world.env });
    assert.notEqual(asked.code, 0, "its broker is not attached: it is nobody");
    assert.deepEqual(await bodies(world), ["one", "two", "live"]);
  }));
