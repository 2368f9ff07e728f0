/** The unit's text as systemd reads it. */
import assert from "node:assert/strict";
import { TamqError } from "../../lib/base/errors.ts";
import { unitPath, unitState, unitText, writeUnit } from "../../lib/systemd_unit.ts";
import { withTempDir } from "../helpers/temp.ts";
import { runProcess } from "../helpers/world.ts";

const GRACE = { graceMs: 5000 };
const none = () => undefined;
const from = (env: Record<string, string>) => (name: string) => env[name];
const line = (text: string, key: string) =>
  text.split("\n").filter((one) => one.startsWith(`${key}=`)).map((one) =>
    one.slice(key.length + 1)
  );

Deno.test("[L-01] unit: words of the command are quoted for systemd: spaces, specifiers, variables, escapes", () => {
  const argv = [
    "/opt/my tools/100%/$HOME/tamq",
    "serve",
    "--file=/a b",
    "%h",
    "$HOME",
    "${X}",
    ";",
    'say "hi"',
    "back\\slash",
    "tab\tfeed\n",
    "ümlaut",
    "",
  ];
  assert.deepEqual(line(unitText(argv, none, GRACE), "ExecStart"), [
    '"/opt/my tools/100%%/$HOME/tamq" serve "--file=/a b" %%h "$$HOME" "$${X}" ";" ' +
    String.raw`"say \"hi\"" "back\\slash" "tab\x09feed\x0a" "ümlaut" ""`,
  ]);
});

Deno.test("[L-01, C-02] unit: settings of the installing shell are kept, and nothing else of it", () => {
  const env = from({
    TAMQ_STATE_DIR: '/my state/%h/"x"',
    TAMQ_SOCKET: "",
    STATEHUB_API_BASE: "http://user:secret@localhost",
    PATH: "/bin",
    HOME: "/home/me",
  });
  const text = unitText(["/usr/bin/tamq", "serve"], env, {
    ...GRACE,
    more: { DENO_V8_FLAGS: "-x" },
  });
  assert.deepEqual(line(text, "Environment"), [
    "DENO_V8_FLAGS=-x",
    String.raw`"TAMQ_STATE_DIR=/my state/%%h/\"x\""`,
  ]);
  assert.doesNotMatch(text, /secret/);
  assert.deepEqual(line(text, "TimeoutStopSec"), ["10"]);
});

Deno.test("[L-01] unit: a path that systemd refuses is named before anything is written", () => {
  for (const path of ['/a"b/tamq', "/a\\b/tamq", "/it's/tamq", "/a\nb/tamq"]) {
    assert.throws(
      () => unitText([path, "serve"], none, GRACE),
      (error) => error instanceof TamqError && error.reason === "unit_path_unsupported",
    );
  }
});

Deno.test("[L-01, C-02] unit: written in one step with mode 0644 whatever the umask; state tells ours from others'", () =>
  withTempDir(async (dir) => {
    const path = unitPath(from({ XDG_CONFIG_HOME: dir, HOME: "/nowhere" }));
    assert.equal(path, `${dir}/systemd/user/tamq.service`);
    assert.equal(unitPath(from({ HOME: dir })), `${dir}/.config/systemd/user/tamq.service`);
    const text = unitText(["/usr/bin/tamq", "serve"], none, GRACE);
    assert.equal(unitState(path, text), "absent");
    writeUnit(path, text);
    assert.equal((await Deno.stat(path)).mode! & 0o777, 0o644);
    assert.equal((await Deno.stat(`${dir}/systemd/user`)).mode! & 0o777, 0o700);
    assert.deepEqual([...Deno.readDirSync(`${dir}/systemd/user`)].map((one) => one.name), [
      "tamq.service",
    ]);
    assert.equal(unitState(path, text), "current");
    assert.equal(unitState(path, text.replace("/usr", "/opt")), "outdated");
    await Deno.writeTextFile(path, "[Service]\nExecStart=/bin/true\n");
    assert.equal(unitState(path, text), "foreign");
    await Deno.rename(path, `${dir}/elsewhere`);
    await Deno.writeTextFile(`${dir}/elsewhere`, text);
    await Deno.symlink(`${dir}/elsewhere`, path);
    assert.equal(unitState(path, text), "foreign", "a link is somebody's own arrangement");

    // A folder that cannot be written: the reason names the path, no part file stays.
    await Deno.writeTextFile(`${dir}/file`, "");
    assert.throws(
      () => writeUnit(`${dir}/file/tamq.service`, text),
      (error) => error instanceof TamqError && error.reason === "unit_unwritable",
    );
  }));

const ANALYZE = await runProcess(["systemd-analyze", "--version"]).then(({ code }) => code === 0)
  .catch(() => false);

Deno.test({
  name: "[L-01] unit: systemd itself accepts it, with spaces, % and $ in the program's path",
  ignore: !ANALYZE,
  fn: () =>
    withTempDir(async (dir) => {
      const folder = `${dir}/my tools/100%h $HOME ü`;
      await Deno.mkdir(folder, { recursive: true });
      const env = {
        HOME: dir,
        PATH: Deno.env.get("PATH") ?? "/usr/bin:/bin",
        XDG_RUNTIME_DIR: dir,
        XDG_CONFIG_HOME: dir,
      };
      const verify = async (program: string) => {
        const text = unitText(
          [program, "serve", "$X", "%h"],
          from({ TAMQ_STATE_DIR: "/a b" }),
          GRACE,
        );
        writeUnit(`${dir}/tamq.service`, text);
        return await runProcess(
          ["systemd-analyze", "verify", "--user", "--man=no", `${dir}/tamq.service`],
          { env, clearEnv: true },
        );
      };
      // It looks for the program, so a wrong escape would not pass.
      assert.match((await verify(`${folder}/tamq`)).stderr, /tamq is not executable/);
      await Deno.writeTextFile(`${folder}/tamq`, "#!/bin/sh\n", { mode: 0o755 });
      assert.deepEqual(await verify(`${folder}/tamq`), { code: 0, stdout: "", stderr: "" });
    }),
});
