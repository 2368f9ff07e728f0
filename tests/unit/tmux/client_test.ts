import assert from "node:assert/strict";
import { TamqError } from "../../../lib/base/errors.ts";
import {
  literal,
  MINIMUM_TMUX,
  parseTmuxVariable,
  protectSemicolon,
  Tmux,
} from "../../../lib/tmux/client.ts";
import { withTempDir } from "../../helpers/temp.ts";

async function versionReason(said: string): Promise<string> {
  return await withTempDir(async (dir) => {
    await Deno.writeTextFile(`${dir}/tmux`, `#!/bin/sh\necho '${said}'\n`, { mode: 0o755 });
    try {
      await new Tmux({}, { PATH: dir }).requireVersion();
      return "accepted";
    } catch (error) {
      assert.ok(error instanceof TamqError);
      if (error.reason === "tmux_too_old") assert.ok(error.message.includes(MINIMUM_TMUX));
      return error.reason;
    }
  });
}

Deno.test("[V-01] tmux versions: the minimum and newer are taken, older ones named and refused", async () => {
  const cases: [string, string][] = [
    ["tmux 3.2", "accepted"],
    ["tmux 3.3a", "accepted"],
    ["tmux 3.10", "accepted"],
    ["tmux 10.0", "accepted"],
    ["tmux next-3.6", "accepted"],
    ["tmux master", "accepted"],
    ["tmux 3.1c", "tmux_too_old"],
    ["tmux 2.9", "tmux_too_old"],
  ];
  for (const [said, expected] of cases) assert.equal(await versionReason(said), expected, said);
});

Deno.test("[V-01] without tmux the error says so and what to install", async () => {
  await withTempDir(async (dir) => {
    const error = await new Tmux({}, { PATH: dir }).requireVersion().catch((e) => e);
    assert.ok(error instanceof TamqError);
    assert.equal(error.reason, "tmux_missing");
    assert.match(error.hint!, /install tmux 3\.2/);
  });
});

Deno.test("[E-05] text for tmux: final semicolons and formats lose their meaning", () => {
  assert.deepEqual(["a;", ";", "a;b", "a\\;", ""].map(protectSemicolon), [
    "a\\;",
    "\\;",
    "a;b",
    "a\\\\;",
    "",
  ]);
  assert.equal(literal("#(touch x) #{pid} ##"), "##(touch x) ##{pid} ####");
});

Deno.test("[E-05] $TMUX is read also when the socket's path holds commas", () => {
  assert.deepEqual(parseTmuxVariable("/tmp/tmux-0/default,123,4"), {
    path: "/tmp/tmux-0/default",
    pid: 123,
  });
  assert.deepEqual(parseTmuxVariable("/tmp/a,b,1/s,9,0"), { path: "/tmp/a,b,1/s", pid: 9 });
  for (const bad of [undefined, "", "x", "/tmp/s,1"]) {
    assert.equal(parseTmuxVariable(bad), undefined);
  }
});
