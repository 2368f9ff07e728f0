/**
 * One of several engines that claim the same triggers of one database: `DATABASE`. Starts at a line
 * on standard input; prints the ids that it won as one JSON list.
 */
import { systemClock } from "../../lib/base/clock.ts";
import { systemRandom } from "../../lib/base/random.ts";
import { Steady } from "../../lib/base/steady.ts";
import { Leases } from "../../lib/coord/leases.ts";
import { Receipts, type Rules } from "../../lib/coord/receipts.ts";
import { CoordStore } from "../../lib/coord/store/store.ts";
import { DEFAULT_COORDINATION } from "../../lib/model/coordination.ts";
import { DEFAULT_PROFILE } from "../../lib/model/policy.ts";

const clock = systemClock;
const random = systemRandom;
const { store } = await CoordStore.open({ path: Deno.args[0]!, clock, busyTimeoutMs: 60_000 });
const rules: Rules = { profile: DEFAULT_PROFILE, configVersion: "c0" };
const receipts = new Receipts({ sink: store.journal, rules, clock, random });
const steady = new Steady(clock);
const settings = DEFAULT_COORDINATION;
const leases = new Leases({ store, steady, clock, random, receipts, rules, settings });
const ids = store.triggers.list({ limit: 10_000 }).map((row) => row.triggerId).reverse();
console.log("ready");
await Deno.stdin.read(new Uint8Array(1));
const won: [string, number][] = [];
// In pieces: each is a transaction of its own, and the engines meet at every one.
for (let at = 0; at < ids.length; at += 5) {
  const claims = ids.slice(at, at + 5).map((id) =>
    store.commit(() => leases.claim(id, false, (handle) => `prompt ${handle}`))
  );
  for (const lease of await Promise.all(claims)) {
    if (lease !== undefined) won.push([lease.triggerId, lease.fencingToken]);
  }
}
await store.close();
console.log(JSON.stringify(won));
