/**
 * Runs all tests: groups of files, each group a process of its own, two at a time. (Files must not
 * share a process in parallel: the file mode mask and signal handlers are the process's.) Closes
 * with a line `N passed, N failed`; exit status 1 when any failed.
 *
 *     deno run -A tests/run.ts [PREFIX …]      # only groups or files whose path begins so
 */
const ROOT = new URL("../", import.meta.url).pathname;
/** No group may hang the run. */
const LIMIT_MS = 10 * 60_000;

/** Longest first, so that the last ones fill the gaps. A file belongs to the first group that fits. */
const GROUPS: readonly RegExp[] = [
  /^tests\/fault\//,
  /^tests\/integration\/(broker|screen|tmux)/,
  /^tests\/e2e\//,
  /^tests\/integration\//,
  /^tests\/(unit|property)\//,
  /^tests\//,
];

async function testFiles(dir: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(ROOT + dir)) {
    const path = `${dir}/${entry.name}`;
    if (entry.isDirectory) found.push(...await testFiles(path));
    else if (path.endsWith("_test.ts")) found.push(path);
  }
  return found.sort();
}

interface Outcome {
  passed: number;
  failed: number;
  /** Files with failed tests; empty where the group ended in another way. */
  files?: string[];
}

async function runGroup(files: readonly string[]): Promise<Outcome> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--frozen", "--no-check", ...files],
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const output = await child.output();
  clearTimeout(timer);
  Deno.stdout.writeSync(output.stdout);
  Deno.stderr.writeSync(output.stderr);
  // deno-lint-ignore no-control-regex
  const plain = new TextDecoder().decode(output.stdout).replace(/\x1b\[[0-9;]*m/g, "");
  const count = (what: string) =>
    Number(
      plain.match(new RegExp(`\\| (\\d+) ${what}|(\\d+) ${what} \\|`))?.slice(1).find(Boolean),
    );
  const [passed, failed] = [count("passed") || 0, count("failed") || 0];
  if (output.code !== 0 && failed === 0) {
    console.log(`the group of ${files[0]} ended with status ${output.code} and no failed test`);
    return { passed, failed: 1 };
  }
  const places = plain.matchAll(/^.* => \.\/(tests\/\S+_test\.ts):\d+:\d+$/gm);
  return { passed, failed, files: [...new Set([...places].map(([, file]) => file!))] };
}

const wanted = Deno.args.map((arg) => arg.replace(/\/$/, ""));
const files = (await testFiles("tests")).filter((file) =>
  wanted.length === 0 || wanted.some((prefix) => file.startsWith(prefix))
);
const groups = GROUPS.map((pattern, at) =>
  files.filter((file) => GROUPS.findIndex((other) => other.test(file)) === at && pattern.test(file))
).filter((group) => group.length > 0);

const total: Outcome = { passed: 0, failed: 0 };
const again: Outcome[] = [];
const lane = async () => {
  for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
    const outcome = await runGroup(group);
    total.passed += outcome.passed;
    total.failed += outcome.failed;
    if (outcome.failed > 0 && outcome.files?.length) again.push(outcome);
  }
};
await Promise.all([lane(), lane()]);

// Files that failed beside the others run once more, alone: a crowded machine is no defect of the
// product. What passes then is named all the same: it is a test, or worse, that wants mending.
for (const { failed, files: names } of again) {
  if ((await runGroup(names!)).failed > 0) continue;
  total.failed -= failed;
  total.passed += failed;
  console.log(`FLAKY: ${failed} failed beside other tests, none alone, in ${names!.join(", ")}`);
}
console.log(`${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);
