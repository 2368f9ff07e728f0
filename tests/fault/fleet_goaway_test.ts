/** A peer that ends its session in the middle of its calls must not end the process it speaks to. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import http2 from "node:http2";
import { meta, withFleet } from "../helpers/fleet_world.ts";

const ROUNDS = 60;

/** Says GOAWAY while `calls` calls are open; resolves once the session is over. */
function rude(port: number, tls: Record<"ca" | "cert" | "key", string>, calls: number) {
  return new Promise<void>((resolve) => {
    const session = http2.connect(`https://localhost:${port}`, {
      ...tls,
      checkServerIdentity: () => undefined,
    });
    session.on("error", () => resolve());
    session.on("close", () => resolve());
    session.on("connect", () => {
      for (let n = 0; n < calls; n++) {
        const stream = session.request({
          ":method": "POST",
          ":path": "/tamq.fleet.OperatorService/GetFleet",
          "content-type": "application/grpc",
          te: "trailers",
        });
        stream.on("error", () => {});
        stream.end(Buffer.from([0, 0, 0, 0, 0]));
      }
      setTimeout(() => {
        session.goaway(0);
        setTimeout(() => session.destroy(), 20);
      }, 3);
    });
  });
}

Deno.test({
  name: "[G-16] peers that end their sessions with calls open do not end the dispatcher",
  sanitizeOps: false,
  sanitizeResources: false,
  fn: () =>
    withFleet(async (world) => {
      const dispatcher = await world.dispatcher();
      const dir = await world.pki.give("operator", "rude");
      const read = (name: string) => Deno.readTextFile(`${dir}/${name}.pem`);
      const tls = { ca: await read("ca"), cert: await read("cert"), key: await read("key") };
      for (let round = 0; round < ROUNDS && !dispatcher.over; round++) {
        await Promise.all([1, 2, 3].map((calls) => rude(world.dispatcherPort, tls, calls)));
      }
      assert.equal(dispatcher.over, false, await world.logs());
      await world.operator.getFleet({ meta: meta() });
      assert.equal((await dispatcher.end()).code, 0);
    }),
});
