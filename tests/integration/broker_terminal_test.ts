import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { runBroker } from "../../lib/broker.ts";
import { pause, systemClock } from "../../lib/base/clock.ts";
import { TamqError } from "../../lib/base/errors.ts";
import { brokerOptions, withBroker } from "../helpers/broker.ts";
import { FakeClock } from "../helpers/clock.ts";
import { TestTerminal } from "../helpers/pty.ts";
import { withTempDir } from "../helpers/temp.ts";

function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i += 65536) crypto.getRandomValues(bytes.subarray(i, i + 65536));
  return bytes;
}
const exists = (path: string) => Deno.stat(path).then(() => true, () => false);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Runs a broker to its end; returns what it printed and its status. */
async function runToEnd(command: string[], dir: string, cwd = dir) {
  let result = { text: "", status: -1 };
  await withBroker({ command, dir, cwd }, async ({ terminal, done }) => {
    const status = await done;
    terminal.drain();
    result = { text: terminal.text, status };
  });
  return result;
}

Deno.test("[B-01] two hundred megabytes of random bytes come out unchanged", () =>
  withTempDir(async (dir) => {
    const size = 200_000_000;
    // READY is cut off below: what was printed before raw mode is not part of the data.
    const script = "stty raw -echo; mkfifo copy; printf READY; read x; sha256sum < copy > sum & " +
      `head -c ${size} /dev/urandom | tee copy; wait; touch over; read x`;
    await withBroker({ command: ["sh", "-c", script], dir }, async ({ terminal }) => {
      await terminal.until("READY");
      terminal.keepText = false;
      const digest = createHash("sha256");
      const start = terminal.bytes;
      terminal.onChunk = (chunk) => void digest.update(chunk);
      await terminal.type("\n");
      for (let part = 1; part <= 20; part++) {
        await terminal.when(() => terminal.bytes - start >= size / 20 * part, "the data");
      }
      assert.equal(terminal.bytes - start, size);
      while (!await exists(`${dir}/over`)) await pause(systemClock, 5);
      const [sum] = (await Deno.readTextFile(`${dir}/sum`)).split(" ");
      assert.equal(digest.digest("hex"), sum);
    });
  }));

Deno.test("[B-01] two megabytes of random keys go in unchanged", () =>
  withTempDir(async (dir) => {
    const data = randomBytes(2 << 20);
    const command = [
      "sh",
      "-c",
      `stty raw -echo; printf READY; head -c ${data.length} | sha256sum; printf DONE`,
    ];
    await withBroker({ command, dir }, async ({ terminal }) => {
      await terminal.until("READY");
      await terminal.type(data);
      const text = await terminal.until("DONE");
      assert.ok(text.includes(sha256(data)), text);
    });
  }));

Deno.test("[B-01] the outer terminal is raw while the worker runs and restored afterwards", () =>
  withTempDir(async (dir) => {
    const terminal = new TestTerminal();
    const before = terminal.termios.raw.slice();
    await withBroker({ command: ["cat"], dir, terminal }, async ({ done }) => {
      await terminal.type("x\r");
      await terminal.until("x\r\nx\r\n");
      assert.equal(terminal.termios.canonical, false);
      assert.equal(terminal.termios.echo, false);
      await terminal.type("\x04");
      assert.equal(await done, 0);
      assert.deepEqual(terminal.termios.raw, before);
    });
  }));

Deno.test("[B-01] a new window size reaches the worker with its signal", () =>
  withTempDir((dir) => {
    const script = 'trap "stty size; exit 0" WINCH; stty size; while :; do read -t 1 x; done';
    return withBroker({ command: ["bash", "-c", script], dir }, async ({ terminal, done }) => {
      await terminal.until("24 80");
      terminal.resize({ rows: 50, columns: 132 });
      Deno.kill(Deno.pid, "SIGWINCH");
      await terminal.until("50 132");
      assert.equal(await done, 0);
    });
  }));

