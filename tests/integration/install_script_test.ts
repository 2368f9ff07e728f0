/** install.sh against releases that the test makes, served from a folder or from this machine. */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { makeArchive } from "../../scripts/release.ts";
import { withTempDir } from "../helpers/temp.ts";
import { runProcess } from "../helpers/world.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const NAME = `tamq-${manifest.version}-linux-${Deno.build.arch}`;

/** A release of this checkout whose executable is a script around it. */
async function release(dir: string): Promise<string> {
  const executable = `${dir}/built`;
  await Deno.writeTextFile(
    executable,
    `#!/bin/sh\n: > '${dir}/ran'\nexec '${Deno.execPath()}' run -A --no-check --frozen '${ROOT}main.ts' "$@"\n`,
    { mode: 0o755 },
  );
  await makeArchive(executable, `${dir}/release`);
  await Deno.remove(`${dir}/ran`);
  return `${dir}/release`;
}

async function install(dir: string, args: readonly string[], more: Record<string, string> = {}) {
  const env = { HOME: `${dir}/home`, PATH: Deno.env.get("PATH")!, ...runtime(), ...more };
  return await runProcess(["sh", `${ROOT}install.sh`, ...args], { env, clearEnv: true, cwd: dir });
}

function runtime(): Record<string, string> {
  const value = Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`;
  return { DENO_DIR: value };
}

function files(dir: string, below = ""): string[] {
  return [...Deno.readDirSync(`${dir}/${below}`)].flatMap((entry) => {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    return entry.isDirectory ? files(dir, path) : [path];
  }).sort();
}

const from = (url: string) => ["--from", url, "--version", manifest.version];
const exists = (path: string) => Deno.stat(path).then(() => true, () => false);

Deno.test("[V-03] install.sh: executable, completions and man pages go below ~/.local; an update replaces them; --uninstall removes them", () =>
  withTempDir(async (dir) => {
    const folder = await release(dir);
    const first = await install(dir, from(`file://${folder}`));
    assert.deepEqual([first.code, first.stderr], [0, ""]);
    const local = `${dir}/home/.local`;
    assert.match(first.stdout, new RegExp(`is installed: ${local}/bin/tamq\n.*PATH`));
    const pages = [...Deno.readDirSync(`${ROOT}man`)].map((page) => `share/man/man1/${page.name}`);
    assert.deepEqual(
      files(local),
      [
        "bin/tamq",
        "share/bash-completion/completions/tamq",
        "share/fish/vendor_completions.d/tamq.fish",
        "share/zsh/site-functions/_tamq",
        ...pages,
      ].sort(),
    );
    const version = await runProcess([`${local}/bin/tamq`, "--version"]);
    assert.equal(version.stdout, `tamq ${manifest.version}\n`);
    assert.match(
      await Deno.readTextFile(`${local}/share/bash-completion/completions/tamq`),
      /complete -F/,
    );

    // An update: the file is another one, pages of former commands go.
    await Deno.writeTextFile(`${local}/share/man/man1/tamq-former.1`, "");
    const before = (await Deno.stat(`${local}/bin/tamq`)).ino;
    const path = `${local}/bin:${Deno.env.get("PATH")}`;
    const again = await install(dir, from(`file://${folder}`), { PATH: path });
    assert.equal(again.code, 0);
    assert.doesNotMatch(again.stdout, /your PATH/);
    assert.notEqual((await Deno.stat(`${local}/bin/tamq`)).ino, before);
    assert.ok(!await exists(`${local}/share/man/man1/tamq-former.1`));

    await Deno.writeTextFile(`${local}/bin/other`, "");
    assert.equal((await install(dir, ["--uninstall"])).code, 0);
    assert.deepEqual(files(local), ["bin/other"]);
    assert.equal((await install(dir, ["--uninstall"])).code, 1);
  }));

Deno.test("[V-03] install.sh downloads with curl or wget; another prefix, also one with blanks", () =>
  withTempDir(async (dir) => {
    const folder = await release(dir);
    await using server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {} },
      async (request) => {
        const file = `${folder}${new URL(request.url).pathname}`;
        return await exists(file)
          ? new Response(await Deno.readFile(file))
          : new Response("", { status: 404 });
      },
    );
    const base = `http://127.0.0.1:${server.addr.port}`;
    for (const tool of ["curl", "wget"]) {
      const bin = `${dir}/only-${tool}`;
      await Deno.mkdir(bin);
      const tools = "sh uname sed cut sha256sum mkdir mktemp rm mv chmod tar gzip cat".split(" ");
      for (const name of [tool, ...tools]) {
        const { stdout } = await runProcess(["sh", "-c", 'command -v "$1"', "sh", name]);
        if (stdout.trim() === "") return; // no such tool on this machine
        await Deno.symlink(stdout.trim(), `${bin}/${name}`);
      }
      const prefix = `${dir}/my ${tool} place`;
      const done = await install(dir, [...from(base), "--prefix", prefix], { PATH: bin });
      assert.deepEqual([done.code, done.stderr], [0, ""], tool);
      assert.ok(await exists(`${prefix}/bin/tamq`));
      const missing = await install(dir, ["--from", base, "--version", "9.9.9"], { PATH: bin });
      assert.equal(missing.code, 1);
      assert.match(missing.stderr, /cannot download http.*9\.9\.9/);
    }
  }));

