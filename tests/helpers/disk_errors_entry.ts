/**
 * Sends and delivers messages while a tracer makes some of the database's system calls fail:
 * `DATABASE COUNT`. Whatever is refused is tried again with the same key, as a careful client does.
 * Prints one JSON line.
 */
import { TamqError } from "../../lib/base/errors.ts";
import { QueueRig } from "./queue_rig.ts";

const [path = "", count = "1"] = Deno.args;
/** Far more than any pattern of faults needs; without it a lasting failure would hang the test. */
const TRIES = 50;

const refused: Record<string, number> = {};
let unexpected = "";

/** Until it works; the attempts that were refused are counted by their reason. */
async function persist<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    try {
      return await work();
    } catch (error) {
      const reason = error instanceof TamqError ? error.reason : "unexpected";
      if (reason === "unexpected") unexpected ||= String(error);
      refused[reason] = (refused[reason] ?? 0) + 1;
      rig.queue.history({ limit: 1 }); // reading goes on
    }
  }
  throw new Error(`still refused after ${TRIES} tries: ${JSON.stringify(refused)}`);
}

const rig = new QueueRig(path);
await rig.boot();
const beta = await rig.attach();
const ids: string[] = [];
for (let n = 0; n < Number(count); n++) {
  // Large, so that the log is carried over into the database now and then.
  const request = rig.request({ idempotency_key: `key-${n}`, body: `${n} `.repeat(1000) });
  const { message_id } = await persist(() => rig.queue.send(request, {}));
  ids.push(message_id);
  await rig.settled();
  for (let tries = 0; beta.deliveries.length <= n && tries < TRIES; tries++) {
    await rig.advance(1000); // a claim that could not be written is tried again
  }
  const lease_token = beta.deliveries[n]!.leaseToken;
  await persist(() => rig.queue.settle(beta.attached, { lease_token, outcome: "written" }));
  await rig.settled();
}
const rows = rig.db.prepare("SELECT message_id AS id, state, attempt_count FROM messages").all();
const check = Object.values(rig.db.prepare("PRAGMA integrity_check").get()!)[0];
const whole = rows.length === ids.length &&
  rows.every((row, n) => row.id === ids[n] && row.state === "injected" && row.attempt_count === 1);
rig.db.close();
console.log(JSON.stringify({ refused, unexpected, check, whole, answered: ids.length }));
