import assert from "node:assert/strict";
import { systemClock, turn } from "../../lib/base/clock.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { parseEvent } from "../../lib/model/asciicast.ts";
import { Recording, type RecordingOptions } from "../../lib/pty/recording.ts";
import { createRecording } from "../../lib/pty/recording_file.ts";
import { listRecordings, readCast } from "../../lib/recordings.ts";
import { withAttached, withBroker } from "../helpers/broker.ts";
import { runInside } from "../helpers/cli.ts";
import { FakeClock } from "../helpers/clock.ts";
import { withTempDir } from "../helpers/temp.ts";
import { runProcess } from "../helpers/world.ts";

const SIZE = { rows: 24, columns: 80 };

async function eventsOf(path: string) {
  const { header, events } = await readCast(path);
  return { header, events: await Array.fromAsync(events) };
}
const shown = (events: readonly { code: string; data: string }[], code = "o") =>
  events.filter((event) => event.code === code).map((event) => event.data).join("");

/** What Debian's asciinema makes of it; it insists on a terminal of its own. */
async function asciinema(command: string, dir: string): Promise<string> {
  const line = `asciinema ${command} > ${dir}/played`;
  const env = { HOME: dir, PATH: Deno.env.get("PATH")!, TERM: "xterm", LANG: "C.UTF-8" };
  const { code, stdout } = await runProcess(["script", "-qec", line, "/dev/null"], {
    env,
    clearEnv: true,
  });
  assert.equal(code, 0, stdout);
  return Deno.readTextFileSync(`${dir}/played`);
}

/** The only recording below a test broker's state directory. */
async function onlyRecording(dir: string): Promise<string> {
  const found = await listRecordings(`${dir}/state/recordings`);
  assert.equal(found.length, 1);
  return found[0]!.path;
}

function recordingIn(dir: string, more: Partial<RecordingOptions> = {}) {
  const file = more.file ?? createRecording(`${dir}/r`, "alpha", systemClock.now(), systemRandom);
  const stopped: string[] = [];
  const recording = new Recording({
    file,
    title: "alpha",
    size: SIZE,
    env: (name) => `${name}-value`,
    input: false,
    secret: () => false,
    clock: systemClock,
    onStopped: (why) => stopped.push(why),
    ...more,
  });
  const path = () => [...Deno.readDirSync(`${dir}/r`)].map(({ name }) => `${dir}/r/${name}`)[0]!;
  return { recording, stopped, path };
}

Deno.test("[B-15] a recorded window: what it showed, resizes, private files, no secrets, asciinema reads it", async () => {
  await withTempDir(async (dir) => {
    Deno.env.set("TAMQ_TEST_CANARY", "canary-of-the-environment");
    try {
      const command = [
        "sh",
        "-c",
        "printf 'h\\303'; printf '\\244llo \\360\\237\\231'; printf '\\202\\n'; read x",
      ];
      await withBroker({ dir, command, record: "output", service: false }, async (broker) => {
        await broker.terminal.until("hällo 🙂");
        broker.terminal.resize({ rows: 30, columns: 101 });
        Deno.kill(Deno.pid, "SIGWINCH"); // the broker runs in this process
        await broker.terminal.type("typed\r");
        assert.equal(await broker.done, 0);
      });
    } finally {
      Deno.env.delete("TAMQ_TEST_CANARY");
    }
    const path = await onlyRecording(dir);
    assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
    assert.equal(Deno.statSync(`${dir}/state/recordings`).mode! & 0o777, 0o700);
    const { header, events } = await eventsOf(path);
    assert.equal(header.title, "alpha");
    assert.deepEqual([header.width, header.height], [80, 24]);
    assert.ok(Object.keys(header.env ?? {}).every((name) => ["SHELL", "TERM"].includes(name)));
    const text = shown(events);
    assert.match(text, /hällo 🙂\r\n/);
    assert.ok(!text.includes("\ufffd"), "a character was cut in two");
    assert.deepEqual(events.filter(({ code }) => code === "r").map(({ data }) => data), ["101x30"]);
    assert.equal(shown(events, "i"), "", "keys were recorded unasked");
    assert.ok(!Deno.readTextFileSync(path).includes("canary-of-the-environment"));
    assert.equal(await asciinema(`cat ${path}`, dir), text);
    assert.equal(await asciinema(`play -s 1000 ${path}`, dir), text);
  });
});

Deno.test("[B-15] characters that are split between reads are recorded whole, a cut one at the end is replaced", async () => {
  await withTempDir(async (dir) => {
    const { recording, path } = recordingIn(dir);
    const text = "ä日🙂 \x1b[31mß\x1b[0m";
    for (const byte of new TextEncoder().encode(text)) recording.output(new Uint8Array([byte]));
    recording.output(new Uint8Array([0xf0, 0x9f]));
    await recording.close();
    assert.equal(shown((await eventsOf(path())).events), text + "\ufffd");
  });
});

