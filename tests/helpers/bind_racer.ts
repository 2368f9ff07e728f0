/** Binds the path given whenever told to by a line on standard input; holds it until the next one. */
import { systemClock } from "../../lib/base/clock.ts";
import { TamqError } from "../../lib/base/errors.ts";
import { bindSocket } from "../../lib/ipc/bind.ts";

const path = Deno.args[0]!;
const say = (text: string) => Deno.stdout.writeSync(new TextEncoder().encode(text + "\n"));
const told = new Uint8Array(1);
say("here");
while (await Deno.stdin.read(told) !== null) {
  try {
    const bound = await bindSocket(path, systemClock);
    say("bound");
    // Answers the others' look, as a service does.
    const accepting = (async () => {
      for await (const conn of bound.listener) conn.close();
    })();
    await Deno.stdin.read(told);
    if (!await bound.close()) Deno.exit(1); // somebody took our place: the test has failed
    await accepting;
  } catch (error) {
    say(error instanceof TamqError ? error.reason : String(error));
    await Deno.stdin.read(told);
  }
}
