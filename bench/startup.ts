/**
 * Whole processes in turns, against a running service: `tamq --version`, `tamq ping` and `tamq send`
 * from source, bundled and compiled, each form beside an empty program run the same way. Prints
 * medians, and the median of the ratios to the empty program of the same round.
 *
 *     deno run -A bench/startup.ts [ROUNDS]
 *
 * The compiled form needs a runtime: DENORT_BIN, or TAMQ_DENORT_HELPER with TAMQ_COMPILE_DENO (see
 * tests/helpers/executable.ts).
 */
import { bundle } from "../scripts/bundle.ts";
import { executableSupply, obtainExecutable } from "../tests/helpers/executable.ts";
import { runProcess, World } from "../tests/helpers/world.ts";

const rounds = Number(Deno.args[0] ?? 30);
await using world = await World.create(["alpha"]);
// A service and runs like these have filled the runtime's caches: that is how tamq is used.
await world.mustTamq(["serve", "--detach"]);

const empty = `${world.dir}/empty.ts`;
await Deno.writeTextFile(empty, "");
const single = `${world.dir}/tamq.js`;
await bundle(single);
const deno = Deno.execPath();
const fromBundle = [deno, "run", "-A", "--no-config", "--no-check", single];

interface Form {
  readonly name: string;
  readonly empty: readonly string[];
  readonly tamq: (args: readonly string[]) => readonly string[];
}
const forms: Form[] = [
  {
    name: "source",
    empty: [deno, "run", "-A", "--no-check", empty],
    tamq: (args) => world.argv(args),
  },
  {
    name: "bundled",
    empty: [deno, "run", "-A", "--no-config", "--no-check", empty],
    tamq: (args) => [...fromBundle, ...args],
  },
];
const supply = await executableSupply();
if (supply.kind === "compile") {
  const path = await obtainExecutable(supply, `${world.dir}/tamq`);
  const emptyPath = `${world.dir}/empty`;
  const { code, stderr } = await runProcess([
    supply.deno,
    "compile",
    "--quiet",
    "-A",
    "--no-config",
    "--no-check",
    "--no-code-cache",
    `--output=${emptyPath}`,
    empty,
  ], { env: supply.env });
  if (code !== 0) throw new Error(stderr);
  forms.push({ name: "compiled", empty: [emptyPath], tamq: (args) => [path, ...args] });
}

const COMMANDS = [["--version"], ["ping"], ["send", "To:alpha: hello"]];
// One longer run of each form: a runtime writes its caches once a process lives a little.
for (const form of forms) await run(form.tamq(["history", "--json"]));

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;
for (const form of forms) {
  const programs = [form.empty, ...COMMANDS.map((args) => form.tamq(args))];
  const times = programs.map(() => [] as number[]);
  for (let round = -2; round < rounds; round++) { // two rounds to warm up
    for (const [i, argv] of programs.entries()) {
      const took = await run(argv);
      if (round >= 0) times[i]!.push(took);
    }
  }
  for (const [i, values] of times.entries()) {
    const name = i === 0 ? "empty program" : `tamq ${COMMANDS[i - 1]![0]}`;
    const ratio = median(values.map((value, round) => value / times[0]![round]!));
    console.log(
      `${form.name.padEnd(9)} ${name.padEnd(15)} median ${median(values).toFixed(1)} ms, ratio ${
        ratio.toFixed(2)
      }`,
    );
  }
}

/** Milliseconds of one run; throws unless it succeeds. */
async function run(argv: readonly string[]): Promise<number> {
  const start = performance.now();
  const { code, stderr } = await runProcess(argv, { env: world.env, clearEnv: true });
  if (code !== 0) throw new Error(`${argv.join(" ")}: ${stderr}`);
  return performance.now() - start;
}
