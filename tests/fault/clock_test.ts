/** The wall clock of a running service jumps; its leases and deadlines run on. */
import assert from "node:assert/strict";
import { call } from "../../lib/client.ts";
import { fakeTimeLibrary, needs } from "../helpers/fault_tools.ts";
import { faultCount, Seeded } from "../helpers/seeded.ts";
import { ServiceProcess, settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";
import { TestWindow } from "../helpers/window.ts";

const canJump = await needs("faketime");
const HOUR = 3600;
const LEASE_SECONDS = 2;

Deno.test({
  name: "[T-12] [T-19] jumps of the wall clock by an hour or days end no lease early and lose none",
  ignore: !canJump,
  fn: () =>
    withTempDir(async (dir) => {
      const random = new Seeded();
      const jumps = faultCount("CLOCK_JUMPS", 20);
      await Deno.mkdir(`${dir}/config/tamq`, { recursive: true });
      await Deno.writeTextFile(
        `${dir}/config/tamq/config.toml`,
        `[delivery]\nlease_seconds = ${LEASE_SECONDS}\nbackoff_seconds = [0.05]\nmax_attempts = 9\n`,
      );
      const settings = await settingsIn(dir);
      const { socket } = settings;
      const offset = `${dir}/offset`;
      let wall = 0;
      /** The library looks at the file at every reading of the clock. */
      const jump = async (seconds: number) => {
        wall += seconds;
        await Deno.writeTextFile(`${offset}.new`, `${wall < 0 ? "" : "+"}${wall}\n`);
        await Deno.rename(`${offset}.new`, offset);
      };
      await jump(0);
      await using service = await ServiceProcess.start(settings, {
        env: {
          TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }),
          LD_PRELOAD: fakeTimeLibrary()!,
          FAKETIME_TIMESTAMP_FILE: offset,
          FAKETIME_NO_CACHE: "1",
          FAKETIME_DONT_FAKE_MONOTONIC: "1",
        },
      });
      let key = 0;
      const send = async () =>
        (await call(socket, "send", {
          client_id: "clock",
          idempotency_key: `k${key++}`,
          sender_repo: "local",
          target_repo: "beta",
          provenance: "cli",
          body: "hello",
        })).message_id;
      const created = async (id: string) =>
        Date.parse((await call(socket, "message", { message_id: id })).message.created_at);
      await using beta = new TestWindow("beta");
      using stream = await beta.attach(socket);
      await stream.open();

      for (let n = 0; n < jumps; n++) {
        const seconds = random.pick([1, -1, 72, -72]) * HOUR;
        const where = `seed ${random.seed}, jump ${n} of ${seconds} s`;
        const id = await send();
        const { message_id, lease_token } = await stream.delivery();
        assert.equal(message_id, id, where);
        const before = await created(id);
        await jump(seconds);
        // Work in between, so that everything that looks at a clock has done so.
        await call(socket, "status", {});
        const settled = await stream.settle({ lease_token, outcome: "written" });
        assert.equal(settled?.type === "settled" && settled.accepted, true, where);
        const { message, attempts } = await call(socket, "message", { message_id: id });
        assert.equal(message.state, "injected", where);
        assert.equal(attempts.length, 1, where);
        // The jump did happen: otherwise nothing above proves anything.
        const later = await send();
        const moved = ((await created(later)) - before) / 1000;
        assert.ok(Math.abs(moved - seconds) < 60, `${where}: the clock moved by ${moved} s`);
        const next = await stream.delivery();
        await stream.settle({ lease_token: next.lease_token, outcome: "written" });
      }

      // A lease that nobody settles expires in its own time, wherever the clock went meanwhile.
      for (const seconds of [72 * HOUR, -72 * HOUR]) {
        const id = await send();
        const first = await stream.delivery();
        const began = performance.now();
        await jump(seconds);
        // The broker speaks again, since one that let a lease run out gets nothing until it does.
        let attempt = await call(socket, "message", { message_id: id });
        while (attempt.attempts[0]!.outcome === null) {
          attempt = await call(socket, "message", { message_id: id });
        }
        const took = (performance.now() - began) / 1000;
        assert.equal(attempt.attempts[0]!.outcome, "expired");
        assert.ok(took > LEASE_SECONDS - 0.2 && took < LEASE_SECONDS + 5, `${took} s`);
        await stream.open();
        const second = await stream.delivery();
        assert.equal(second.message_id, id);
        assert.notEqual(second.lease_token, first.lease_token);
        const settled = await stream.settle({
          lease_token: second.lease_token,
          outcome: "written",
        });
        assert.equal(settled?.type === "settled" && settled.accepted, true);
      }
      service.kill("SIGTERM");
      assert.equal((await service.ended()).code, 0);
    }),
});