Deno.test("[V-03] install.sh runs and installs nothing whose checksum is missing or wrong", () =>
  withTempDir(async (dir) => {
    const folder = await release(dir);
    const archive = `${folder}/${NAME}.tar.gz`;
    const sum = await Deno.readTextFile(`${archive}.sha256`);
    const refused = async (expected: RegExp) => {
      const { code, stderr, stdout } = await install(dir, from(`file://${folder}`));
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, expected);
      assert.ok(!await exists(`${dir}/ran`), "nothing of the download was run");
      assert.deepEqual(files(`${dir}/home`), [], "nothing stays behind");
    };
    const bytes = await Deno.readFile(archive);
    const other = bytes.slice();
    other[other.length >> 1]! ^= 1;
    await Deno.writeFile(archive, other);
    await refused(/^install\.sh: the checksum of tamq-.* is wrong: expected [0-9a-f]{64}, got/);
    await Deno.writeFile(archive, bytes);
    for (
      const text of [
        "",
        "0".repeat(63) + `  ${NAME}.tar.gz\n`,
        sum.replace(NAME, "another"),
        sum + sum,
        sum.replace(/^./, "x"),
      ]
    ) {
      await Deno.writeTextFile(`${archive}.sha256`, text);
      await refused(/holds no checksum of/);
    }
    await Deno.remove(`${archive}.sha256`);
    await refused(/^install\.sh: cannot read file:/);
    await Deno.remove(archive);
    await refused(/^install\.sh: cannot read file:/);
  }));

Deno.test("[V-03] install.sh says what it lacks: platform, address, version, place; a part of it does nothing", () =>
  withTempDir(async (dir) => {
    const folder = await release(dir);
    const bin = `${dir}/bin`;
    await Deno.mkdir(bin);
    const machine = async (system: string, name: string) => {
      const script = `#!/bin/sh\n[ "$1" = -s ] && echo ${system} || echo ${name}\n`;
      await Deno.writeTextFile(`${bin}/uname`, script, { mode: 0o755 });
      const path = `${bin}:${Deno.env.get("PATH")}`;
      return (await install(dir, from(`file://${folder}`), { PATH: path })).stderr;
    };
    assert.match(await machine("Darwin", "arm64"), /macOS is not supported/);
    assert.match(await machine("Linux", "riscv64"), /no executable for riscv64/);
    assert.match(
      await machine("Linux", "aarch64"),
      Deno.build.arch === "aarch64" ? /^$/ : /aarch64/,
    );

    for (
      const [args, expected] of [
        [[], /belongs to no release/],
        [["--version", "1.0.0"], /give --from URL/],
        [["--version", "1/../x", "--from", "file:///x"], /is no version/],
        [from("http://example.org/x"), /only https and file/],
        [["--prefix"], /--prefix needs a value/],
        [["--frob"], /unknown option --frob/],
        [[...from(`file://${folder}`), "--prefix", "/proc/x"], /cannot (make|write to) \/proc\/x/],
      ] as [string[], RegExp][]
    ) {
      const { code, stderr } = await install(dir, args);
      assert.equal(code, 1, args.join(" "));
      assert.match(stderr, expected);
    }
    assert.match((await install(dir, from("file:///x"), { HOME: "" })).stderr, /HOME is not set/);

    // As if the connection broke while `curl … | sh` read it.
    const text = await Deno.readTextFile(`${ROOT}install.sh`);
    for (let at = 0; at < text.lastIndexOf("main"); at += 997) {
      await runProcess(["sh", "-s", ...from(`file://${folder}`)], {
        stdin: text.slice(0, at),
        env: { HOME: `${dir}/part`, PATH: Deno.env.get("PATH")! },
        clearEnv: true,
      });
    }
    assert.ok(!await exists(`${dir}/part`) && !await exists(`${dir}/ran`));
  }));
