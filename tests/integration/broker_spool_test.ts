import assert from "node:assert/strict";
import { TamqError } from "../../lib/base/errors.ts";
import { silentLog } from "../../lib/base/log.ts";
import { onProbe } from "../../lib/base/probe.ts";
import { pause, systemClock } from "../../lib/base/clock.ts";
import {
  isPermanent,
  type OrphanSpool,
  orphanSpools,
  Spool,
  type SpooledSend,
  spooledSend,
  type SpoolOptions,
} from "../../lib/pty/spool.ts";
import { FakeClock } from "../helpers/clock.ts";
import { withTempDir } from "../helpers/temp.ts";

const header = { repo: "alpha", path: "/alpha", instance: "i1" };
const down = () => new TamqError("UNAVAILABLE", "service_unavailable", "nobody listens");

interface Rig {
  spool: Spool;
  sent: SpooledSend[];
  notices: string[];
  /** What `send` does; admits by default. */
  answer: (request: SpooledSend) => unknown;
  attempts: number;
  attempted: () => Promise<void>;
}

function open(dir: string, options: Partial<SpoolOptions> = {}): Rig {
  let changed = Promise.withResolvers<void>();
  const rig: Rig = {
    sent: [],
    notices: [],
    attempts: 0,
    answer: () => ({}),
    attempted: () => changed.promise,
    spool: undefined as unknown as Spool,
  };
  rig.spool = new Spool({
    dir: `${dir}/spool`,
    header,
    clock: systemClock,
    log: silentLog,
    notice: (text) => rig.notices.push(text),
    send: async (request) => {
      rig.attempts++;
      changed.resolve();
      changed = Promise.withResolvers<void>();
      await rig.answer(request);
      rig.sent.push(request);
    },
    ...options,
  });
  return rig;
}
/**
 * The one spool that may be adopted. Waits: a process that another test is just starting holds our
 * locks too, until its exec closes them.
 */
async function adopt(dir: string): Promise<OrphanSpool> {
  for (;;) {
    const [orphan, ...more] = orphanSpools(`${dir}/spool`);
    assert.equal(more.length, 0);
    if (orphan !== undefined) return orphan;
    await pause(systemClock, 5);
  }
}

const fail = (error: unknown) => () => {
  throw error;
};

Deno.test("[B-13] captured messages are stored before they are sent, in order, and leave no file", () =>
  withTempDir(async (dir) => {
    const rig = open(dir);
    let stored = "";
    rig.answer = () => stored ||= Deno.readTextFileSync(`${dir}/spool/i1.spool`);
    for (const body of ["one", "two", "three"]) rig.spool.add("beta", body, "worker");
    assert.equal(await rig.spool.flush(5000), true);
    assert.ok(stored.includes('"body":"one"'));
    assert.equal(Deno.statSync(`${dir}/spool`).mode! & 0o777, 0o700);
    assert.equal(Deno.statSync(`${dir}/spool/i1.spool`).mode! & 0o777, 0o600);
    await rig.spool.close();
    assert.deepEqual(rig.sent.map(({ body, idempotency_key }) => [idempotency_key, body]), [
      ["1", "one"],
      ["2", "two"],
      ["3", "three"],
    ]);
    assert.equal(rig.sent[0]!.client_id, "broker-i1");
    assert.deepEqual([...Deno.readDirSync(`${dir}/spool`)], []);
  }));