Deno.test("[B-01] job control: a job is stopped, continued and interrupted by keys", () =>
  withTempDir((dir) =>
    withBroker({ command: ["bash", "--norc", "--noprofile", "-i"], dir }, async (broker) => {
      const { terminal, done } = broker;
      await terminal.until(/[$#] $/);
      await terminal.type("PS1='ok> '\r");
      await terminal.until(/ok> $/);
      await terminal.type("echo go; cat\r");
      await terminal.until("\rgo\r\n"); // the shell has given its line settings back
      await terminal.type("abc\r");
      await terminal.until("abc\r\nabc");
      await terminal.type("\x1a");
      await terminal.until(/Stopped[^]*ok> $/);
      await terminal.type("fg\r");
      await terminal.until(/ok> fg\r\n[^]*cat\r\n/);
      await terminal.type("def\r");
      await terminal.until("def\r\ndef");
      const from = terminal.text.length;
      await terminal.type("\x03");
      await terminal.until("ok> ", from);
      await terminal.type("exit 5\r");
      assert.equal(await done, 5);
    })
  ));

Deno.test("[B-01][B-12] the broker ends with the command's status, or 128 and its signal", () =>
  withTempDir(async (dir) => {
    assert.equal((await runToEnd(["sh", "-c", "exit 7"], dir)).status, 7);
    assert.equal((await runToEnd(["sh", "-c", "kill -TERM $$"], dir)).status, 143);
    const { text, status } = await runToEnd(["sh", "-c", "printf last-words"], dir);
    assert.deepEqual([text, status], ["last-words", 0]);
  }));

Deno.test("[B-01] the worker starts in its directory with plain signals and three descriptors", () =>
  withTempDir(async (dir) => {
    await Deno.mkdir(`${dir}/a b #(x)`);
    const script =
      'pwd; grep -E "Sig(Blk|Ign)" /proc/self/status; ls -1 /proc/self/fd; ps -o tty= $$';
    const { text } = await runToEnd(["sh", "-c", script], dir, `${dir}/a b #(x)`);
    assert.ok(text.startsWith(`${dir}/a b #(x)\r\n`), text);
    assert.match(text, /SigBlk:\s0+\r\n/);
    // The runtime ignores SIGPIPE; the worker must not. 32 and 33 are libc's own affair.
    const ignored = BigInt("0x" + /SigIgn:\s([0-9a-f]+)\r\n/.exec(text)![1]!);
    assert.equal(ignored & ~0x180000000n, 0n);
    assert.match(text, /\n0\r\n1\r\n2\r\n3\r\n/); // 3 is the listing itself
    assert.match(text, /pts\/\d+/);
  }));

Deno.test("[B-01] a command or directory that is missing is named, and nothing is changed", () =>
  withTempDir(async (dir) => {
    await Deno.writeTextFile(`${dir}/plain`, "no program", { mode: 0o644 });
    const cases: [string[], string, string, RegExp][] = [
      [["no-such-command-x"], dir, "command_not_found", /"no-such-command-x" not found/],
      [["cat"], `${dir}/nowhere`, "directory_missing", /nowhere/],
      [[`${dir}/plain`], dir, "command_not_executable", /plain/],
      [[""], dir, "command_invalid", /empty/],
    ];
    for (const [command, cwd, reason, message] of cases) {
      const terminal = new TestTerminal();
      const before = terminal.termios.raw.slice();
      try {
        const options = await brokerOptions({ command, dir, cwd }, terminal);
        await assert.rejects(runBroker(options), (error: unknown) => {
          assert.ok(error instanceof TamqError);
          assert.equal(error.reason, reason);
          assert.match(error.message, message);
          return true;
        });
        assert.deepEqual(terminal.termios.raw, before);
        assert.equal(terminal.text, "");
      } finally {
        await terminal.close();
      }
    }
  }));

Deno.test("[B-01] a process that outlives the worker does not keep the window open", () =>
  withTempDir(async (dir) => {
    // It must have left the session before the worker ends, whose hang-up it would get else.
    const script = "setsid sleep 60 & p=$!; s=; " +
      'until [ "$s" = "$p" ]; do read -r _ _ _ _ _ s _ < /proc/$p/stat; done; echo $p; exit 3';
    const { text, status } = await runToEnd(["sh", "-c", script], dir);
    assert.equal(status, 3);
    const pid = Number(/^(\d+)\r\n$/.exec(text)![1]);
    assert.ok(pid > 1);
    Deno.kill(pid, "SIGKILL");
  }));

Deno.test("[B-01] a worker may close its terminal and open it again", () =>
  withTempDir(async (dir) => {
    const script = "exec 0<&- 1>&- 2>&-; sleep 0.1; echo back >/dev/tty";
    assert.equal((await runToEnd(["sh", "-c", script], dir)).text, "back\r\n");
  }));

Deno.test("[B-12] when the terminal goes away the worker is hung up", () =>
  withTempDir((dir) =>
    withBroker({ command: ["cat"], dir }, async ({ terminal, done }) => {
      await terminal.type("x\r");
      await terminal.until("x\r\nx");
      await terminal.close();
      assert.equal(await done, 129);
    })
  ));

Deno.test("[B-12] a worker that ignores the hang-up is killed after two seconds", () =>
  withTempDir(async (dir) => {
    const clock = new FakeClock();
    const terminal = new TestTerminal();
    const script = 'trap "" HUP; echo READY; while :; do sleep 1; done';
    const options = await brokerOptions({ command: ["sh", "-c", script], dir }, terminal);
    const done = runBroker({ ...options, clock });
    await terminal.until("READY");
    const timers = clock.timers;
    await terminal.close();
    while (clock.timers <= timers) await pause(systemClock, 5); // the hang-up is on its way
    clock.advance(1999);
    assert.equal(await Promise.race([done, pause(systemClock, 50)]), undefined);
    const ended = done.then((status) => status);
    clock.advance(1);
    const tick = (async () => {
      for (let i = 0; i < 100; i++) {
        await pause(systemClock, 20);
        clock.advance(500);
      }
    })();
    assert.equal(await ended, 137);
    await tick;
  }));

Deno.test("[B-01] a terminal that is not read holds the worker back, costs no CPU, loses nothing", () =>
  withTempDir(async (dir) => {
    const data = randomBytes(1 << 20);
    await Deno.writeFile(`${dir}/data`, data);
    const command = ["sh", "-c", "stty raw -echo; printf READY; read x; cat data; read x"];
    await withBroker({ command, dir }, async ({ terminal }) => {
      await terminal.until("READY");
      terminal.keepText = false;
      const digest = createHash("sha256");
      const start = terminal.bytes;
      terminal.onChunk = (chunk) => void digest.update(chunk);
      terminal.pause();
      await terminal.type("\n");
      await pause(systemClock, 100);
      const before = cpuTicks();
      await pause(systemClock, 400);
      assert.ok(cpuTicks() - before <= 4, "the relay spins"); // 40 ms of 400
      assert.ok(terminal.bytes - start < data.length);
      terminal.resume();
      await terminal.when(() => terminal.bytes - start >= data.length, "the data");
      assert.equal(digest.digest("hex"), sha256(data));
    });
  }));

Deno.test("[B-01] keys for a worker that does not read wait, bounded, and arrive in order", () =>
  withTempDir(async (dir) => {
    const data = randomBytes(512 * 1024);
    const command = [
      "sh",
      "-c",
      `stty raw -echo; printf READY; kill -STOP $$; head -c ${data.length} | sha256sum; printf DONE`,
    ];
    await withBroker({ command, dir }, async ({ terminal }) => {
      await terminal.until("READY");
      const pid = await workerOf(dir);
      let typed = false;
      const typing = terminal.type(data).then(() => typed = true);
      await pause(systemClock, 100);
      const before = cpuTicks();
      await pause(systemClock, 300);
      assert.ok(cpuTicks() - before <= 4, "the relay spins");
      assert.equal(typed, false, "everything was taken into memory");
      Deno.kill(pid, "SIGCONT");
      await typing;
      assert.ok((await terminal.until("DONE")).includes(sha256(data)));
    });
  }));

/** The stopped child of this process in `dir`, whichever of its threads started it. */
async function workerOf(dir: string): Promise<number> {
  for (;;) {
    for (const { name: task } of Deno.readDirSync(`/proc/${Deno.pid}/task`)) {
      const children = Deno.readTextFileSync(`/proc/${Deno.pid}/task/${task}/children`);
      for (const pid of children.trim().split(" ").filter((word) => word !== "")) {
        try {
          const stopped = /State:\s+T/.test(Deno.readTextFileSync(`/proc/${pid}/status`));
          if (stopped && Deno.readLinkSync(`/proc/${pid}/cwd`) === dir) return Number(pid);
        } catch { /* ended meanwhile */ }
      }
    }
    await pause(systemClock, 5);
  }
}

/** Hundredths of a second of this thread alone: other tests may run beside it. */
function cpuTicks(): number {
  const fields = Deno.readTextFileSync("/proc/thread-self/stat").split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

Deno.test("[B-07][B-13] an error of an observer leaves the terminal as it was", () =>
  withTempDir(async (dir) => {
    const terminal = new TestTerminal();
    const options = await brokerOptions({ command: ["cat"], dir }, terminal);
    const broken = { ...options.registry, names: () => null as unknown as string[] };
    const done = runBroker({ ...options, registry: broken });
    try {
      await terminal.type("To:beta: x\r");
      await terminal.until("To:beta: x\r\nTo:beta: x\r\n");
      await terminal.type("still here\r\x04");
      await terminal.until("still here\r\nstill here\r\n");
      assert.equal(await done, 0);
      assert.match(Deno.readTextFileSync(options.settings.logFile), /broker\.degraded/);
    } finally {
      await terminal.close();
    }
  }));

Deno.test("[E-06] without the service the window says so and works", () =>
  withTempDir((dir) =>
    withBroker({ command: ["cat"], dir, service: false }, async ({ terminal, done }) => {
      await terminal.until("messaging is off in this window (--no-service)\r\n");
      await terminal.type("x\r\x04");
      await terminal.until("x\r\nx\r\n");
      assert.equal(await done, 0);
    })
  ));
