/** Starting and stopping the detached service, as many do it at once. */
import assert from "node:assert/strict";
import { pause, systemClock, within } from "../../lib/base/clock.ts";
import type { TamqError } from "../../lib/base/errors.ts";
import { identify } from "../../lib/base/proc.ts";
import { call } from "../../lib/client.ts";
import type { Settings } from "../../lib/config.ts";
import { liveHolder, readHolder } from "../../lib/ipc/lock.ts";
import { restartCrashed, startDetached, stopService } from "../../lib/service_control.ts";
import { environmentOf, serviceCommand, ServiceProcess, settingsIn } from "../helpers/service.ts";
import { withTempDir } from "../helpers/temp.ts";
import { runProcess } from "../helpers/world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const options = (settings: Settings) => ({
  command: serviceCommand("detached"),
  env: { ...environmentOf(settings), TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) },
});

/** Children of this process that the tests made, until they are reaped. */
const children: number[] = [];

async function start(settings: Settings) {
  const result = await startDetached(settings, options(settings));
  if (result.started) children.push(result.pid);
  return result;
}

/** Settings in a temporary folder, with whatever was started in it stopped at the end. */
async function withSettings(
  body: (settings: Settings, dir: string) => Promise<void>,
  env: Record<string, string> = {},
): Promise<void> {
  await withTempDir(async (dir) => {
    const settings = await settingsIn(dir, env);
    try {
      await body(settings, dir);
    } finally {
      await stopService(settings);
      for (const pid of children.splice(0)) await reaped(pid);
    }
  });
}

/** A process that is gone still counts as a leak until the runtime has noticed. */
async function reaped(pid: number): Promise<void> {
  const exists = () => Deno.stat(`/proc/${pid}`).then(() => true, () => false);
  await within(
    systemClock,
    5000,
    (async () => {
      while (await exists()) { /* each look is a turn of the loop */ }
    })(),
    () => assert.fail(`${pid} lives`),
  );
  await pause(systemClock, 1);
}

/** Processes whose environment names that state directory. */
function servicesOf(settings: Settings): number[] {
  const found: number[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const env = Deno.readTextFileSync(`/proc/${name}/environ`);
      const argv = Deno.readTextFileSync(`/proc/${name}/cmdline`);
      if (env.includes(`TAMQ_STATE_DIR=${settings.stateDir}\0`) && argv.includes("detached")) {
        found.push(Number(name));
      }
    } catch {
      // gone
    }
  }
  return found;
}

Deno.test("[L-01] [L-02] fifty starts at once give one service; starting again is no error", async () => {
  await withSettings(async (settings) => {
    const all = await Promise.all(Array.from({ length: 50 }, () => start(settings)));
    assert.equal(all.filter((one) => one.started).length, 1);
    assert.equal(new Set(all.map((one) => one.pid)).size, 1);
    assert.deepEqual(servicesOf(settings), [all[0]!.pid]);
    assert.deepEqual(await start(settings), { started: false, pid: all[0]!.pid });
    assert.equal((await call(settings.socket, "ping", {})).pid, all[0]!.pid);
  });
});

Deno.test("[L-02] starts in different processes at once give one service as well", async () => {
  await withSettings(async (settings) => {
    const { command, env } = options(settings);
    const script = `
      const { startDetached } = await import("${ROOT}lib/service_control.ts");
      const settings = ${JSON.stringify(settings)};
      const options = ${JSON.stringify({ command, env })};
      console.log(JSON.stringify(await startDetached(settings, options)));
      Deno.exit(0);`;
    const runs = await Promise.all(
      Array.from(
        { length: 6 },
        () =>
          runProcess([Deno.execPath(), "eval", "--no-check", `--config=${ROOT}deno.json`, script]),
      ),
    );
    const results = runs.map((run) => JSON.parse(run.stdout));
    assert.equal(results.filter((one) => one.started).length, 1);
    assert.equal(new Set(results.map((one) => one.pid)).size, 1);
    // It outlives the one that started it, in a session of its own.
    const stat = Deno.readTextFileSync(`/proc/${results[0].pid}/stat`).split(") ")[1]!.split(" ");
    assert.equal(Number(stat[3]), results[0].pid, "session leader");
  });
});

