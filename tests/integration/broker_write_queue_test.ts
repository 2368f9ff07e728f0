import assert from "node:assert/strict";
import { WriteQueue } from "../../lib/pty/write_queue.ts";
import {
  closeFd,
  getTermios,
  openPty,
  openSlave,
  POLLIN,
  PollSet,
  readFd,
  setNonblocking,
  setTermios,
} from "../../lib/pty_ffi.ts";
import { FakeClock } from "../helpers/clock.ts";

/** A raw terminal that nobody reads until the test does. */
function rig() {
  const { master, slavePath } = openPty({ rows: 24, columns: 80 });
  const slave = openSlave(slavePath);
  setNonblocking(slave);
  setTermios(master, getTermios(master)!.toRaw());
  const clock = new FakeClock();
  const queue = new WriteQueue(master, clock);
  const chunk = new Uint8Array(65536);
  const decoder = new TextDecoder();
  const poll = new PollSet(1);
  let text = "";
  return {
    clock,
    queue,
    /** Reads, and lets the queue write on, until `end` was read and nothing is queued. */
    readTo(end: string): string {
      for (let tries = 0; tries < 500 && !(text.endsWith(end) && queue.pending === 0); tries++) {
        poll.set(0, slave, POLLIN);
        poll.now(20);
        for (let n; (n = readFd(slave, chunk)) > 0;) {
          text += decoder.decode(chunk.subarray(0, n), { stream: true });
        }
        queue.flush();
      }
      return text;
    },
    close() {
      closeFd(slave);
      closeFd(master);
    },
  };
}
const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("[B-08] what is written by half in time is cut there, closed by its tail, and told", async () => {
  const { clock, queue, readTo, close } = rig();
  try {
    const body = "x".repeat(200_000);
    const sent = queue.send(bytes(`<${body}>`), 2000, bytes("TAIL"));
    queue.push(bytes("operator"));
    clock.advance(1999);
    assert.ok(queue.pending > 100_000);
    clock.advance(1);
    assert.equal(await sent, "stalled");
    assert.equal(clock.timers, 0);
    const text = readTo("operator");
    assert.match(text, /^<x{4000,}TAILoperator$/);
    assert.ok(text.length < body.length);
    assert.equal(queue.pending, 0);
  } finally {
    close();
  }
});

Deno.test("[B-08] of what could not begin in time nothing is ever written", async () => {
  const { clock, queue, readTo, close } = rig();
  try {
    queue.push(bytes("y".repeat(200_000)));
    const sent = queue.send(bytes("late"), 2000, bytes("TAIL"));
    clock.advance(2000);
    assert.equal(await sent, "blocked");
    queue.push(bytes("z"));
    const text = readTo("z");
    assert.equal(text, "y".repeat(200_000) + "z");
  } finally {
    close();
  }
});

Deno.test("[B-08] everything that is read in time is written, in order", async () => {
  const { clock, queue, readTo, close } = rig();
  try {
    const first = queue.send(bytes("a".repeat(100_000)), 2000);
    const second = queue.send(bytes("b"), 2000);
    assert.equal(readTo("b"), "a".repeat(100_000) + "b");
    assert.deepEqual([await first, await second, clock.timers], ["written", "written", 0]);
  } finally {
    close();
  }
});

Deno.test("[B-12] a terminal that is gone is told and keeps nothing", async () => {
  const { queue, close } = rig();
  const sent = queue.send(bytes("a".repeat(200_000)), 2000);
  queue.drop();
  assert.equal(await sent, "gone");
  assert.deepEqual([queue.gone, queue.pending], [true, 0]);
  assert.equal(await queue.send(bytes("x"), 2000), "gone");
  close();
});
