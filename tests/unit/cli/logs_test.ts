/** Reading logs back: every line that our logger writes, across rotations. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { createLog } from "../../../lib/base/log.ts";
import { openLogFile } from "../../../lib/base/log_file.ts";
import { paintFor } from "../../../lib/cli/colour.ts";
import { parseLogLine } from "../../../lib/cli/logs/lines.ts";
import { LogTail } from "../../../lib/cli/logs/tail.ts";
import { appendLines } from "../../../lib/pty/log_file.ts";
import { withTempDir } from "../../helpers/temp.ts";

const clock = { now: () => 1_900_000_000_000 };

Deno.test("[C-05] a log line is read back as it was written, as text and as JSON", () => {
  const value = fc.string({ unit: "grapheme" }).filter((text) =>
    // What displaySafe rewrites is shown rewritten.
    !/[^\u0020-\u007e\u00c0-\u02ff\u4e00-\u9fff]/u.test(text)
  );
  const name = fc.stringMatching(/^[a-z][a-z_]{0,8}$/).filter((key) =>
    !["time", "level", "event", "window"].includes(key)
  );
  fc.assert(fc.property(fc.dictionary(name, value), fc.boolean(), (fields, json) => {
    let line = "";
    const log = createLog({ clock, level: "debug", json, write: (text) => line = text });
    log.warn("some thing.happened", fields);
    assert.deepEqual(parseLogLine(line.trimEnd(), "service", undefined), {
      time: "2030-03-17T17:46:40.000Z",
      level: "warn",
      source: "service",
      event: "some thing.happened",
      fields: { ...fields },
    });
  }));
});

Deno.test("[C-05] lines of windows are told from the service's; foreign lines are shown, with the time before them", () => {
  let line = "";
  const log = createLog({
    clock,
    level: "info",
    json: false,
    fields: { window: "alpha" },
    write: (text) => line = text,
  });
  log.info("link.attached", { endpoint: "tmux-amq-1" });
  const first = parseLogLine(line.trimEnd(), "service", undefined);
  assert.deepEqual([first.source, first.fields.window], ["window", "alpha"]);
  assert.deepEqual(parseLogLine("# Fatal error", "service", first), {
    time: first.time,
    level: "info",
    source: "service",
    event: "unreadable",
    fields: { text: "# Fatal error" },
  });
});

function all(tail: LogTail): string[] {
  return tail.read().flatMap((lines) => [...lines]);
}

Deno.test("[C-05] the tail gives each line once over rotations, also those written to a part moved aside", async () => {
  await withTempDir((dir) => {
    const path = `${dir}/tamq.log`;
    const service = openLogFile(path, 200);
    const window = appendLines(path, 200);
    using tail = new LogTail(path);
    const wrote: string[] = [];
    const seen: string[] = [];
    for (let i = 0; i < 60; i++) {
      const line = `${i % 3 === 0 ? "service" : "window"} ${i} ${"x".repeat(i % 7)}`;
      (i % 3 === 0 ? service.write : window)(line + "\n");
      wrote.push(line);
      // Several rotations between two looks, never more than the parts that are kept.
      if (i % 9 === 0) seen.push(...all(tail));
    }
    seen.push(...all(tail));
    service.close();
    assert.deepEqual(seen.sort(), wrote.sort());
    assert.ok([...Deno.readDirSync(dir)].length > 3, "it was rotated");
  });
});

Deno.test("[C-05] half a line waits for its end; an emptied file is read from its beginning", async () => {
  await withTempDir((dir) => {
    const path = `${dir}/log`;
    using tail = new LogTail(path);
    assert.deepEqual(all(tail), []);
    const bytes = new TextEncoder().encode("grün\n");
    Deno.writeFileSync(path, bytes.subarray(0, 3)); // in the middle of ü
    assert.deepEqual(all(tail), []);
    Deno.writeFileSync(path, bytes.subarray(3), { append: true });
    assert.deepEqual(all(tail), ["grün"]);
    Deno.truncateSync(path);
    Deno.writeTextFileSync(path, "new\n", { append: true });
    assert.deepEqual(all(tail), ["new"]);
  });
});

Deno.test("[C-01] colour: an explicit choice wins; else a terminal without NO_COLOR that is not dumb", () => {
  const cases: [
    boolean,
    Record<string, string>,
    "auto" | "always" | "never" | undefined,
    boolean,
  ][] = [
    [true, {}, undefined, true],
    [true, {}, "auto", true],
    [false, {}, "auto", false],
    [true, { NO_COLOR: "1" }, "auto", false],
    [true, { NO_COLOR: "" }, "auto", true],
    [true, { TERM: "dumb" }, "auto", false],
    [false, { NO_COLOR: "1" }, "always", true],
    [true, {}, "never", false],
  ];
  for (const [terminal, env, choice, coloured] of cases) {
    const context = { env: (name: string) => env[name], stdoutIsTerminal: () => terminal };
    const painted = paintFor(context, choice)("red", "text");
    assert.equal(painted, coloured ? "\u001b[31mtext\u001b[0m" : "text", JSON.stringify(env));
  }
});
