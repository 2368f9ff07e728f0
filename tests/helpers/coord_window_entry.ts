/**
 * A window without a terminal in a process of its own: attaches, takes wakes, does the work. Says
 * what it does as JSON lines. Arguments: sockets of service, engine and State Hub.
 */
import { pause, systemClock } from "../../lib/base/clock.ts";
import { TamqError } from "../../lib/base/errors.ts";
import { callEngine } from "../../lib/coord/client.ts";
import { StateHubClient } from "../../lib/coord/statehub_client.ts";
import type { Settlement } from "../../lib/protocol/schema.ts";
import { TestWindow } from "./window.ts";

const [socket, engine, hubSocket] = Deno.args as [string, string, string];
const hub = new StateHubClient({ address: { unix: hubSocket } });
const say = (what: object) => console.log(JSON.stringify(what));

/** Again until it goes through, or is refused for good. */
async function insist<T>(work: () => Promise<T>): Promise<T | undefined> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TamqError)) throw error;
      if (error.reason === "lease_lost") return undefined;
      const passing = ["UNAVAILABLE", "DEADLINE_EXCEEDED"].includes(error.code) ||
        error.reason === "already_attached";
      if (!passing) throw error;
      await pause(systemClock, 10);
    }
  }
}

async function work(lease: string, id: string): Promise<void> {
  const own = (op: "ack" | "renew" | "complete") => insist(() => callEngine(engine, op, { lease }));
  if (await own("ack") === undefined) return say({ lost: lease });
  await own("renew");
  const params = { task_id: id };
  const found = await insist(() => hub.call("getTask", { params }));
  if (found!.value.status !== "done") {
    const body = { status: "done" } as const;
    await insist(() => hub.call("editTask", { params, ifMatch: "*", body }));
  }
  say({ done: id });
  await own("complete");
}

const window = new TestWindow("alpha");
let outstanding: Settlement | undefined;
let current = Promise.resolve();
for (;;) {
  const stream = await insist(() => window.attach(socket, outstanding));
  if (stream === undefined) continue;
  using attached = stream;
  outstanding = undefined;
  await attached.open().catch(() => {});
  for (;;) {
    const frame = await attached.next();
    if (frame === undefined) break;
    if (frame.type === "settled") outstanding = undefined;
    if (frame.type !== "deliver") continue;
    const { body } = frame.envelope;
    const lease = /tamq coord ack (\S+)/.exec(body)![1]!;
    const id = /tamq hub task done (\S+)/.exec(body)![1]!;
    say({ shown: lease });
    outstanding = { lease_token: frame.lease_token, outcome: "written" };
    await attached.stream.send({ type: "settle", ...outstanding }).catch(() => {});
    current = current.then(() => work(lease, id));
  }
}
