/**
 * A window without a terminal in a process of its own, so that nobody else here is taken for its
 * worker: says each body that it is given as a JSON line, and that it has written it once a line
 * comes on standard input. Arguments: the service's socket, the repository.
 */
import { TestWindow } from "./window.ts";

const [socket, repo] = Deno.args as [string, string];
const open = new TestWindow(repo);
using stream = await open.attach(socket);
await stream.open();
console.log(JSON.stringify({ attached: repo }));
const lines = Deno.stdin.readable.getReader();
for (;;) {
  const { envelope, lease_token } = await stream.delivery();
  console.log(JSON.stringify({ body: envelope.body }));
  if ((await lines.read()).done) break;
  await stream.settle({ lease_token, outcome: "written" });
}
