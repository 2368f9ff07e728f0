/** Progress of long commands: on a terminal's standard error, late, seldom, and gone at the end. */
import assert from "node:assert/strict";
import type { CliContext } from "../../../lib/cli/context.ts";
import { grouped, progress } from "../../../lib/cli/progress.ts";
import { FakeClock } from "../../helpers/clock.ts";

function rig(terminal: boolean, outputToTerminal = false) {
  const clock = new FakeClock();
  const written: string[] = [];
  const context = {
    clock,
    stderrIsTerminal: () => terminal,
    process: { stderr: { write: (text: string) => void written.push(text) } },
  } as unknown as CliContext;
  return { clock, written, shown: progress(context, outputToTerminal) };
}

Deno.test("[C-01] progress: nothing in the first second, then at most four times a second, cleared at the end", () => {
  const { clock, written, shown } = rig(true);
  let asked = 0;
  const step = (n: number) =>
    shown.show(() => {
      asked++;
      return `${grouped(n)} messages`;
    });
  for (let n = 0; n < 1000; n++) step(n);
  clock.advance(999);
  step(1000);
  assert.deepEqual([written, asked], [[], 0], "the text is not even made");
  clock.advance(1);
  step(1234);
  clock.advance(249);
  step(2000);
  clock.advance(1);
  step(1234567);
  assert.deepEqual(written, ["\r1,234 messages\u001b[K", "\r1,234,567 messages\u001b[K"]);
  shown.end();
  shown.end();
  assert.deepEqual(written.slice(2), ["\r\u001b[K"]);
});

Deno.test("[C-01] progress: nothing at all where standard error is no terminal, or the records go to one", () => {
  for (const { clock, written, shown } of [rig(false), rig(true, true)]) {
    for (let n = 0; n < 100; n++) {
      clock.advance(1000);
      shown.show(() => "text");
    }
    shown.end();
    assert.deepEqual(written, []);
  }
});
