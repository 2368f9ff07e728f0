/** Two want the same message at the same time: one gets it, the other is told so. */
import assert from "node:assert/strict";
import { TamqError } from "../../lib/base/errors.ts";
import { openStore } from "../../lib/store/store.ts";
import { FakeClock } from "../helpers/clock.ts";
import { type FakeBroker, QueueRig } from "../helpers/queue_rig.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { withTempDir } from "../helpers/temp.ts";

const RACES = faultCount("LEASE_RACES", 1500);

async function outcome(work: Promise<unknown>): Promise<string> {
  try {
    const answer = await work as { accepted?: boolean } | undefined;
    return answer?.accepted === false ? "lost" : "won";
  } catch (error) {
    if (error instanceof TamqError) return error.reason;
    throw error;
  }
}

Deno.test(`[T-11] [T-12] ${RACES} races for one message, through the queue: exactly one winner`, () =>
  withTempDir(async (dir) => {
    const random = new Seeded();
    const rig = new QueueRig(`${dir}/tamq.sqlite3`);
    await rig.boot();
    rig.policy = { ...rig.policy, maxAttempts: 9 };
    const beta = await rig.attach();
    const met: Record<string, number> = {};
    /** Starts both in either order, without waiting in between. */
    const race = async (a: () => Promise<unknown>, b: () => Promise<unknown>) => {
      const swap = random.below(2) === 1;
      const [first, second] = swap ? [b, a] : [a, b];
      const results = await Promise.all([outcome(first()), outcome(second())]);
      await rig.settled();
      return swap ? [results[1]!, results[0]!] : results;
    };
    const delivered = async () => {
      rig.queue.setGate(beta.attached, true);
      const id = await rig.send();
      assert.equal(beta.deliveries.at(-1)!.messageId, id);
      return { id, lease_token: beta.deliveries.at(-1)!.leaseToken };
    };
    const settle = (broker: FakeBroker, lease_token: string, result: "written" | "failed") => () =>
      rig.queue.settle(broker.attached, { lease_token, outcome: result, scope: "message" });
    const finish = async (id: string) => {
      // Whatever is left of it does not disturb the next race.
      if (rig.state(id).state !== "acknowledged") await rig.queue.ack(id);
      const { outstanding } = beta.attached;
      if (outstanding !== undefined) await settle(beta, outstanding.leaseToken, "written")();
      await rig.settled();
    };

    for (let n = 0; n < RACES; n++) {
      const where = `seed ${random.seed}, race ${n}`;
      const kind = random.pick([
        "two reports",
        "report and expiry",
        "report and ack",
        "cancel and claim",
      ]);
      let id: string;
      if (kind === "cancel and claim") {
        rig.queue.setGate(beta.attached, false);
        id = await rig.send();
        const handed = beta.deliveries.length;
        const [cancel] = await race(
          () => rig.queue.cancel(id),
          () => Promise.resolve(rig.queue.setGate(beta.attached, true)),
        );
        const claimed = beta.deliveries.length > handed;
        assert.equal([cancel === "won", claimed].filter(Boolean).length, 1, where);
        if (claimed) assert.equal(cancel, "already_leased", where);
        else assert.equal(rig.state(id).last_failure_reason, "cancelled", where);
      } else {
        const { id: sent, lease_token } = await delivered();
        id = sent;
        if (kind === "two reports") {
          const results = await race(
            settle(beta, lease_token, "written"),
            settle(beta, lease_token, "failed"),
          );
          assert.deepEqual(results.toSorted(), ["lost", "won"], where);
          const { state } = rig.state(id);
          assert.equal(state, results[0] === "won" ? "injected" : "pending", where);
        } else if (kind === "report and expiry") {
          const results = await race(settle(beta, lease_token, "written"), () => {
            rig.clock.advance(rig.policy.leaseSeconds * 1000);
            return Promise.resolve({ accepted: true });
          });
          const [row] = rig.queue.message(id).attempts;
          assert.equal(row!.outcome, results[0] === "won" ? "written" : "expired", where);
        } else {
          const [report, ack] = await race(
            settle(beta, lease_token, "written"),
            () => rig.queue.ack(id),
          );
          assert.equal(ack, "won", where); // it wins always; the report counts only if it was first
          const [row] = rig.queue.message(id).attempts;
          assert.equal(row!.outcome, report === "won" ? "written" : "interrupted", where);
          assert.equal(rig.state(id).state, "acknowledged", where);
        }
      }
      met[kind] = (met[kind] ?? 0) + 1;
      await finish(id);
      rig.clock.advance(rig.policy.leaseSeconds * 1000 + 1000);
      await rig.settled();
    }
    console.log(met);
    assert.equal(Object.keys(met).length, 4);
    await rig.settled();
    rig.db.close();
  }));

Deno.test("[T-12] services that both believe they own the database: the store lets one take each lease", () =>
  withTempDir(async (dir) => {
    const path = `${dir}/tamq.sqlite3`;
    const rig = new QueueRig(path);
    await rig.boot();
    const beta = await rig.attach({ open: false });
    const { endpointRef } = beta.window;
    const other = await openStore(path, { busyTimeoutMs: 1000, clock: new FakeClock() });
    try {
      const races = Math.ceil(RACES / 5);
      for (let n = 0; n < races; n++) {
        const id = await rig.send();
        // Both have looked before either writes.
        const sides = [rig.store, other.store].map((store, side) => ({
          store,
          message: store.messages.byId(id)!,
          token: `token-${n}-${side}`,
        }));
        if (n % 2 === 1) sides.reverse();
        const taken = sides.map(({ store, message, token }) => {
          try {
            store.messages.update(message, {
              attemptCount: 1,
              leaseToken: token,
              leaseExpiresAt: 1,
              leaseRef: endpointRef,
              leaseHolder: "1 x",
            });
            return token;
          } catch (error) {
            assert.equal((error as TamqError).reason, "lease_lost");
            return undefined;
          }
        }).filter((token) => token !== undefined);
        assert.equal(taken.length, 1);
        assert.equal(rig.store.messages.byId(id)!.leaseToken, taken[0]);
        await rig.queue.ack(id);
      }
    } finally {
      other.db.close();
      await rig.settled();
      rig.db.close();
    }
  }));
