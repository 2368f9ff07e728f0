/** What fault tests need of the machine, looked at once, and processes of this checkout. */

const ROOT = new URL("../../", import.meta.url).pathname;

async function works(program: string, ...args: string[]): Promise<boolean> {
  try {
    const command = new Deno.Command(program, { args, stdout: "null", stderr: "null" });
    return (await command.output()).success;
  } catch {
    return false; // not installed
  }
}

/**
 * Whether the tests of a file can run here. Says plainly on the test's output what is missing, since
 * an ignored test looks much like a passed one.
 */
export async function needs(what: "strace" | "mounts" | "loop" | "faketime"): Promise<boolean> {
  const found = await {
    strace: () => works("strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true"),
    // Mounting needs a namespace of one's own, which not every machine grants.
    mounts: () => works("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"),
    loop: loopDevices,
    faketime: () => Promise.resolve(fakeTimeLibrary() !== undefined),
  }[what]();
  if (!found) {
    const text = {
      strace: "strace cannot trace here",
      mounts: "file systems cannot be mounted here (unshare -m mount)",
      loop: "no loop device with ext4 can be mounted here",
      faketime: "libfaketime is not installed (Debian's package faketime)",
    }[what];
    console.log(`SKIPPED, ${text}`);
  }
  return found;
}

async function loopDevices(): Promise<boolean> {
  const image = await Deno.makeTempFile({ prefix: "tamq-" });
  try {
    await Deno.truncate(image, 4 << 20);
    return await works("mkfs.ext4", "-q", "-F", image) &&
      await works("unshare", "-m", "mount", "-o", "loop", image, "/mnt");
  } finally {
    await Deno.remove(image);
  }
}

/** The preloaded library that moves a process's wall clock. */
export function fakeTimeLibrary(): string | undefined {
  const machine = Deno.build.arch === "aarch64" ? "aarch64" : "x86_64";
  const path = `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`;
  try {
    return Deno.statSync(path).isFile ? path : undefined;
  } catch {
    return undefined;
  }
}

/** The argument vector of one of the programs beside this file. */
export function entryCommand(entry: string, ...args: string[]): string[] {
  const flags = ["run", "-A", "--no-check", "--quiet", "--frozen", "--config", `${ROOT}deno.json`];
  return [Deno.execPath(), ...flags, `${ROOT}tests/helpers/${entry}`, ...args];
}

/** Runs an argument vector to its end; a kill or a failure is a result, not an error. */
export async function run(
  [program, ...args]: readonly string[],
  env: Record<string, string> = {},
): Promise<Deno.CommandOutput & { out: string; err: string }> {
  const output = await new Deno.Command(program!, { args, env, stdin: "null" }).output();
  const decoder = new TextDecoder();
  const { code, success, signal, stdout, stderr } = output;
  const [out, err] = [decoder.decode(stdout), decoder.decode(stderr)];
  return { code, success, signal, stdout, stderr, out, err };
}

/** Does `work` for each item, `width` at a time. */
export async function eachOf<T>(
  items: Iterable<T>,
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const lane = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: width }, lane));
}
