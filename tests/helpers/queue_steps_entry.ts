/**
 * Every transition of a message, several rounds of them, each answer printed as soon as it is given:
 * `DATABASE [ROUNDS]`. A line is a word, an id and the states in which that message may be from then
 * on until the next line about it. Run under a tracer that kills at a chosen call or notes them all.
 * `TEST_SYNCHRONOUS` takes a weaker guarantee than the product's, to show that a test can tell.
 */
import { QueueRig } from "./queue_rig.ts";

const encoder = new TextEncoder();
const say = (...words: string[]) => Deno.stdout.writeSync(encoder.encode(words.join(" ") + "\n"));

const [path = "", rounds = "1"] = Deno.args;
const rig = new QueueRig(path);
rig.policy = { ...rig.policy, maxAttempts: 2 };
await rig.boot();
const weaker = Deno.env.get("TEST_SYNCHRONOUS");
const tune = () => {
  if (weaker !== undefined) rig.db.prepare(`PRAGMA synchronous = ${weaker}`).get();
  // Checkpoints as well: by default the log of so few steps is never carried over.
  rig.db.prepare("PRAGMA wal_autocheckpoint = 60").get();
};
tune();
say("opened");

for (let round = 0; round < Number(rounds); round++) {
  const injected = await rig.send({ body: "injected" });
  say("sent", injected, "pending,injected");
  let beta = await rig.attach();
  const settle = async (outcome: "written" | "failed", id: string, states: string) => {
    const lease_token = beta.deliveries.at(-1)!.leaseToken;
    const answer = await rig.queue.settle(beta.attached, {
      lease_token,
      outcome,
      scope: "message",
    });
    if (!answer.accepted) throw new Error(`${outcome} of ${id}: ${answer.reason}`);
    say(outcome, id, states);
    await rig.settled();
  };
  await settle("written", injected, "injected");

  const failed = await rig.send({ body: "failed" });
  say("sent", failed, "pending,failed,acknowledged");
  await settle("failed", failed, "pending,failed,acknowledged");
  await rig.advance(5000);
  await settle("failed", failed, "failed,pending,acknowledged");
  await rig.queue.retry(failed, {});
  say("retried", failed, "pending,acknowledged");
  await rig.queue.ack(failed);
  say("acked", failed, "acknowledged");
  // It was on its way again: its broker's report comes too late and changes nothing.
  const late = beta.deliveries.at(-1)!.leaseToken;
  await rig.queue.settle(beta.attached, { lease_token: late, outcome: "written" });
  say("late", failed, "acknowledged");
  await rig.settled();

  rig.queue.setGate(beta.attached, false, "busy");
  const cancelled = await rig.send({ body: "cancelled" });
  say("sent", cancelled, "pending,failed");
  await rig.queue.cancel(cancelled);
  say("cancelled", cancelled, "failed");

  const expired = await rig.send({ body: "expires twice" });
  say("sent", expired, "pending,failed");
  rig.queue.setGate(beta.attached, true);
  await rig.settled();
  await rig.advance(rig.policy.leaseSeconds * 1000);
  say("expired", expired, "pending,failed");
  rig.queue.setGate(beta.attached, true); // a broker that let a lease run out must speak first
  await rig.advance(5000);
  await rig.advance(rig.policy.leaseSeconds * 1000);
  say("expired again", expired, "failed");
  await rig.queue.detach(beta.attached);

  rig.policy = { ...rig.policy, ackMode: "acknowledged" };
  const awaiting = await rig.send({ body: "awaiting" });
  say("sent", awaiting, "pending,awaiting_ack,acknowledged");
  beta = await rig.attach();
  await rig.advance(15_000); // what the two expiries hold the window back for
  await settle("written", awaiting, "awaiting_ack,pending,acknowledged");
  await rig.advance(rig.policy.ackSeconds * 1000);
  await settle("written", awaiting, "awaiting_ack,acknowledged");
  await rig.queue.ack(awaiting);
  say("acked", awaiting, "acknowledged");
  await rig.queue.detach(beta.attached);
  rig.policy = { ...rig.policy, ackMode: "injected" };

  await rig.queue.stop();
  await rig.restart();
  tune();
  say("restarted");
}
await rig.queue.stop();
rig.db.close();
say("done");
