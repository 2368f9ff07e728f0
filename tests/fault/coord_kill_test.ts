/**
 * Engine, message service and State Hub are killed at random moments while work flows through them,
 * and the engine is asked to end in the middle of a wake.
 */
import { pause, systemClock } from "../../lib/base/clock.ts";
import { CoordProcesses } from "../helpers/coord_processes.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { SocketRelay } from "../helpers/socket_relay.ts";
import assert from "node:assert/strict";

const KILLS = faultCount("COORD_KILLS", 100);

Deno.test(`[K-06][K-08][K-19][T-19][T-21] ${KILLS} kills of engine, service and hub while tasks flow: one message a lease, none shown twice, no ready task forgotten, no gated one woken`, async () => {
  await CoordProcesses.run(async (world) => {
    const random = new Seeded();
    await world.gated(3);
    for (let i = 0; i < 6; i++) await world.more();
    for (let kill = 0; kill < KILLS; kill++) {
      await pause(systemClock, random.below(250));
      if (world.open.size < 6) await world.more();
      await world.kill(random.pick(["engine", "engine", "service", "hub"] as const));
    }
    const { wakes } = await world.audit();
    console.log(
      `    seed ${random.seed}: ${world.made} tasks, ${wakes} wakes, ${world.lost} leases lost before their word`,
    );
  });
});

Deno.test("[K-06][K-21][L-03] SIGTERM in the middle of a wake, before and after the service has it: the engine ends in order; the next one finishes that wake under the same lease", async () => {
  let relay: SocketRelay | undefined;
  try {
    await CoordProcesses.run(async (world) => {
      await world.gated(1);
      /** Asks the engine to end while that request of it is held. */
      const interrupt = async (
        op: string,
        place: "before" | "after",
        begin: () => Promise<void>,
      ) => {
        const held = relay!.hold(op, place);
        await begin();
        await held.caught;
        const asked = systemClock.monotonic();
        world.engine.kill("SIGTERM");
        const { code } = await world.engine.ended();
        const ms = systemClock.monotonic() - asked;
        const log = world.engine.log.join("\n");
        assert.equal(code, 0, log);
        assert.match(log, /"engine\.stopped".*"clean":true/, `${place} ${op}: ${log.slice(-600)}`);
        assert.ok(ms < 5000, `${place} ${op}: ${ms} ms, half of the grace period`);
        held.release();
      };
      for (const place of ["before", "after"] as const) {
        await interrupt("send", place, async () => void await world.more());
        // Whether the message was admitted is asked for by its key; if it was, its worker may be
        // faster, and say that it has it.
        if (place === "before") await interrupt("history", place, () => world.startEngine());
        await interrupt("endpoints", place, () => world.startEngine());
        await world.startEngine();
        await world.settle();
        assert.equal(world.shown.size, place === "before" ? 1 : 2);
      }
    }, (dir) => {
      relay = new SocketRelay(`${dir}/run/relay.sock`, `${dir}/run/tamq.sock`);
      return { serviceSocket: relay.path };
    });
  } finally {
    await relay?.close();
  }
});
