/**
 * Simulated power cuts, in a mount namespace of its own: `DIR CUTS SEED`. A sender works on an ext4
 * file system inside an image. It is stopped, the image copied as the disk would be found, and the
 * copy mounted and read: what the kernel had not yet written to the disk is not in it. Prints one
 * JSON line: answered sends at the last cut, answers lost over all cuts, and how many cuts lost any.
 */
import { DatabaseSync } from "node:sqlite";
import { entryCommand, run } from "./fault_tools.ts";
import { Seeded } from "./seeded.ts";

const [dir = "", cuts = "1", seed = "1"] = Deno.args;
const random = new Seeded(Number(seed));
const IMAGE_BYTES = 192 << 20;

async function must(...argv: string[]): Promise<void> {
  const { success, err } = await run(argv);
  if (!success) throw new Error(`${argv.join(" ")}: ${err}`);
}

/** Stopped for certain: a signal alone returns at once. */
function stopped(pid: number): boolean {
  return Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1]!.startsWith("T");
}

const [image, disk, copy, found, answers] = ["image", "disk", "copy", "found", "answers"]
  .map((name) => `${dir}/${name}`) as [string, string, string, string, string];
await Deno.mkdir(disk);
await Deno.mkdir(found);
await Deno.create(image).then((file) => file.close());
await Deno.truncate(image, IMAGE_BYTES);
await must("mkfs.ext4", "-q", "-F", image);
await must("mount", "-o", "loop", image, disk);

const [program, ...args] = entryCommand("queue_sender_entry.ts", `${disk}/q.sqlite3`, "0", answers);
const sender = new Deno.Command(program!, { args, stdin: "null", stdout: "null" }).spawn();
const lines = () => {
  try {
    const text = Deno.readTextFileSync(answers);
    return text.slice(0, text.lastIndexOf("\n") + 1).split("\n").slice(0, -1);
  } catch {
    return [];
  }
};
const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

let lost = 0;
let cutsWithLoss = 0;
let damaged = 0;
let goal = 0;
let answered: string[] = [];
for (let cut = 0; cut < Number(cuts); cut++) {
  goal = answered.length + 1 + random.below(150);
  while ((answered = lines()).length < goal) await turn();
  sender.kill("SIGSTOP");
  while (!stopped(sender.pid)) await turn();
  answered = lines();
  await must("cp", "--sparse=always", image, copy);
  sender.kill("SIGCONT");
  await must("mount", "-o", "loop", copy, found);
  try {
    const db = new DatabaseSync(`${found}/q.sqlite3`);
    const check = Object.values(db.prepare("PRAGMA integrity_check").get()!)[0];
    if (check !== "ok") damaged++;
    const stored = new Map(
      db.prepare("SELECT idempotency_key AS key, message_id AS id FROM messages").all()
        .map(({ key, id }) => [key, id]),
    );
    const missing = answered.filter((line) => {
      const [key, id] = line.split(" ");
      return stored.get(key!) !== id;
    });
    lost += missing.length;
    if (missing.length > 0) cutsWithLoss++;
    db.close();
  } finally {
    await must("umount", found);
  }
}
sender.kill("SIGKILL");
await sender.status;
console.log(JSON.stringify({ answered: answered.length, lost, cutsWithLoss, damaged }));