Deno.test("[B-15] keys are recorded if asked for, a password read without echo is not", async () => {
  await withTempDir(async (dir) => {
    const command = [
      "sh",
      "-c",
      "echo name; read a; stty -echo; echo secret; read b; stty echo; echo again; read c",
    ];
    await withBroker({ dir, command, record: "input", service: false }, async (broker) => {
      await broker.terminal.until("name");
      await broker.terminal.type("first\r");
      await broker.terminal.until("secret");
      await broker.terminal.type("hunter2\r");
      await broker.terminal.until("again");
      await broker.terminal.type("third\r");
      await broker.done;
    });
    const { events } = await eventsOf(await onlyRecording(dir));
    assert.equal(shown(events, "i"), "first\rthird\r");
    assert.ok(!JSON.stringify(events).includes("hunter2"));
  });
});

Deno.test("[B-15] what the broker displays is recorded where it stood; the service is told, also of the end", async () => {
  await withTempDir(async (dir) => {
    const options = { dir, command: ["bash", "--norc"], record: "output" as const };
    await withAttached(options, async ({ service, terminal, done }) => {
      assert.equal(service.attaches[0]!.recording, true);
      const settled = await service.deliver("shown, not run");
      assert.equal("outcome" in settled && settled.outcome, "displayed");
      await terminal.type("exit\r");
      await done;
    });
    assert.match(
      shown((await eventsOf(await onlyRecording(dir))).events),
      /From:beta: shown, not run/,
    );
  });
  await withTempDir(async (dir) => {
    Deno.mkdirSync(`${dir}/state`, { mode: 0o700 });
    Deno.writeTextFileSync(`${dir}/state/recordings`, "in the way");
    await withAttached(
      { dir, command: ["cat"], record: "output" },
      async ({ service, terminal, done }) => {
        assert.equal(service.attaches[0]!.recording, undefined, "it is not recorded");
        await terminal.type("works\r\x04");
        await terminal.until("works");
        assert.equal(await done, 0);
      },
    );
  });
});

Deno.test("[B-15] a full disk ends the recording, tells why, leaves whole lines, and disturbs nobody", async () => {
  await withTempDir(async (dir) => {
    const { recording, stopped } = recordingIn(dir, {
      file: fullDisk(`${dir}/small`, 4096),
    });
    const ended = new Promise<void>((resolve) => {
      const push = stopped.push.bind(stopped);
      stopped.push = (why) => (resolve(), push(why));
    });
    for (let i = 0; i < 100; i++) recording.output(new TextEncoder().encode("x".repeat(100)));
    await ended;
    assert.match(stopped.join(), /No space left/);
    assert.equal(recording.active, false);
    recording.output(new TextEncoder().encode("after")); // must not throw
    await recording.close();
    const { events } = await eventsOf(`${dir}/small`);
    assert.ok(!JSON.stringify(events).includes("after"));
  });
});

Deno.test("[B-15] a recording ends at its size; what comes too fast is left out with a marker", async () => {
  await withTempDir(async (dir) => {
    const { recording, stopped, path } = recordingIn(dir, { maxBytes: 10_000 });
    const line = new TextEncoder().encode("y".repeat(1000));
    for (let i = 0; i < 200; i++) {
      recording.output(line);
      await recording.idle();
    }
    await recording.close();
    assert.deepEqual(stopped, ["it has 10000 bytes"]);
    assert.ok(Deno.statSync(path()).size <= 10_000);
    assert.ok((await eventsOf(path())).events.length > 3);
  });
  await withTempDir(async (dir) => {
    const { recording, path } = recordingIn(dir);
    const chunk = new Uint8Array(64 * 1024).fill(0x7a);
    for (let i = 0; i < 160; i++) recording.output(chunk); // 10 MiB in one turn
    await recording.idle();
    recording.output(new TextEncoder().encode("end"));
    await recording.close();
    const { events } = await eventsOf(path());
    const lost = /^tamq: (\d+) bytes were not recorded$/.exec(shown(events, "m"));
    assert.ok(lost, "no marker");
    assert.equal(shown(events).length, 160 * 64 * 1024 - Number(lost[1]) + 3);
  });
});

Deno.test("[B-15] a disk that never answers delays neither output nor, beyond two seconds, the end", async () => {
  await withTempDir(async (dir) => {
    const asked = Promise.withResolvers<void>();
    const stuck = fullDisk(`${dir}/stuck`, 1 << 20);
    const clock = new FakeClock();
    const { recording } = recordingIn(dir, {
      clock,
      file: {
        ...stuck,
        write: () => {
          asked.resolve();
          return new Promise(() => {});
        },
      },
    });
    const chunk = new Uint8Array(64 * 1024).fill(0x7a);
    recording.output(chunk);
    await asked.promise;
    for (let i = 0; i < 1000; i++) recording.output(chunk); // 64 MB, of which 8 are kept
    let closed = false;
    const closing = recording.close().then(() => closed = true);
    clock.advance(1999);
    await turn();
    assert.equal(closed, false);
    clock.advance(1);
    await closing;
    assert.equal(recording.active, false);
  });
});

