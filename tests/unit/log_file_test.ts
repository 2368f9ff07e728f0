import assert from "node:assert/strict";
import { openLogFile } from "../../lib/base/log_file.ts";
import { withTempDir } from "../helpers/temp.ts";

Deno.test("[C-02] a log file is 0600, appended to, and rotated with five parts kept", async () => {
  await withTempDir((dir) => {
    const path = `${dir}/tamq.log`;
    const line = (n: number) => `line ${String(n).padStart(4, "0")}\n`; // 10 bytes
    const first = openLogFile(path, 40);
    first.write(line(0));
    first.close();
    const log = openLogFile(path, 40);
    for (let n = 1; n < 30; n++) log.write(line(n));
    log.close();
    const names = [...Deno.readDirSync(dir)].map((entry) => entry.name).sort();
    assert.deepEqual(names, ["tamq.log", ...[1, 2, 3, 4, 5].map((n) => `tamq.log.${n}`)]);
    // Newest last, nothing torn, nothing twice, the oldest gone.
    const parts = [5, 4, 3, 2, 1].map((n) => Deno.readTextFileSync(`${path}.${n}`));
    const all = parts.join("") + Deno.readTextFileSync(path);
    const expected = Array.from({ length: 22 }, (_, i) => line(i + 8)).join("");
    assert.equal(all, expected);
    for (const name of names) assert.equal(Deno.statSync(`${dir}/${name}`).mode! & 0o777, 0o600);
  });
});

Deno.test("[L-03] a log that cannot be written stops nobody", async () => {
  await withTempDir((dir) => {
    const log = openLogFile(`${dir}/tamq.log`, 20);
    Deno.mkdirSync(`${dir}/tamq.log.1/in/the/way`, { recursive: true });
    for (let n = 0; n < 10; n++) log.write("something to say\n");
    log.close();
  });
});
