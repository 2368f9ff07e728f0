/** Runs inside a mount namespace of its own: `DIR`; a recorded window on a disk of 100 KB. Prints one JSON line. */
import { listRecordings, readCast } from "../../lib/recordings.ts";
import { withBroker } from "./broker.ts";

const dir = Deno.args[0]!;
const recordings = `${dir}/state/recordings`;
Deno.mkdirSync(recordings, { recursive: true, mode: 0o700 });
const mount = new Deno.Command("mount", {
  args: ["-t", "tmpfs", "-o", "size=100k,mode=700", "tmpfs", recordings],
});
if (!(await mount.output()).success) throw new Error("mount failed");

const command = ["sh", "-c", "seq 1 60000; echo DONE; read x; echo got-$x; exit 7"];
let status = -1;
let printed = "";
await withBroker({ dir, command, record: "output", service: false }, async (broker) => {
  await broker.terminal.until("DONE");
  await broker.terminal.type("alive\r");
  await broker.terminal.until("got-alive");
  status = await broker.done;
  printed = broker.terminal.text;
});
const [found] = await listRecordings(recordings);
const events = await Array.fromAsync((await readCast(found!.path)).events);
const recorded = events.map(({ data }) => data).join("");
// The test's terminal ends lines as the recording does.
const beginning = printed.slice(printed.indexOf("1\r\n"), printed.indexOf("1\r\n") + 1000);
console.log(JSON.stringify({
  status,
  whole: printed.includes("\r\n60000\r\n"),
  begins: recorded.includes(beginning),
  cut: !recorded.includes("60000"),
  told: /recording of this window ended: .*No space left/.test(
    Deno.readTextFileSync(`${dir}/state/tamq.log`),
  ),
}));
