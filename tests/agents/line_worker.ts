/**
 * A scripted worker that reads lines as a plain program does: every line it receives goes to the
 * log file as one JSON string; commands make it speak.
 *
 *   usage: line_worker.ts LOG [REPLY]
 *
 * `say TEXT` prints TEXT (\n for a line break); a `From:` line is answered with REPLY, once.
 */
import { TextLineStream } from "./text_lines.ts";

const [log, reply] = Deno.args;
let answered = false;
const unescape = (text: string) => text.replaceAll("\\n", "\n");
console.log("ready");
for await (const line of Deno.stdin.readable.pipeThrough(new TextLineStream())) {
  await Deno.writeTextFile(log!, JSON.stringify(line) + "\n", { append: true });
  if (line.startsWith("say ")) console.log(unescape(line.slice(4)));
  if (line.startsWith("From:") && reply !== undefined && !answered) {
    answered = true;
    console.log(unescape(reply));
  }
}
