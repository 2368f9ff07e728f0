/**
 * A scripted worker that does what a wake message says: takes the work on, renews, leaves a
 * checkpoint, closes its task, completes. Each step goes to the log as one JSON line.
 *
 *   usage: coord_worker.ts LOG TAMQ [MODE]
 *
 * TAMQ is the argument vector of tamq as JSON. MODE `yield` lets go with a checkpoint the first
 * time; `deaf` reads and does nothing; `quick` says only what it must. The test types `run WORDS` for a tamq command and
 * `http METHOD PATH BODY` for a request on the hub's socket, `engine JSON` for one on the engine's.
 */
import { TextLineStream } from "./text_lines.ts";

const [log, tamq, mode = "work"] = Deno.args;
const argv = JSON.parse(tamq!) as string[];

async function note(entry: unknown): Promise<void> {
  await Deno.writeTextFile(log!, JSON.stringify(entry) + "\n", { append: true });
}

async function run(...args: string[]): Promise<number> {
  const [program, ...rest] = argv;
  const { code, stdout, stderr } = await new Deno.Command(program!, {
    args: [...rest, ...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
  await note({ args, code, stdout: text(stdout), stderr: text(stderr) });
  return code;
}

/** What an agent does that knows the interface. */
async function http(line: string): Promise<void> {
  const [, method, path, body] = /^http (\S+) (\S+) ?(.*)$/.exec(line)!;
  const socket = `${Deno.env.get("XDG_RUNTIME_DIR")}/tamq-hub.sock`;
  using client = Deno.createHttpClient({ proxy: { transport: "unix", path: socket } });
  const response = await fetch(`http://localhost${path}`, {
    client,
    method,
    body: body === "" ? undefined : body,
    headers: { "content-type": "application/json", "if-match": "*" },
  });
  await note({ args: [line], code: response.status, stdout: await response.text(), stderr: "" });
}

/** A request on the engine's own socket. */
async function engine(request: string): Promise<void> {
  const path = `${Deno.env.get("XDG_RUNTIME_DIR")}/tamq-coord.sock`;
  using conn = await Deno.connect({ transport: "unix", path });
  await conn.write(new TextEncoder().encode(request + "\n"));
  const buffer = new Uint8Array(65536);
  const n = await conn.read(buffer);
  await note({
    args: [request],
    code: 0,
    stdout: new TextDecoder().decode(buffer.subarray(0, n!)),
  });
}

let yielded = false;
console.log("ready");
for await (const line of Deno.stdin.readable.pipeThrough(new TextLineStream())) {
  await note({ line, read: Date.now() * 1000 });
  if (line.startsWith("run ")) {
    await run(...line.slice(4).split(" "));
    console.log("ran");
    continue;
  }
  if (line.startsWith("http ")) {
    await http(line);
    console.log("asked");
    continue;
  }
  if (line.startsWith("engine ")) {
    await engine(line.slice(7));
    console.log("asked the engine");
    continue;
  }
  const lease = /tamq coord ack ([0-9a-z.]+)/.exec(line)?.[1];
  if (!line.startsWith("From:coordination-engine") || lease === undefined || mode === "deaf") {
    continue;
  }
  const task = /tamq hub task done (\S+)/.exec(line)?.[1];
  if (await run("coord", "ack", lease) !== 0) continue;
  if (mode === "quick") {
    if (task !== undefined) await run("hub", "task", "done", task);
    await run("coord", "complete", lease);
    continue;
  }
  await run("coord", "renew", lease);
  if (mode === "yield" && !yielded) {
    yielded = true;
    await run("coord", "checkpoint", lease, "--summary", "half of it", "--next", "the rest");
    await run("coord", "release", lease);
    console.log("yielded");
    continue;
  }
  await run("coord", "checkpoint", lease, "--summary", "all of it", "--file", "a.ts");
  if (task !== undefined) await run("hub", "task", "done", task);
  await run("coord", "complete", lease);
  console.log(`finished ${task}`);
}
