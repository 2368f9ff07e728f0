/**
 * A worker that never stops printing: numbered rows, and among them blocks that take it a while, so
 * that there is mostly a half-printed one. Every line it receives goes to the log file as JSON.
 *
 *   usage: counting_worker.ts TARGET LOG
 */
import { TextLineStream } from "./text_lines.ts";

const [target, log] = Deno.args;
const TICK_MS = 10, PLAIN = 10, BLOCK = 60;
let count = 0, block = 0, row = 0;

setInterval(() => {
  const number = `row ${++count}`;
  if (row === PLAIN) console.log(`To:${target}: block ${++block}`);
  console.log(row < PLAIN ? `| ${number}` : `part of ${block}, ${number}`);
  if (++row === PLAIN + BLOCK) {
    console.log("");
    row = 0;
  }
}, TICK_MS);
for await (const line of Deno.stdin.readable.pipeThrough(new TextLineStream())) {
  await Deno.writeTextFile(log!, JSON.stringify(line) + "\n", { append: true });
}
