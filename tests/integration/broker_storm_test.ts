/** What a window does with a message that the storm guard refuses (B-14). */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/base/clock.ts";
import { TamqError } from "../../lib/base/errors.ts";
import { type LogFields, silentLog } from "../../lib/base/log.ts";
import { Spool } from "../../lib/pty/spool.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[B-14, B-13] a refused message is told with its way out, not tried again, and holds up nobody", () =>
  withTempDir(async (dir) => {
    const asked: string[] = [];
    const notices: string[] = [];
    const warned: [string, LogFields?][] = [];
    const spool = new Spool({
      dir: `${dir}/spool`,
      header: { repo: "alpha", path: dir, instance: "i" },
      send: (request) => {
        asked.push(`${request.target_repo} ${request.body}`);
        if (request.target_repo !== "beta") return Promise.resolve();
        return Promise.reject(
          new TamqError("RESOURCE_EXHAUSTED", "storm_guard", "alpha → beta is blocked", {
            hint: "then: tamq unblock alpha beta",
          }),
        );
      },
      clock: systemClock,
      log: { ...silentLog, warn: (event, fields) => void warned.push([event, fields]) },
      notice: (text) => void notices.push(text),
    });
    spool.add("beta", "one", "worker");
    spool.add("gamma", "two", "worker");
    assert.equal(await spool.flush(5000), true, "nothing is left to send");
    assert.deepEqual(asked, ["beta one", "gamma two"]);
    assert.deepEqual(notices, [
      "message to beta NOT sent, storm_guard: alpha → beta is blocked " +
      "(then: tamq unblock alpha beta)",
    ]);
    assert.deepEqual(warned.map(([event, fields]) => [event, fields?.reason]), [
      ["spool.refused", "storm_guard"],
    ]);
    await spool.close();
    assert.deepEqual([...Deno.readDirSync(`${dir}/spool`)], [], "nor kept for an adopter");
  }));

Deno.test("[B-14] other exhausted resources pass by themselves: such a message is tried again", () =>
  withTempDir(async (dir) => {
    let tries = 0;
    const spool = new Spool({
      dir: `${dir}/spool`,
      header: { repo: "alpha", path: dir, instance: "i" },
      send: () =>
        ++tries > 1
          ? Promise.resolve()
          : Promise.reject(new TamqError("RESOURCE_EXHAUSTED", "store_full", "the disk is full")),
      clock: systemClock,
      log: silentLog,
      notice: (text) => assert.fail(text),
    });
    spool.add("beta", "one", "worker");
    assert.equal(await spool.flush(5000), true);
    assert.equal(tries, 2);
    await spool.close();
  }));