Deno.test("[L-02] starting after kill -9 works at once; two starters do not fight over the remains", async () => {
  await withSettings(async (settings) => {
    for (let round = 0; round < 3; round++) {
      const all = await Promise.all([start(settings), start(settings), start(settings)]);
      assert.equal(all.filter((one) => one.started).length, 1);
      const service = identify(all[0]!.pid)!;
      Deno.kill(service.pid, "SIGKILL");
    }
  });
});

Deno.test("[L-01] stop waits until lock and socket are free, and says when there was nothing to stop", async () => {
  await withSettings(async (settings) => {
    assert.deepEqual(await stopService(settings), { stopped: false });
    for (let round = 0; round < 3; round++) {
      const { pid } = await start(settings);
      assert.deepEqual(await stopService(settings), { stopped: true, pid });
      assert.equal(identify(pid), undefined);
      assert.throws(() => Deno.lstatSync(settings.socket), Deno.errors.NotFound);
    }
    assert.deepEqual(await stopService(settings), { stopped: false });
  });
});

Deno.test("[L-01] stop leaves the queue; a service in the foreground is stopped as well", async () => {
  await withSettings(async (settings) => {
    await start(settings);
    const { message_id } = await call(settings.socket, "send", {
      client_id: "t",
      idempotency_key: "k",
      sender_repo: "local",
      target_repo: "beta",
      provenance: "cli",
      body: "kept",
    });
    await stopService(settings);
    await using service = await ServiceProcess.start(settings);
    assert.equal(
      (await call(settings.socket, "message", { message_id })).message.body,
      "kept",
    );
    assert.deepEqual(await stopService(settings), { stopped: true, pid: service.pid });
    assert.equal((await service.ended()).code, 0);
  });
});

Deno.test("[L-01] [L-02] a service whose socket file is gone is named at once, not raced, and stopped for good", async () => {
  await withSettings(async (settings) => {
    const { pid } = await start(settings);
    Deno.removeSync(settings.socket);
    // Whatever is launched leaves a trace: nothing may be.
    const trace = `${settings.stateDir}/launched`;
    const launching = [
      Deno.execPath(),
      "eval",
      `Deno.writeTextFileSync(${JSON.stringify(trace)}, "")`,
    ];
    const begin = systemClock.monotonic();
    await assert.rejects(startDetached(settings, { command: launching }), (error: TamqError) => {
      assert.equal(error.reason, "socket_lost");
      assert.ok(error.message.includes(String(pid)) && error.message.includes(settings.socket));
      assert.match(error.hint!, /tamq stop; tamq serve --detach/);
      return true;
    });
    assert.ok(systemClock.monotonic() - begin < 5000, "without waiting for its time to pass");
    assert.deepEqual(await stopService(settings), { stopped: true, pid });
    assert.throws(() => Deno.lstatSync(trace), Deno.errors.NotFound);
    assert.deepEqual(servicesOf(settings), []);
    assert.equal((await start(settings)).started, true, "the way out is one");
  });
});

Deno.test("[L-01] [L-02] a holder of the lock that does not answer is waited for; no second one is launched", async () => {
  await withSettings(async (settings) => {
    await start(settings);
    await stopService(settings);
    await using sleeper = sleepingProcess();
    const holder = { ...identify(sleeper.pid)!, socket: settings.socket };
    Deno.writeTextFileSync(`${settings.stateDir}/service.lock`, JSON.stringify(holder));
    await assert.rejects(startDetached(settings, { ...options(settings), timeoutMs: 1500 }), {
      reason: "start_timeout",
      message: new RegExp(`process ${sleeper.pid}`),
    });
    assert.deepEqual(servicesOf(settings), []);
    assert.ok(identify(sleeper.pid), "and it is left alone");
    Deno.writeTextFileSync(`${settings.stateDir}/service.lock`, "");
  });
});