Deno.test("[B-13, C-05] each message is appended, synced, sent and marked as advanced, in that order; once none waits the file holds no body", () =>
  withTempDir(async (dir) => {
    const steps: string[] = [];
    const offs = [
      onProbe("spool.append", (record) => steps.push((record as { type: string }).type)),
      onProbe("spool.synced", () => steps.push("synced")),
      onProbe("spool.cleared", () => steps.push("cleared")),
    ];
    const spooled = () =>
      [...Deno.readDirSync(`${dir}/spool`)].map(({ name }) =>
        Deno.readTextFileSync(`${dir}/spool/${name}`)
      ).join(
        "",
      );
    try {
      const rig = open(dir);
      rig.answer = () => steps.push("send");
      rig.spool.add("beta", "one", "worker");
      rig.spool.add("beta", "two", "worker");
      assert.equal(await rig.spool.flush(5000), true);
      assert.deepEqual(
        steps,
        ["header", "message", "message", "synced", "send", "advance", "send", "cleared"],
      );
      assert.match(spooled(), /^\{"type":"header"[^\n]*\n$/);
      rig.spool.add("beta", "three", "worker");
      assert.equal(await rig.spool.flush(5000), true);
      assert.deepEqual(steps.slice(8), ["message", "synced", "send", "cleared"]);
      assert.match(spooled(), /^\{"type":"header"[^\n]*\n$/);
      await rig.spool.close();
    } finally {
      offs.forEach((off) => off());
    }
  }));

Deno.test("[B-13] while the service is down messages wait; they go once, in order, when it is back", () =>
  withTempDir(async (dir) => {
    const rig = open(dir, { clock: new FakeClock() });
    rig.answer = fail(down());
    rig.spool.add("beta", "one", "worker");
    rig.spool.add("beta", "two", "operator");
    await rig.attempted();
    assert.equal(rig.spool.pending, 2);
    rig.answer = () => {};
    assert.equal(await rig.spool.flush(5000), true);
    assert.deepEqual(rig.sent.map(({ body }) => body), ["one", "two"]);
    assert.deepEqual(rig.notices, []);
    await rig.spool.close();
  }));

Deno.test("[B-13] a permanent refusal is told with its reason and does not hold the others back", () =>
  withTempDir(async (dir) => {
    const rig = open(dir);
    rig.answer = ({ target_repo }) => {
      if (target_repo === "gone") {
        throw new TamqError("NOT_FOUND", "unknown_target", "no repository gone", { hint: "gone?" });
      }
    };
    rig.spool.add("gone", "secret text", "worker");
    rig.spool.add("beta", "two", "worker");
    assert.equal(await rig.spool.flush(5000), true);
    assert.deepEqual(rig.sent.map(({ body }) => body), ["two"]);
    assert.deepEqual(rig.notices, [
      "message to gone NOT sent, unknown_target: no repository gone (gone?)",
    ]);
    await rig.spool.close();
  }));

Deno.test("[B-13] which refusals are permanent", () => {
  const permanent = [
    new TamqError("INVALID_ARGUMENT", "body_binary", ""),
    new TamqError("NOT_FOUND", "unknown_target", ""),
    new TamqError("FAILED_PRECONDITION", "ambiguous_repository", ""),
    new TamqError("ABORTED", "idempotency_conflict", ""),
  ];
  const passing = [
    down(),
    new TamqError("DEADLINE_EXCEEDED", "no_answer", ""),
    new TamqError("RESOURCE_EXHAUSTED", "too_many_connections", ""),
    new TamqError("UNAUTHENTICATED", "peer_refused", ""),
    new TamqError("PERMISSION_DENIED", "sender_mismatch", ""),
    new TamqError("FAILED_PRECONDITION", "registry_unavailable", ""),
    new Error("anything"),
  ];
  for (const error of permanent) assert.equal(isPermanent(error), true, error.reason);
  for (const error of passing) assert.equal(isPermanent(error), false, error.message);
});

Deno.test("[B-13] a spool whose owner ended unsent is adopted, once, in order", () =>
  withTempDir(async (dir) => {
    const rig = open(dir, { clock: new FakeClock() });
    rig.answer = fail(down());
    rig.spool.add("beta", "one", "worker");
    rig.spool.add("beta", "two", "operator");
    await rig.attempted();
    assert.deepEqual(orphanSpools(`${dir}/spool`), []); // its owner lives: locked
    await rig.spool.close();
    const orphan = await adopt(dir);
    assert.deepEqual(orphan.header, header);
    assert.deepEqual(spooledSend(orphan.header, orphan.records[1]!), {
      client_id: "broker-i1",
      idempotency_key: "2",
      sender_repo: "alpha",
      target_repo: "beta",
      provenance: "operator",
      body: "two",
    });
    assert.deepEqual(orphanSpools(`${dir}/spool`), []); // ours now
    orphan.advance(1);
    orphan.close();
    const again = await adopt(dir);
    assert.deepEqual(again.records.map(({ body }) => body), ["two"]);
    again.remove();
    again.close();
    assert.deepEqual(orphanSpools(`${dir}/spool`), []);
  }));

Deno.test("[B-13] a record torn at any byte loses no record before it", () =>
  withTempDir(async (dir) => {
    const rig = open(dir, { clock: new FakeClock() });
    rig.answer = fail(down());
    rig.spool.add("beta", "one", "worker");
    rig.spool.add("beta", "žluťoučký 🐎", "worker");
    await rig.attempted();
    await rig.spool.close();
    const file = `${dir}/spool/i1.spool`;
    const whole = await Deno.readFile(file);
    const start = whole.lastIndexOf(0x0a, whole.length - 2) + 1;
    for (let length = start; length < whole.length; length++) {
      await Deno.writeFile(file, whole.subarray(0, length));
      const orphan = await adopt(dir);
      assert.deepEqual(orphan.records.map(({ body }) => body), ["one"], `cut at ${length}`);
      // What is appended after the torn record is read again.
      orphan.advance(1);
      orphan.close();
      const again = await adopt(dir);
      assert.deepEqual(again.records, []);
      again.close();
    }
  }));

Deno.test("[B-13] a spool that is no spool is reported and left alone", () =>
  withTempDir(async (dir) => {
    await Deno.writeTextFile(`${dir}/x.spool`, "no json\nat all\n");
    await Deno.writeTextFile(`${dir}/empty.spool`, "");
    await Deno.writeTextFile(`${dir}/other.txt`, "");
    const damaged: string[] = [];
    assert.deepEqual(orphanSpools(dir, (file) => damaged.push(file)), []);
    assert.deepEqual(damaged, [`${dir}/x.spool`]);
    assert.equal(await Deno.readTextFile(`${dir}/x.spool`), "no json\nat all\n");
    assert.deepEqual(orphanSpools(`${dir}/absent`), []);
  }));

Deno.test("[B-13] kill -9 in the middle of captures: every stored message is adopted", () =>
  withTempDir(async (dir) => {
    const writer = new URL("../agents/spool_writer.ts", import.meta.url).pathname;
    for (let round = 0; round < 5; round++) {
      const child = new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", "--no-check", "--quiet", writer, `${dir}/spool`, `r${round}`],
        stdout: "piped",
        stdin: "null",
      }).spawn();
      // It prints the number of each message once its send is tried, which is after the sync.
      let text = "";
      const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
      while (text.split("\n").length < 20 + round * 7) text += (await reader.read()).value ?? "";
      child.kill("SIGKILL");
      await child.status;
      for (let more; !(more = await reader.read()).done;) text += more.value;
      const told = text.trim().split("\n").map(Number).filter((n) => n > 0);
      const orphan = await adopt(dir);
      const kept = orphan.records.map(({ sequence }) => sequence);
      assert.deepEqual(kept, kept.map((_, i) => i + 1));
      assert.ok(kept.length >= Math.max(...told), `${kept.length} of ${Math.max(...told)}`);
      orphan.remove();
      orphan.close();
    }
  }));

