/**
 * Every transition of a message once, each answer printed as soon as it is given: `DATABASE`. Run
 * under a tracer that kills at a chosen system call.
 */
import { QueueRig } from "./queue_rig.ts";

const encoder = new TextEncoder();
const say = (...words: string[]) => Deno.stdout.writeSync(encoder.encode(words.join(" ") + "\n"));

const rig = new QueueRig(Deno.args[0]!);
rig.policy = { ...rig.policy, maxAttempts: 2 };
await rig.boot();
say("opened");

const injected = await rig.send({ body: "injected" });
say("sent", injected, "pending,injected");
const beta = await rig.attach();
const settle = async (outcome: "written" | "failed", id: string, states: string) => {
  const lease_token = beta.deliveries.at(-1)!.leaseToken;
  await rig.queue.settle(beta.attached, { lease_token, outcome, scope: "message" });
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
await rig.settled();
rig.queue.setGate(beta.attached, false, "busy");
const cancelled = await rig.send({ body: "cancelled" });
say("sent", cancelled, "pending,failed");
await rig.queue.cancel(cancelled);
say("cancelled", cancelled, "failed");
await rig.queue.detach(beta.attached);
await rig.queue.stop();
rig.db.close();
say("done");
