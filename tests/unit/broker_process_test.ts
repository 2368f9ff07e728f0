import assert from "node:assert/strict";
import { brokerProcesses, isBrokerCommand, windowOfAncestry } from "../../lib/broker_process.ts";
import { FakeClock } from "../helpers/clock.ts";

Deno.test("[B-04] a broker is known by its arguments, however tamq is installed", () => {
  assert.ok(
    isBrokerCommand(["/usr/bin/deno", "run", "main.ts", "broker", "--repo=a", "--", "cat"]),
  );
  assert.ok(isBrokerCommand(["/opt/tamq", "broker", "--repo", "a"]));
  assert.ok(!isBrokerCommand(["message", "broker"]));
  assert.ok(!isBrokerCommand(["grep", "broker", "file"]));
  assert.ok(!isBrokerCommand(["broker", "--repo=a"]), "the program's own name is no verb");
  assert.ok(!isBrokerCommand([]));
});

Deno.test("[B-04] what is known of a process is asked again after a second", () => {
  const clock = new FakeClock();
  const argv: Record<number, string[]> = { 7: ["tamq", "broker", "--repo=a"] };
  let asked = 0;
  const isBroker = brokerProcesses(clock, (pid) => {
    asked++;
    return argv[pid] ?? [];
  });
  assert.equal(isBroker(7), true);
  assert.equal(isBroker(8), false);
  argv[8] = argv[7]!;
  assert.equal(isBroker(8), false);
  assert.equal(asked, 2);
  clock.advance(1000);
  assert.equal(isBroker(8), true);
  for (let pid = 100; pid < 5000; pid++) isBroker(pid);
  assert.equal(isBroker(7), true);
});

Deno.test("[B-04] a tmux server is no broker, though it keeps the arguments that started the first one", () => {
  const tail = ["new-session", "-d", "-s", "tamq", "--", "tamq", "broker", "--repo=alpha"];
  for (const tmux of ["tmux", "/usr/bin/tmux", "tmux: server"]) {
    assert.equal(isBrokerCommand([tmux, ...tail]), false);
  }
  assert.equal(isBrokerCommand(["/opt/tmux-tools/tamq", "broker", "--repo=alpha"]), true);
});

Deno.test("[B-04][K-04] the window of a process is its outermost broker's, whatever is started below that", () => {
  const argv: Record<number, string[]> = {
    1000: ["tmux", "new-session", "tamq", "broker", "--repo=other"],
    100: ["/opt/deno", "run", "main.ts", "broker", "--repo=alpha", "--", "claude"],
    50: ["bash", "broker", "--repo", "beta"],
    10: ["curl"],
    101: ["tamq", "broker", "--repo", "--odd"],
  };
  const windowOf = (...pids: number[]) => windowOfAncestry(pids, (pid) => argv[pid] ?? []);
  assert.equal(windowOf(10, 50, 100, 1000), "alpha");
  assert.equal(windowOf(10, 50), "beta");
  assert.equal(windowOf(10, 1000), undefined);
  assert.equal(windowOf(10, 101), "--odd");
  assert.equal(windowOf(), undefined);
});
