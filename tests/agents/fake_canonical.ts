/**
 * A program that reads lines and leaves the terminal as it is: the kernel edits, echoes and cuts a
 * line at 4,095 bytes. Every line is logged as `submitted`; `say<…>` in it is printed.
 */
import { TextLineStream } from "./text_lines.ts";
import { ByteLog, fakeOptions, print } from "./fake_terminal.ts";

const log = new ByteLog(fakeOptions().log);
print("canonical reader\n");
log.event("ready");
const logged = Deno.stdin.readable.pipeThrough(
  new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      log.received(chunk);
      controller.enqueue(chunk);
    },
  }),
);
for await (const line of logged.pipeThrough(new TextLineStream())) {
  log.event("submitted", line);
  const say = /say<(.*)>/s.exec(line)?.[1]?.replaceAll("To.:", "To:").replaceAll("\\n", "\n");
  if (say !== undefined) print(say + "\n");
}
