import assert from "node:assert/strict";
import { ticksNow } from "../../../lib/peer_ffi.ts";
import { ancestry, descendants, describe, identify, isAlive } from "../../../lib/base/proc.ts";

Deno.test("[E-01] a process is told from a later one with its pid, and a dead one is gone", async () => {
  const child = new Deno.Command("sleep", { args: ["60"] }).spawn();
  const identity = identify(child.pid)!;
  assert.equal(isAlive(identity), true);
  assert.equal(isAlive({ pid: child.pid, start: identity.start + "1" }), false);
  assert.equal(describe(child.pid)!.command, "sleep");
  assert.deepEqual(ancestry(child.pid).slice(0, 2), [child.pid, Deno.pid]);
  // As of a moment before its start it is not the process of that pid.
  const born = Number(identity.start.split(":")[1]);
  assert.deepEqual(ancestry(child.pid, ticksNow()), ancestry(child.pid));
  assert.deepEqual(ancestry(child.pid, born), ancestry(child.pid));
  assert.deepEqual(ancestry(child.pid, born - 1), []);
  child.kill("SIGKILL");
  await child.status;
  assert.equal(isAlive(identity), false);
  assert.equal(identify(child.pid), undefined);
  assert.deepEqual(ancestry(child.pid), []);
});

Deno.test("[B-16] descendants include children that another thread than the main one started", async () => {
  // python starts `sleep` from a second thread, says its pid, and waits for it.
  const program = [
    "import subprocess, threading",
    "def run():",
    "    p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()",
    "t = threading.Thread(target=run); t.start(); t.join()",
  ].join("\n");
  const child = new Deno.Command("python3", { args: ["-c", program], stdout: "piped" }).spawn();
  const reader = child.stdout.getReader();
  const first = await reader.read();
  const grandchild = Number(new TextDecoder().decode(first.value));
  try {
    assert.deepEqual(descendants(child.pid), [child.pid, grandchild]);
    assert.ok(descendants(Deno.pid).includes(grandchild));
  } finally {
    Deno.kill(grandchild, "SIGKILL");
    await reader.cancel();
    await child.status;
  }
});

Deno.test("[B-04] a background job whose parent ended still belongs to its terminal's session", async () => {
  // setsid makes a session leader; its subshell starts a job and ends, so that the job hangs under 1.
  const script = "(sleep 60 & echo $!) ; exec sleep 61";
  const leader = new Deno.Command("setsid", { args: ["sh", "-c", script], stdout: "piped" })
    .spawn();
  const reader = leader.stdout.getReader();
  const job = Number(new TextDecoder().decode((await reader.read()).value));
  try {
    const chain = ancestry(job);
    assert.equal(chain[0], job);
    assert.ok(chain.includes(leader.pid), `${leader.pid} in ${chain}`);
    assert.ok(chain.includes(Deno.pid), "and the leader's own ancestors");
  } finally {
    Deno.kill(job, "SIGKILL");
    leader.kill("SIGKILL");
    await reader.cancel();
    await leader.status;
  }
});
