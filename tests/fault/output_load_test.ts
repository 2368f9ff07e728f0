/** What a worker does that prints without end: the observer's memory stays bounded (B-06, B-07). */
import assert from "node:assert/strict";
import { pause, systemClock } from "../../lib/base/clock.ts";
import { BROKER_RUNTIME_FLAG } from "../../lib/base/self.ts";
import { reap, sendSignal, SIGKILL, spawnOnTerminal } from "../../lib/pty_ffi.ts";
import { peakMegabytes } from "../helpers/memory.ts";
import { TestTerminal } from "../helpers/pty.ts";
import { faultCount } from "../helpers/seeded.ts";
import { withTempDir } from "../helpers/temp.ts";

const ENTRY = new URL("../../bench/helpers/broker_child.ts", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;
const FLAGS = ["-A", "--no-check", "--quiet", "--frozen", BROKER_RUNTIME_FLAG];
const RUN = ["run", ...FLAGS, "--config", CONFIG, ENTRY];
const MEGABYTE = 1e6;
/** Of the observer with its terminal model, over a broker that looks for lines only. */
const MAX_OVER_BARE = 40;

/** Colours, cursor moves, wide characters and addresses that are none. */
const LINE =
  "\\033[1;32m● \\033[0mTo nobody: 日本 \\033[38;5;208mwords\\033[0m and words, 12:34:56" +
  "\\033[K\\t\\033[3C/a/b/c.ts To:beta without a colon and so on to the end of a row";

/** The peak of a broker whose worker has printed so much, as fast as it could. */
async function peakAfter(megabytes: number, profile: string | undefined): Promise<number> {
  let peak = 0;
  await withTempDir(async (dir) => {
    const bytes = megabytes * MEGABYTE;
    const script = `echo READY; read x; yes "$(printf '${LINE}')" | head -c ${bytes}; ` +
      "printf '\\n\\033[0mOVER\\n'; read x";
    const flags = profile === undefined ? [] : [`--profile=${profile}`];
    const terminal = new TestTerminal({ rows: 40, columns: 120 });
    const pid = spawnOnTerminal({
      command: [Deno.execPath(), ...RUN, dir, ...flags, "sh", "-c", script],
      directory: dir,
      env: Deno.env.toObject(),
      slavePath: terminal.slavePath,
    });
    try {
      await terminal.until("READY");
      terminal.keepText = false;
      const start = terminal.bytes;
      let last = "";
      terminal.onChunk = (chunk) => last = new TextDecoder().decode(chunk.subarray(-64));
      await terminal.type("\n");
      for (let part = 1; part <= 100; part++) {
        await terminal.when(() => terminal.bytes - start >= bytes / 100 * part, "the output");
      }
      await terminal.when(() => last.includes("OVER"), "the end of the output");
      peak = peakMegabytes(pid)!;
    } finally {
      sendSignal(pid, SIGKILL);
      await terminal.close();
      while (reap(pid) === undefined) await pause(systemClock, 5);
    }
  });
  return peak;
}

Deno.test("[B-06] [B-07] the observer of a worker that prints without end needs under 40 MB more than a bare broker", async () => {
  const megabytes = faultCount("PRINTED_MEGABYTES", 200);
  const [bare, observed] = await Promise.all([
    peakAfter(megabytes, undefined),
    peakAfter(megabytes, "codex"),
  ]);
  console.log(
    `peak of ${megabytes} MB: bare ${bare!.toFixed(0)}, observed ${observed!.toFixed(0)}`,
  );
  assert.ok(
    observed! - bare! < MAX_OVER_BARE,
    `bare ${bare!.toFixed(1)} MB, observed ${observed!.toFixed(1)} MB`,
  );
});
