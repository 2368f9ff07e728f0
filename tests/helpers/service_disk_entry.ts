/**
 * The whole service on a disk that fills up, or in a directory that becomes read-only, in a mount
 * namespace of its own: `full DIR` or `read-only DIR`. Prints one JSON line.
 */
import { TamqError } from "../../lib/base/errors.ts";
import { call } from "../../lib/client.ts";
import { run } from "./fault_tools.ts";
import { ServiceProcess, settingsIn } from "./service.ts";
import { TestWindow } from "./window.ts";

const [what, dir = ""] = Deno.args;
const settings = await settingsIn(dir);
const { socket, stateDir } = settings;
const env = { TEST_REPOS: JSON.stringify({ beta: "/repos/beta" }) };

async function mount(...args: string[]): Promise<void> {
  const { success, err } = await run(["mount", ...args]);
  if (!success) throw new Error(`mount ${args.join(" ")}: ${err}`);
}

const answered = new Map<string, string>();
let key = 0;
/** `ok`, or why not. */
async function send(bytes: number, again?: string): Promise<string> {
  const name = again ?? `k${key++}`;
  try {
    const { message_id } = await call(socket, "send", {
      client_id: "disk",
      idempotency_key: name,
      sender_repo: "local",
      target_repo: "beta",
      provenance: "cli",
      body: "x".repeat(bytes),
    });
    answered.set(name, message_id);
    return "ok";
  } catch (error) {
    return error instanceof TamqError ? `${error.code} ${error.reason}` : String(error);
  }
}

/** How many of the answered messages the service knows. */
async function known(): Promise<number> {
  let count = 0;
  for (const id of answered.values()) {
    if ((await call(socket, "message", { message_id: id })).message.message_id === id) count++;
  }
  return count;
}

async function full() {
  await Deno.mkdir(stateDir, { recursive: true });
  await mount("-t", "tmpfs", "-o", "size=3m", "tmpfs", stateDir);
  await using service = await ServiceProcess.start(settings, { env });
  await using beta = new TestWindow("beta");
  using stream = await beta.attach(socket);
  let refused = "ok";
  while (refused === "ok" && key < 2000) refused = await send(8192);
  const last = `k${key - 1}`;
  // Still full: again refused, in good order, and what needs no writing is served.
  const again = await send(8192, last);
  const reads = (await call(socket, "history", { limit: 5 })).messages.length;
  const status = (await call(socket, "status", {})).service.pid === service.pid;
  await mount("-o", "remount,size=60m", stateDir);
  const after = await send(8192, last);
  const complete = await known() === answered.size;
  // Whatever waited is delivered, with nobody having done anything but make room.
  await stream.open();
  const delivered = (await stream.delivery()).message_id === answered.get("k0");
  return { refused, again, reads, status, after, complete, delivered };
}

async function readOnly() {
  let service = await ServiceProcess.start(settings, { env });
  const before = await send(100);
  await mount("--bind", stateDir, stateDir);
  await mount("-o", "remount,bind,ro", stateDir);
  // Its files are open: it may go on, or refuse; it must not end, and not lose what it answered.
  const during = await send(100);
  const alive = (await call(socket, "ping", {})).pid === service.pid;
  service.kill();
  await service.ended();
  const start = await ServiceProcess.start(settings, { env }).then(
    () => "started",
    (error) => /state directory|cannot be written/.test(String(error)) ? "refused" : String(error),
  );
  await run(["umount", stateDir]);
  service = await ServiceProcess.start(settings, { env });
  const after = await send(100);
  const complete = await known() === answered.size;
  await service[Symbol.asyncDispose]();
  return { before, during, alive, start, after, complete };
}

console.log(JSON.stringify(what === "full" ? await full() : await readOnly()));
Deno.exit(0);
