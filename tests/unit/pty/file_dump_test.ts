import assert from "node:assert/strict";
import { isShower, mentionsShower, showsFiles } from "../../../lib/pty/file_dump.ts";

Deno.test("[B-02] commands that show what files hold are told from others", () => {
  for (
    const line of [
      "cat doc.md",
      "/bin/cat doc.md",
      "cd x && less doc.md",
      "LANG=C git show HEAD",
      "sudo tail -f log",
      "make | grep To:",
      "for f in *; do head $f; done",
      "(cat doc)",
      "cat<doc",
    ]
  ) assert.ok(showsFiles(line), line);
  for (
    const line of [
      "printf 'To:beta: x\\n\\n'",
      "echo the cat sat",
      "./worker.sh cat",
      "python agent.py --tail 3",
      "concat x",
      "catalog",
      "",
    ]
  ) assert.ok(!showsFiles(line), line);
  assert.ok(mentionsShower("user@host:~/src$ cat doc.md"));
  assert.ok(!mentionsShower("user@host:~/catalog$ ./run"));
  assert.ok(isShower(["/usr/bin/less", "x"]));
  assert.ok(!isShower(["python3", "less.d/x"]));
});
