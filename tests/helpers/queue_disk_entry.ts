/**
 * Runs inside a mount namespace of its own: `full DIR` fills a small tmpfs through the queue and
 * then makes room; `read-only DIR` opens a database that cannot be written. Prints one JSON line.
 */
import { TamqError } from "../../lib/base/errors.ts";
import { readHistory } from "../../lib/store/history.ts";
import { openForReading, openStore } from "../../lib/store/store.ts";
import { systemClock } from "../../lib/base/clock.ts";
import { QueueRig } from "./queue_rig.ts";

const [what, dir = ""] = Deno.args;

async function mount(...args: string[]): Promise<void> {
  const { success } = await new Deno.Command("mount", { args, stdout: "null" }).output();
  if (!success) throw new Error(`mount ${args.join(" ")} failed`);
}

async function reasonOf(work: () => unknown): Promise<string> {
  try {
    await work();
    return "ok";
  } catch (error) {
    return error instanceof TamqError ? `${error.code} ${error.reason}` : String(error);
  }
}

async function full(): Promise<Record<string, unknown>> {
  await mount("-t", "tmpfs", "-o", "size=3m", "tmpfs", dir);
  const rig = new QueueRig(`${dir}/tamq.sqlite3`);
  await rig.boot();
  const ids: string[] = [];
  let refused = "ok";
  while (refused === "ok" && ids.length < 2000) {
    refused = await reasonOf(async () => ids.push(await rig.send({ body: "x".repeat(8192) })));
  }
  const kept = ids.every((id) => rig.state(id).state === "pending");
  const read = rig.queue.history({ limit: 1 }).messages.length;
  await mount("-o", "remount,size=30m", dir);
  const after = await reasonOf(async () => ids.push(await rig.send()));
  const check = Object.values(rig.db.prepare("PRAGMA integrity_check").get()!)[0];
  const stored = rig.queue.summary().states.pending;
  rig.db.close();
  return { refused, kept, read, after, check, answered: ids.length, stored };
}

async function readOnly(): Promise<Record<string, unknown>> {
  const rig = new QueueRig(`${dir}/tamq.sqlite3`);
  await rig.boot();
  await rig.send();
  await rig.queue.stop();
  rig.db.close();
  await mount("--bind", dir, dir);
  await mount("-o", "remount,bind,ro", dir);
  const open = await reasonOf(() =>
    openStore(rig.path, { busyTimeoutMs: 100, clock: systemClock })
  );
  const db = openForReading(rig.path, { busyTimeoutMs: 100 });
  const read = readHistory(db, {}).messages.length;
  db.close();
  const fresh = await reasonOf(() =>
    openStore(`${dir}/deeper/tamq.sqlite3`, { busyTimeoutMs: 100, clock: systemClock })
  );
  return { open, read, fresh };
}

console.log(JSON.stringify(what === "full" ? await full() : await readOnly()));
