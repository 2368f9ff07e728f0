/**
 * Root of an executable that tries what the product's own rests on: the terminal model and the
 * profiles, which windows of agents load late; SQLite; the C library. Prints one JSON object, and at the end of
 * its standard input how it would start itself again.
 */
import { selfCommand } from "../../lib/base/self.ts";
import { holdsSecret } from "../../lib/coord/secrets.ts";
import { profileFor } from "../../lib/pty/profiles/catalog.ts";
import { loadModel } from "../../lib/pty/screen/model.ts";
import { closeFd, isTerminal, openPty } from "../../lib/pty_ffi.ts";
import { openDatabase } from "../../lib/sqlite/open.ts";

const Terminal = await loadModel();
const model = new Terminal({ cols: 20, rows: 4, allowProposedApi: true });
await new Promise<void>((done) => model.write("\x1b[2;3Hmodel", done));
const row = model.buffer.active.getLine(1)?.translateToString(true);
model.dispose();

const { master } = openPty({ rows: 24, columns: 80 });
const pty = isTerminal(master);
closeFd(master);

const database = openDatabase(`${Deno.args[0]}/probe.sqlite3`, { busyTimeoutMs: 1000 });
const { answer } = database.prepare("SELECT 42 AS answer").get() as { answer: number };
database.close();

const profile = (await profileFor(["codex"])).name;
const secret = await holdsSecret(`token ghp_${"0aB1".repeat(9)}`) && !await holdsSecret("hello");
console.log(JSON.stringify({ row, pty, answer, profile, secret }));

await Deno.stdin.read(new Uint8Array(1));
console.log(JSON.stringify(selfCommand(["serve"])));
