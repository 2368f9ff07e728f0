/**
 * A spool whose process becomes another program again and again, with nobody there to take its
 * messages: adds one each time, tells it, goes on when a line comes in.
 *
 *   usage: spool_exec_entry.ts DIR
 */
import { silentLog } from "../../lib/base/log.ts";
import { systemClock } from "../../lib/base/clock.ts";
import { becomeProgram, keepOpen } from "../../lib/exec_ffi.ts";
import { type KeptSpool, Spool } from "../../lib/pty/spool.ts";
import { TextLineStream } from "../agents/text_lines.ts";

const [dir, state] = Deno.args;
const kept = state === undefined ? undefined : JSON.parse(state) as KeptSpool;
if (typeof kept?.lock === "number") keepOpen(kept.lock, false);
const away = Promise.withResolvers<void>();
const spool = new Spool({
  dir: dir!,
  header: { repo: "alpha", path: "/alpha", instance: "instance" },
  send: () => {
    away.resolve(); // what is sent is in the file already
    return Promise.reject(new Error("nobody is there"));
  },
  clock: systemClock,
  log: silentLog,
  notice: () => {},
  ...(kept === undefined ? {} : { kept }),
});
spool.add("beta", `message ${spool.pending + 1}`, "worker");
spool.kick();
await away.promise;
console.log(`pending ${spool.pending}`);
for await (const line of Deno.stdin.readable.pipeThrough(new TextLineStream())) {
  if (line === "end") Deno.exit(0);
  const next = spool.save();
  if (next.lock === null) throw new Error("the lock cannot be found");
  keepOpen(next.lock, true);

  const script = new URL(import.meta.url).pathname;
  const words = ["run", "-A", "--quiet", "--no-check", "--frozen", script, dir!];
  becomeProgram([Deno.execPath(), ...words, JSON.stringify(next)], Deno.env.toObject());
}
