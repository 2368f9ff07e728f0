/**
 * A program that answers every message at once with one to another repository, for ever: what two
 * agents do that thank each other.
 *
 *   usage: answering_worker.ts TARGET
 */
import { TextLineStream } from "./text_lines.ts";

const [target] = Deno.args;
let count = 0;
console.log("ready");
for await (const line of Deno.stdin.readable.pipeThrough(new TextLineStream())) {
  if (line.startsWith("From:")) console.log(`To:${target}: answer ${++count}\n`);
}
