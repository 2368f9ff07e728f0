import assert from "node:assert/strict";
import { openLogFile } from "../../lib/base/log_file.ts";
import { appendLines } from "../../lib/pty/log_file.ts";
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

Deno.test("[C-02] a log is not written through a link, nor to what is no file of ours", async () => {
  await withTempDir((dir) => {
    const path = `${dir}/tamq.log`;
    const foreign = `${dir}/foreign`;
    const refused = (what: RegExp) => {
      const expected = { reason: "file_unusable", message: what, hint: /move it away/ };
      assert.throws(() => openLogFile(path), expected);
      appendLines(path)("a line\n"); // a broker goes without
    };
    Deno.writeTextFileSync(foreign, "theirs\n");
    Deno.symlinkSync(foreign, path);
    refused(/tamq\.log is a symbolic link/);
    assert.equal(Deno.readTextFileSync(foreign), "theirs\n");
    Deno.removeSync(foreign);
    refused(/symbolic link/);
    assert.throws(() => Deno.lstatSync(foreign), Deno.errors.NotFound, "nor made through it");
    Deno.removeSync(path);
    Deno.mkdirSync(path);
    refused(/not a regular file/);
    Deno.removeSync(path);
    if (Deno.uid() === 0) {
      Deno.writeTextFileSync(path, "theirs\n");
      Deno.chownSync(path, 65534, 65534);
      refused(/belongs to user 65534/);
      assert.equal(Deno.readTextFileSync(path), "theirs\n");
      Deno.removeSync(path);
    }
    appendLines(path)("a line\n");
    appendLines(path)("another\n");
    assert.equal(Deno.readTextFileSync(path), "a line\nanother\n");
    assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
  });
});

Deno.test("[C-02] a log that becomes a link is left behind at the next rotation", async () => {
  await withTempDir((dir) => {
    const path = `${dir}/tamq.log`;
    const log = openLogFile(path, 10);
    log.write("line 1\n");
    Deno.removeSync(path);
    Deno.symlinkSync(`${dir}/foreign`, path);
    log.write("line 2\n");
    log.close();
    assert.equal(Deno.readTextFileSync(path), "line 2\n");
    assert.throws(() => Deno.lstatSync(`${dir}/foreign`), Deno.errors.NotFound);
  });
});
