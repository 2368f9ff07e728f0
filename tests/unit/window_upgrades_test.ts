import assert from "node:assert/strict";
import type { Window } from "../../lib/model/ports.ts";
import type { ServiceFrame } from "../../lib/protocol/schema.ts";
import { type LiveWindow, WindowUpgrades } from "../../lib/window_upgrades.ts";
import { FakeClock } from "../helpers/clock.ts";
import { turn } from "../../lib/base/clock.ts";

const PROGRAM = { program: ["/bin/tamq"], wait_ms: 10_000 };

class Rig {
  readonly clock = new FakeClock();
  readonly alive = new Set<number>();
  readonly upgrades = new WindowUpgrades({
    clock: this.clock,
    processes: {
      identify: (pid) => this.alive.has(pid) ? { pid, start: "1" } : undefined,
    },
  });
  readonly asked: string[] = [];

  attach(repo: string, pid: number, program?: LiveWindow["program"]): LiveWindow {
    this.alive.add(pid);
    const broker = { pid, start: "1" };
    const window = { repo, broker, endpointId: "e", windowId: `@${pid}` } as Window;
    const send = (frame: ServiceFrame) => this.asked.push(`${repo} ${frame.type}`);
    const live = { window, program, send };
    this.upgrades.attached(live);
    return live;
  }
  async told(request = PROGRAM): Promise<string[]> {
    const { windows } = await this.upgrades.run(request);
    return windows.map(({ repo, outcome, from, to, reason }) =>
      [repo, outcome, from, to, reason].join(" ")
    );
  }
}

const version = (version: string, upgrades: number) => ({ version, upgrades });

Deno.test("[B-17] a window is upgraded when its broker attaches with one upgrade more, not before", async () => {
  const rig = new Rig();
  const old = rig.attach("alpha", 1, version("1", 4));
  const told = rig.told();
  await turn();
  assert.deepEqual(rig.asked, ["alpha upgrade"]);
  rig.upgrades.detached(old);
  rig.attach("alpha", 1, version("1", 4)); // the connection was lost, no more
  assert.deepEqual(await rig.told(), ["alpha unchanged 1 1 an upgrade is under way"]);
  rig.attach("alpha", 1, version("2", 5));
  assert.deepEqual(await told, ["alpha upgraded 1 2 "]);
});

Deno.test("[B-17] a broker that refuses, ends, is silent or too old: each is told, in bounded time", async () => {
  const rig = new Rig();
  const refuses = rig.attach("a", 1, version("1", 0));
  const ends = rig.attach("b", 2, version("1", 0));
  rig.attach("c", 3, version("1", 0));
  rig.attach("d", 4);
  const told = rig.told();
  await turn();
  rig.upgrades.refused(refuses.window, "terminal_not_read");
  rig.upgrades.detached(ends);
  rig.alive.delete(2);
  rig.clock.advance(500);
  rig.clock.advance(40_000);
  assert.deepEqual(await told, [
    "a unchanged 1 1 terminal_not_read",
    "b gone 1  ",
    "c unchanged 1 1 its broker gave no answer",
    "d unchanged   it was opened by a version that cannot: end its command, start it again",
  ]);
});

Deno.test("[B-17] a plan asks nobody; at most four windows try at once", async () => {
  const rig = new Rig();
  const windows = Array.from({ length: 9 }, (_, i) => rig.attach(`r${i}`, i + 1, version("1", 0)));
  assert.equal((await rig.told({ ...PROGRAM, dry_run: true } as typeof PROGRAM)).length, 9);
  assert.deepEqual(rig.asked, []);
  const told = rig.told();
  await turn();
  assert.equal(rig.asked.length, 4);
  for (const { window } of windows) {
    rig.upgrades.refused(window, "no");
    await turn();
  }
  assert.equal((await told).length, 9);
  assert.equal(rig.asked.length, 9);
});
