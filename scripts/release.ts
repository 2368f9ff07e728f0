/**
 * `deno run -A scripts/release.ts EXECUTABLE [DIR]`: packs an executable of this machine's kind with
 * completions and man pages into DIR (dist): `tamq-VERSION-linux-ARCH.tar.gz`, and beside it its
 * checksum, for install.sh (V-03).
 */
import manifest from "../deno.json" with { type: "json" };

const ROOT = new URL("../", import.meta.url).pathname;

/** Returns the archive's path. Throws when the executable is not of this version. */
export async function makeArchive(executable: string, dir: string): Promise<string> {
  const said = (await run([executable, "--version"])).trim();
  if (said !== `tamq ${manifest.version}`) {
    throw new Error(`${executable} is "${said}", not tamq ${manifest.version}`);
  }
  const name = `tamq-${manifest.version}-${Deno.build.os}-${Deno.build.arch}`;
  const archive = `${dir}/${name}.tar.gz`;
  await Deno.mkdir(dir, { recursive: true });
  const work = await Deno.makeTempDir({ prefix: "tamq-" });
  try {
    const content = `${work}/${name}`;
    await Deno.mkdir(`${content}/completions`, { recursive: true });
    await Deno.mkdir(`${content}/man`);
    await Deno.copyFile(executable, `${content}/tamq`);
    const scripts = { bash: "tamq.bash", zsh: "_tamq", fish: "tamq.fish" };
    for (const [shell, file] of Object.entries(scripts)) {
      const script = await run([executable, "completion", shell]);
      await Deno.writeTextFile(`${content}/completions/${file}`, script);
    }
    for (const { name: page } of Deno.readDirSync(`${ROOT}man`)) {
      await Deno.copyFile(`${ROOT}man/${page}`, `${content}/man/${page}`);
    }
    for (const text of ["README.md", "CHANGELOG.md", "LICENSE"]) {
      await copyIfThere(ROOT + text, `${content}/${text}`);
    }
    await run(["chmod", "-R", "u=rwX,go=rX", content]);
    // The same content gives the same bytes.
    await run([
      "tar",
      "--sort=name",
      "--owner=0",
      "--group=0",
      "--numeric-owner",
      `--mtime=@${Deno.env.get("SOURCE_DATE_EPOCH") ?? "0"}`,
      "--use-compress-program=gzip -n",
      "-C",
      work,
      "-cf",
      archive,
      name,
    ]);
  } finally {
    await Deno.remove(work, { recursive: true });
  }
  const digest = await crypto.subtle.digest("SHA-256", await Deno.readFile(archive));
  const sum = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
  await Deno.writeTextFile(`${archive}.sha256`, `${sum}  ${name}.tar.gz\n`);
  return archive;
}

async function copyIfThere(from: string, to: string): Promise<void> {
  try {
    await Deno.copyFile(from, to);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

async function run([program, ...args]: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program!, { args, stdin: "null" })
    .output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  if (!success) throw new Error(`${program} ${args.join(" ")} failed:\n${text(stderr)}`);
  return text(stdout);
}

if (import.meta.main) {
  const [executable, dir = `${ROOT}dist`] = Deno.args;
  if (executable === undefined) throw new Error("usage: release.ts EXECUTABLE [DIR]");
  console.log(await makeArchive(executable, dir));
}
