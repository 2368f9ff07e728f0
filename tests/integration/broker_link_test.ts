import assert from "node:assert/strict";
import { ScriptedService, withAttached, withBroker } from "../helpers/broker.ts";
import { withTempDir } from "../helpers/temp.ts";
import { pause, systemClock } from "../../lib/base/clock.ts";

function logOf(dir: string): string {
  try {
    return Deno.readTextFileSync(`${dir}/state/tamq.log`);
  } catch {
    return ""; // not begun yet
  }
}

Deno.test("[T-25][E-03] the handshake names repository, path, command, worker and tmux window", () =>
  withTempDir((dir) =>
    withAttached({ command: ["cat"], dir }, async ({ service, terminal }) => {
      await terminal.type("up\r");
      await terminal.until("up\r\nup"); // a program just started shows no arguments yet
      const [attach] = service.attaches;
      const { instance, worker_pid, ...rest } = attach!;
      assert.match(instance as string, /^[0-9a-z]{26}$/);
      assert.match(Deno.readTextFileSync(`/proc/${worker_pid}/cmdline`), /^cat\0$/);
      assert.deepEqual(rest, {
        op: "attach",
        protocol: "0.1",
        capabilities: ["bounded_delivery_ack_v1", "idempotent_send_v1"],
        repos: ["alpha"],
        path: dir,
        command: ["cat"],
        in_progress: null,
        mode: "trigger",
        tmux: { server_pid: Deno.pid, session: "test", window_id: "@1", pane_id: "" },
        program: { version: "0", upgrades: 0 },
      });
    })
  ));

Deno.test("[T-25][B-13] a broker attaches again by itself and its terminal never notices", () =>
  withTempDir(async (dir) => {
    await withBroker({ command: ["cat"], dir }, async ({ terminal }) => {
      await terminal.type("before\r");
      await terminal.until("before\r\nbefore");
      await terminal.type("To:beta: early\r");
      await terminal.until("To:beta: early\r\nTo:beta: early");
      let service = new ScriptedService(`${dir}/tamq.sock`);
      await service.when(() => service.sends.length === 1);
      assert.equal(service.sends[0]!.body, "early");
      await service.close();
      await terminal.type("To:beta: between\r");
      await terminal.until("between\r\nTo:beta: between");
      service = new ScriptedService(`${dir}/tamq.sock`);
      try {
        await service.when(() => service.sends.length === 1 && service.attaches.length === 1);
        assert.equal(service.sends[0]!.body, "between");
        assert.equal((await service.deliver("late")).type, "settle");
        await terminal.until("From:beta: late\r\nFrom:beta: late");
      } finally {
        await service.close();
      }
    });
  }));

Deno.test("[T-25] an outcome that was not settled is carried by the next attach, once", () =>
  withTempDir((dir) =>
    withAttached({ command: ["cat"], dir }, async ({ service, terminal }) => {
      await service.when(() => service.open);
      // The service dies between the settlement and its answer.
      await service.push({
        type: "deliver",
        message_id: "m",
        attempt: 1,
        lease_token: "lease-1",
        envelope: {
          message_id: "m",
          sender_repo: "beta",
          provenance: "worker",
          body: "x",
          ack_requested: false,
        },
      });
      await service.when(() => service.frames.some((frame) => frame.type === "settle"));
      service.cut();
      await service.when(() => service.attaches.length === 2);
      assert.deepEqual(service.attaches[1]!.outstanding, {
        lease_token: "lease-1",
        outcome: "written",
      });
      service.cut();
      await service.when(() => service.attaches.length === 3);
      assert.equal(service.attaches[2]!.outstanding, undefined);
      assert.deepEqual(service.attaches.map((attach) => attach.in_progress), [null, null, null]);
      await terminal.until("From:beta: x\r\nFrom:beta: x\r\n");
      assert.equal(terminal.text.split("From:beta: x").length, 3); // echo and cat: typed once
    })
  ));

Deno.test("[T-25][B-12] at the worker's exit its block is sent and the stream is closed", () =>
  withTempDir((dir) =>
    withAttached(
      { command: ["sh", "-c", "read x; printf 'To:beta: last\\nwords\\n'"], dir },
      async ({ service, terminal, done }) => {
        await terminal.type("\r");
        assert.equal(await done, 0);
        assert.equal(service.sends[0]!.body, "last\nwords");
        const gates = service.frames.filter((frame) => frame.type === "gate");
        assert.deepEqual(gates.at(-1), { type: "gate", open: false, reason: "worker_exited" });
      },
    )
  ));

Deno.test("[B-12][B-13] a worker that ends while the service is down leaves its spool to adopt", () =>
  withTempDir(async (dir) => {
    const command = ["sh", "-c", "printf 'To:beta: last\\n'; kill -KILL $$"];
    await withBroker({ command, dir }, async ({ done }) => {
      assert.equal(await done, 137);
    });
    const [file] = [...Deno.readDirSync(`${dir}/state/spool`)];
    const text = Deno.readTextFileSync(`${dir}/state/spool/${file!.name}`);
    assert.match(text, /"target":"beta","body":"last","provenance":"worker"/);
  }));

Deno.test("[E-02] a refused attach is told and the terminal goes on", () =>
  withTempDir(async (dir) => {
    const service = new ScriptedService(`${dir}/tamq.sock`);
    service.onAttach = () => ({
      ok: false,
      error: {
        code: "NOT_FOUND",
        reason: "unknown_repository",
        message: "no alpha",
        retry: "never",
      },
    });
    try {
      await withBroker({ command: ["cat"], dir }, async ({ terminal, done }) => {
        await service.when(() => service.attaches.length === 1);
        // The answer is on its way: it is told in the log (and in tmux, where there is a pane).
        while (!/notice text="this window gets no messages: no alpha"/.test(logOf(dir))) {
          await pause(systemClock, 5);
        }
        await terminal.type("x\r\x04");
        await terminal.until("x\r\nx\r\n");
        assert.equal(await done, 0);
      });
    } finally {
      await service.close();
    }
  }));

Deno.test("[E-07][B-03][C-05] an unknown name typed by the operator is no message; the log says why, not what was typed", () =>
  withTempDir((dir) =>
    withAttached({ command: ["cat"], dir }, async ({ service, terminal }) => {
      await terminal.type("To:bata: x\r");
      await terminal.until("To:bata: x\r\nTo:bata: x\r\n");
      await terminal.type("To:beta: y\r");
      await service.when(() => service.sends.length === 1);
      assert.equal(service.sends[0]!.body, "y");
      const log = Deno.readTextFileSync(`${dir}/state/tamq.log`);
      assert.match(log, /message not sent: unknown_target/);
      assert.doesNotMatch(log, /bata/);
    })
  ));

Deno.test("[C-05] the log of a window holds no body and is for its owner alone", () =>
  withTempDir((dir) =>
    withAttached({ command: ["cat"], dir }, async ({ service, terminal }) => {
      await service.deliver("SECRETIN");
      await terminal.type("To:beta: SECRETOUT\r");
      await service.when(() => service.sends.length === 1);
      const log = `${dir}/state/tamq.log`;
      assert.doesNotMatch(Deno.readTextFileSync(log), /SECRET/);
      assert.match(Deno.readTextFileSync(log), /delivery\.settled/);
      assert.equal(Deno.statSync(log).mode! & 0o777, 0o600);
    })
  ));