Deno.test("[B-13] a disk that cannot be written: told once, sent from memory, then stored again", () =>
  withTempDir(async (dir) => {
    const rig = open(dir);
    let full = true;
    const off = onProbe("spool.append", () => {
      if (full) throw new Error("No space left on device (os error 28)");
    });
    try {
      rig.spool.add("beta", "one", "worker");
      rig.spool.add("beta", "two", "worker");
      assert.equal(await rig.spool.flush(5000), true);
      assert.deepEqual(rig.sent.map(({ body }) => body), ["one", "two"]);
      assert.deepEqual(rig.notices, [
        `cannot write ${dir}/spool: messages are kept in memory only`,
      ]);
      full = false;
      rig.answer = fail(down());
      rig.spool.add("beta", "three", "worker");
      await rig.attempted();
      await rig.spool.close();
      const orphan = await adopt(dir);
      assert.deepEqual(orphan.records.map(({ body }) => body), ["three"]);
      orphan.close();
    } finally {
      off();
    }
  }));

Deno.test("[B-13] a half-written record on a full disk leaves the file whole", () =>
  withTempDir(async (dir) => {
    const mounted = await mountSmall(dir);
    if (!mounted) return; // needs root; the test above covers the rest
    try {
      const rig = open(dir, { clock: new FakeClock() });
      rig.answer = fail(down());
      for (let i = 0; i < 12; i++) rig.spool.add("beta", `${i} ${"x".repeat(8000)}`, "worker");
      await rig.attempted();
      assert.equal(rig.notices.length, 1);
      assert.equal(rig.spool.pending, 12); // all of them, whether stored or not
      await rig.spool.close();
      const orphan = await adopt(dir);
      const kept = orphan.records.map(({ sequence }) => sequence);
      assert.ok(kept.length > 3 && kept.length < 12);
      assert.deepEqual(kept, kept.map((_, i) => i + 1));
      orphan.close();
    } finally {
      await new Deno.Command("umount", { args: [`${dir}/spool`] }).output();
    }
  }));

async function mountSmall(dir: string): Promise<boolean> {
  await Deno.mkdir(`${dir}/spool`, { mode: 0o700 });
  const args = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", `${dir}/spool`];
  return (await new Deno.Command("mount", { args, stderr: "null" }).output()).success;
}

Deno.test("[B-13] what waits is bounded, and what is refused for that is told", () =>
  withTempDir(async (dir) => {
    const rig = open(dir, { clock: new FakeClock(), maxBytes: 100 });
    rig.answer = fail(down());
    assert.equal(rig.spool.add("beta", "x".repeat(90), "worker"), true);
    assert.equal(rig.spool.add("beta", "x".repeat(20), "worker"), false);
    assert.match(rig.notices[0]!, /NOT sent: too many messages wait/);
    await rig.attempted();
    await rig.spool.close();
  }));