Deno.test("[B-15] tamq record list, play, export, remove; invalid lines are told with their number", async () => {
  await withTempDir(async (dir) => {
    const env = { HOME: dir, TAMQ_STATE_DIR: dir };
    assert.match((await runInside(["record", "list"], { env })).stderr, /nothing is recorded/);
    const file = createRecording(`${dir}/recordings`, "al/pha", systemClock.now(), systemRandom);
    const recording = new Recording({
      file,
      title: "al/pha",
      size: SIZE,
      env: () => undefined,
      input: false,
      secret: () => false,
      clock: systemClock,
      onStopped: () => {},
    });
    recording.output(new TextEncoder().encode("\x1b]52;c;aGk=\x07\x1b]0;ti"));
    recording.output(new TextEncoder().encode("tle\x07\x1b[31mred\x1b[0m\x1b[6n\x1b["));
    recording.output(new TextEncoder().encode("cdone\r\n"));
    const active = JSON.parse((await runInside(["record", "list", "--json"], { env })).stdout);
    assert.equal(active.active, true);
    const offered = (await runInside(["__complete", "record", "play", ""], { env })).stdout;
    assert.deepEqual(offered.split("\n").map((line) => line.split("\t")[0]), [
      "al/pha",
      active.id,
      "",
    ]);
    const refused = await runInside(["record", "remove", active.id], { env });
    assert.match(refused.stderr, /is being recorded/);
    await recording.close();
    const listed = (await runInside(["record", "list"], { env })).stdout;
    assert.match(listed, /al\/pha/);
    assert.ok(!listed.includes("being recorded"));
    const { id, path } = JSON.parse(
      (await runInside(["record", "list", "--json"], { env })).stdout,
    );
    assert.equal(
      (await runInside(["record", "play", "al"], { env })).code,
      1,
      "no such repository",
    );
    const played = await runInside(["record", "play", id.slice(0, 16)], { env });
    assert.equal(played.stdout, "\x1b[31mred\x1b[0mdone\r\n");
    const exported = await runInside(["record", "export", id, `${dir}/out.cast`], { env });
    assert.equal(exported.code, 0, exported.stderr);
    assert.equal(Deno.readTextFileSync(`${dir}/out.cast`), Deno.readTextFileSync(path));
    assert.equal(Deno.statSync(`${dir}/out.cast`).mode! & 0o777, 0o600);
    const again = await runInside(["record", "export", id, `${dir}/out.cast`], { env });
    assert.match(again.stderr, /is there already/);
    Deno.writeTextFileSync(`${dir}/bad.cast`, Deno.readTextFileSync(path) + '[0, "o", "back"]\n');
    const bad = await runInside(["record", "export", `${dir}/bad.cast`], { env });
    assert.match(bad.stderr, /line \d+: the event is earlier than the one before/);
    const unnamed = await runInside(["record", "remove", "--yes"], { env });
    assert.deepEqual([unnamed.code, unnamed.stdout], [2, ""]);
    assert.match(unnamed.stderr, /which recordings\?\nhint: name some, or give --all/);
    assert.equal((await runInside(["record", "remove", "--all"], { env })).code, 2);
    assert.equal(
      (await runInside(["record", "remove", "--all", "--yes"], { env })).stdout,
      `${id}\n`,
    );
    assert.deepEqual([...Deno.readDirSync(`${dir}/recordings`)], []);
  });
});

Deno.test("[B-15] the validator refuses what asciicast v2 is not", () => {
  for (
    const [line, why] of [
      ["[1]", /three parts/],
      ['{"a":1}', /three parts/],
      ['["1","o","x"]', /no time/],
      ['[-1,"o","x"]', /no time/],
      ['[1,"","x"]', /no code/],
      ['[1,"o",5]', /no text/],
      ['[1,"r","80"]', /no size/],
      ["[1,", /no JSON/],
    ] as const
  ) assert.throws(() => parseEvent(line), why, line);
});

/** A file on a disk that takes so many bytes. */
function fullDisk(path: string, left: number): RecordingOptions["file"] {
  const file = Deno.openSync(path, { createNew: true, write: true });
  const take = (bytes: Uint8Array) => {
    if (left === 0) throw new Error("No space left on device (os error 28)");
    const some = bytes.subarray(0, left);
    left -= some.length;
    return some;
  };
  return {
    writeSync: (bytes) => file.writeSync(take(bytes)),
    write: async (bytes) => await file.write(take(bytes)),
    truncateSync: (size) => file.truncateSync(size),
    close: () => file.close(),
  };
}
