/**
 * The least that a relay of a terminal can be under this runtime: one poll, reads, writes, nothing
 * observed, nothing kept: `child DIR CMD…`. What a window takes longer than this is its own.
 */
import { Session } from "../../lib/pty/session.ts";
import { OuterTerminal } from "../../lib/pty/terminal.ts";
import { AGAIN, POLLIN, POLLOUT, PollSet, readFd, writeFd } from "../../lib/pty_ffi.ts";

const [directory, ...command] = Deno.args;
const terminal = new OuterTerminal();
const session = Session.start({
  command,
  directory: directory!,
  env: Deno.env.toObject(),
  size: terminal.size,
});
terminal.enterRaw();
const poll = new PollSet(3), room = new PollSet(1);
const chunk = new Uint8Array(64 * 1024);

async function pass(from: number, to: number): Promise<boolean> {
  const n = readFd(from, chunk);
  for (let done = 0; done < n;) {
    const written = writeFd(to, chunk.subarray(done, n));
    if (written === AGAIN) {
      room.set(0, to, POLLOUT);
      await room.wait();
    } else done += written;
  }
  return n !== 0;
}

for (let busy = false;;) {
  poll.set(0, session.master, POLLIN);
  poll.set(1, terminal.input, POLLIN);
  poll.set(2, session.pidfd, POLLIN);
  // As the relay does: what follows within a millisecond is waited for on this thread.
  busy = busy && poll.now(1) > 0;
  if (!busy) await poll.wait();
  busy = true;
  if (poll.ready(1) !== 0) await pass(terminal.input, session.master);
  if (poll.ready(0) !== 0) await pass(session.master, terminal.output);
  if (poll.ready(2) !== 0) break;
}
terminal.restore();
Deno.exit(0);