Deno.test("[L-01] [L-02] a child that is not ready in time is ended, by force when it must be", async () => {
  await withSettings(async (settings, dir) => {
    for (const trap of ["true", "trap '' TERM"]) {
      const name = `${dir}/pid`;
      const command = ["sh", "-c", `${trap}; echo $$ > '${name}'; exec sleep 60`];
      await assert.rejects(startDetached(settings, { command, timeoutMs: 1500 }), {
        reason: "start_timeout",
        hint: /^try again; .*: tamq serve \(log: /,
      });
      assert.equal(identify(Number(Deno.readTextFileSync(name))), undefined, "it is gone");
    }
  });
});

Deno.test("[L-02] a stop of a dead service's name harms nobody who has its pid now", async () => {
  await withSettings(async (settings) => {
    await start(settings);
    await stopService(settings);
    await using sleeper = sleepingProcess();
    const lock = `${settings.stateDir}/service.lock`;
    const old = { pid: sleeper.pid, start: "other boot:1", socket: settings.socket };
    Deno.writeTextFileSync(lock, JSON.stringify(old));
    assert.deepEqual(await stopService(settings), { stopped: false });
    assert.ok(identify(sleeper.pid), "it lives");
  });
});

Deno.test("[E-05] a crashed service is started again for a broker, a stopped one is not", async () => {
  await withSettings(async (settings) => {
    assert.equal(await restartCrashed(settings, options(settings)), false, "never started");
    const { pid } = await start(settings);
    assert.equal(await restartCrashed(settings, options(settings)), false, "it runs");
    const service = identify(pid)!;
    Deno.kill(pid, "SIGKILL");
    await reaped(service.pid);
    assert.equal(await restartCrashed(settings, options(settings)), true);
    children.push(liveHolder(settings.stateDir)!.pid);
    await stopService(settings);
    assert.equal(await restartCrashed(settings, options(settings)), false, "it was stopped");
  });
});

Deno.test("[C-02] the detached service logs to a file of mode 0600 in a directory of mode 0700", async () => {
  await withSettings(async (settings) => {
    await start(settings);
    assert.equal(Deno.statSync(settings.stateDir).mode! & 0o777, 0o700);
    for (const name of ["tamq.log", "tamq.sqlite3", "service.lock", "start.lock"]) {
      assert.equal(Deno.statSync(`${settings.stateDir}/${name}`).mode! & 0o777, 0o600, name);
    }
    assert.match(Deno.readTextFileSync(settings.logFile), /service\.ready/);
  });
});

Deno.test("[C-02] [Q-01] links where log, lock and database belong keep the service from starting, with the reason", async () => {
  await withSettings(async (settings, dir) => {
    Deno.mkdirSync(settings.stateDir, { recursive: true, mode: 0o700 });
    for (
      const [name, reason] of [
        ["tamq.log", "file_unusable"],
        ["service.lock", "file_unusable"],
        ["start.lock", "file_unusable"],
        ["tamq.sqlite3", "store_unreadable"],
      ] as const
    ) {
      const path = `${settings.stateDir}/${name}`;
      Deno.symlinkSync(`${dir}/foreign`, path);
      await assert.rejects(start(settings), (error: TamqError) => {
        assert.equal(error.reason, reason, error.message);
        assert.ok(error.message.startsWith(path), error.message);
        assert.match(error.hint!, /move .*away/);
        return true;
      });
      assert.throws(() => Deno.lstatSync(`${dir}/foreign`), Deno.errors.NotFound, name);
      assert.deepEqual(servicesOf(settings), []);
      Deno.removeSync(path);
      for (const made of ["tamq.log", "service.lock", "start.lock"]) {
        await Deno.remove(`${settings.stateDir}/${made}`).catch(() => {});
      }
    }
    assert.equal((await start(settings)).started, true);
  });
});

Deno.test("[E-06] a service that cannot start says why to who started it, and leaves nothing", async () => {
  await withSettings(async (settings, dir) => {
    Deno.mkdirSync(`${dir}/run`);
    Deno.writeTextFileSync(settings.socket, "in the way");
    await assert.rejects(start(settings), { reason: "socket_path_occupied" });
    assert.equal(Deno.readTextFileSync(settings.socket), "in the way");
    assert.equal(liveHolder(settings.stateDir), undefined);
    assert.deepEqual(servicesOf(settings), []);
    Deno.removeSync(settings.socket);
    assert.equal((await start(settings)).started, true, "nothing is in the way of the next");
  });
  await withSettings(async (settings) => {
    await assert.rejects(
      startDetached(settings, { command: [Deno.execPath(), "eval", "Deno.exit(3)"] }),
      { reason: "start_failed", hint: new RegExp(`tamq serve.*${settings.logFile}`) },
    );
    await assert.rejects(startDetached(settings, { command: ["/nonexistent/program"] }));
  });
});

Deno.test("[E-06] one that serves this database elsewhere is named when another socket is demanded", async () => {
  await withSettings(async (settings, dir) => {
    const { pid } = await start(settings);
    const other = await settingsIn(dir, { TAMQ_SOCKET: `${dir}/other.sock` });
    await assert.rejects(start(other), (error: TamqError) => {
      assert.equal(error.reason, "service_running");
      assert.ok(error.message.includes(String(pid)) && error.message.includes(settings.socket));
      return true;
    });
    // Nobody demanded the other path: the running one is good.
    const elsewhere = await settingsIn(dir, { XDG_RUNTIME_DIR: `${dir}/elsewhere` });
    assert.deepEqual(await start(elsewhere), { started: false, pid });
  });
});

Deno.test({
  name: "[E-06] a state directory on a full or read-only disk is named with the way out",
  ignore: !await mayMount(),
  fn: async () => {
    for (
      const [mount, expected] of [
        ["-o size=4k,mode=0700", /full|No space/],
        ["-o ro", /[Rr]ead-only/],
      ] as const
    ) {
      await withTempDir(async (dir) => {
        const settings = await settingsIn(dir);
        Deno.mkdirSync(settings.stateDir, { recursive: true });
        const command = serviceCommand("foreground").map((word) => `'${word}'`).join(" ");
        const fill = `head -c 8192 /dev/zero > ${settings.stateDir}/filler 2>/dev/null; true`;
        const run = await runProcess([
          "unshare",
          "-m",
          "sh",
          "-c",
          `mount -t tmpfs ${mount} none ${settings.stateDir}; ${fill}; exec ${command}`,
        ], { env: { ...Deno.env.toObject(), ...environmentOf(settings) } });
        assert.equal(run.code, 1);
        const failed = JSON.parse(run.stderr.trim().split("\n").at(-1)!);
        assert.equal(failed.event, "service.failed");
        assert.match(failed.reason, expected);
        assert.ok(failed.reason.includes(settings.stateDir), failed.reason);
        assert.equal(readHolder(settings.stateDir), undefined);
        assert.throws(() => Deno.lstatSync(settings.socket), Deno.errors.NotFound);
      });
    }
  },
});

function sleepingProcess(): { pid: number } & AsyncDisposable {
  const child = new Deno.Command("sleep", { args: ["60"], stdout: "null" }).spawn();
  return {
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
    },
  };
}

async function mayMount(): Promise<boolean> {
  try {
    const args = ["-m", "mount", "-t", "tmpfs", "none", "/mnt"];
    const quiet = { stdout: "null", stderr: "null" } as const;
    return (await new Deno.Command("unshare", { args, ...quiet }).output()).success;
  } catch {
    return false;
  }
}
