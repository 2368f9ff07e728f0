/** A window on `beta` that takes nothing, in a process of its own: `SOCKET`. Ends with standard input. */
import { TestWindow } from "./window.ts";

const beta = new TestWindow("beta");
using _stream = await beta.attach(Deno.args[0]!);
await Deno.stdin.readable.pipeTo(new WritableStream());
await beta[Symbol.asyncDispose]();
Deno.exit(0);
