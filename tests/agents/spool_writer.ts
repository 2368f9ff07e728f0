/** Captures messages for ever into a spool whose service is down; prints how many are stored. */
import { systemClock } from "../../lib/base/clock.ts";
import { TamqError } from "../../lib/base/errors.ts";
import { silentLog } from "../../lib/base/log.ts";
import { Spool } from "../../lib/pty/spool.ts";

const [dir, instance] = Deno.args;
let added = 0;
const encoder = new TextEncoder();
const spool: Spool = new Spool({
  dir: dir!,
  header: { repo: "alpha", path: "/alpha", instance: instance! },
  clock: systemClock,
  log: silentLog,
  notice: () => {},
  send: () => {
    // Asked only after everything added so far is stored and synced.
    Deno.stdout.writeSync(encoder.encode(`${added}\n`));
    added++;
    spool.add("beta", `message ${added}`, "worker");
    throw new TamqError("UNAVAILABLE", "service_unavailable", "down");
  },
});
added++;
spool.add("beta", "message 1", "worker");
