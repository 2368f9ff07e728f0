/**
 * A client process: `SOCKET NAME COUNT`. Once told by a byte on standard input, sends that many messages of
 * its own at once, and as many under keys that all such processes share. Prints key and id of each.
 */
import { call } from "../../lib/client.ts";

const [socket = "", name = "", count = "1"] = Deno.args;
Deno.stdout.writeSync(new TextEncoder().encode("here\n"));
await Deno.stdin.read(new Uint8Array(1));
const keys = Array.from({ length: Number(count) }, (_, n) => [`${name}-${n}`, `shared-${n}`])
  .flat();
const answers = await Promise.all(keys.map(async (key) => {
  const { message_id } = await call(socket, "send", {
    client_id: "load",
    idempotency_key: key,
    sender_repo: "local",
    target_repo: "beta",
    provenance: "cli",
    body: `body of ${key}`,
  }, { timeoutMs: 60_000 });
  return [key, message_id];
}));
console.log(JSON.stringify(answers));
