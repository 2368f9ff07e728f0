/**
 * A broker as a process of its own, for tests: attaches `beta` at the socket given, shows every
 * delivery at once (its id, one line each on standard output), reports it, and attaches again with
 * what it could not report. Ends with standard input. With a spool directory as second argument it
 * first puts one message into a spool of its own, which it never sends.
 */
import { TamqError } from "../../lib/base/errors.ts";
import type { Settlement } from "../../lib/protocol/schema.ts";
import { TestWindow } from "./window.ts";

const socket = Deno.args[0]!;
const ended = Deno.stdin.readable.pipeTo(new WritableStream()).then(() => "ended" as const);
const encoder = new TextEncoder();
const beta = new TestWindow("beta");
let outstanding = undefined as Settlement | undefined;

const spoolDir = Deno.args[1];
if (spoolDir !== undefined) {
  const { SpoolFile } = await import("../../lib/pty/spool_file.ts");
  const spool = SpoolFile.create(spoolDir, { repo: "beta", path: "/repos/beta", instance: "i9" });
  const record = {
    sequence: 1,
    target: "alpha",
    body: "last words",
    provenance: "worker",
  } as const;
  spool.append({ type: "message", ...record });
  await spool.sync();
}

async function receive(): Promise<void> {
  for (;;) {
    try {
      using stream = await beta.attach(socket, outstanding);
      outstanding = undefined;
      await stream.open();
      for (let frame; (frame = await stream.next()) !== undefined;) {
        if (frame.type === "settled") outstanding = undefined;
        if (frame.type !== "deliver") continue;
        Deno.stdout.writeSync(encoder.encode(frame.message_id + "\n"));
        outstanding = { lease_token: frame.lease_token, outcome: "written" };
        await stream.stream.send({ type: "settle", ...outstanding });
      }
    } catch (error) {
      if (!(error instanceof TamqError) || error.code !== "UNAVAILABLE") throw error;
      await new Promise((resolve) => setTimeout(resolve, 5)); // the service is being restarted
    }
  }
}

await Promise.race([receive(), ended]);
await beta[Symbol.asyncDispose]();
Deno.exit(0);
